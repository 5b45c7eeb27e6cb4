package permit

import (
	"runtime"
	"time"
)

// Stats is a snapshot of a pool: Limit, InFlight, Waiting, Oldest, Granted, Released and
// Closed are of one instant, and Granted == InFlight + Σ Released, each of the three
// counted in its own place. Overhang, Refused and Leaked are read beside them, each
// once, with 0 ≤ Overhang ≤ InFlight. A permit of AcquireN counts as its n.
type Stats struct {
	// Limit is how many permits may be out.
	Limit int
	// InFlight is how many are out. It exceeds Limit only after a Resize
	// downwards, until holders release.
	InFlight int
	// Waiting is how many callers wait for one. While a Release has not returned yet,
	// one of them may fit.
	Waiting int
	// Overhang is how many of those in flight nobody waits for any more.
	Overhang int
	// Oldest is for how long the oldest permit in flight has been out, to the
	// millisecond: work that is stuck shows here. It is 0 if nothing is in flight,
	// and without Config.Base.
	Oldest time.Duration
	// Granted counts all permits ever handed out.
	Granted uint64
	// Released counts the permits that came back, by outcome. One that was given
	// up in the instant of its grant is among the Ignored.
	Released [NumOutcomes]uint64
	// Refused counts the calls that were turned away at once: no permit free, the
	// queue full, more wanted than the limit, or the pool closed.
	Refused uint64
	// Leaked counts the permits whose handles were lost before a Release.
	// Without Config.ReclaimLeaks they are in flight for ever.
	Leaked uint64
	// Closed says that no permit will be granted any more.
	Closed bool
}

// Stats returns one consistent snapshot. It never fails and may be called at any
// time, also after Close. It costs some 100 ns and a few more for each record of the
// ledger, of which there are about as many as permits were ever out at once
// (BenchmarkStats); callers of Acquire wait so long. It waits itself for a goroutine that
// was taken off its processor half-way through an Acquire or a Release, between two of
// some ten instructions.
func (p *Pool) Stats() Stats {
	for {
		if s, ok := p.read(); ok {
			return s
		}
		runtime.Gosched() // with the gate open: nobody waits for who is off its processor
	}
}

// frozenTries is how often read looks before it lets the others on for a while.
const frozenTries = 100

// read reports false if something stayed half done all the while.
func (p *Pool) read() (Stats, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate.Or(uint64(gateFrozen))
	defer p.gate.And(^uint64(gateFrozen))
	// Frozen, the gate admits nobody, and releases come to an end: each goroutine has at
	// most a few steps to do.
	for range frozenTries {
		if s, ok := p.readLocked(); ok {
			return s, true
		}
		runtime.Gosched()
	}
	return Stats{}, false
}

// readLocked adds up the books, and reports whether the sums are of one instant: of
// the moment of its last load. p.mu must be held and the gate frozen.
//
// Why this is enough. Nobody is admitted meanwhile, so in flight only falls, and if it
// is the same at both ends no release has passed the gate in between. A release that
// passed it before the first load had written its counters before, and they are read
// after. One that has not passed it may have been decided: if that was before its record
// is read, the record is closing, and the reading is given up; if after, its counters
// were written after they were read here, and it is not in the sums at all. A grant
// that has claimed its record and not passed the gate makes the records in use exceed
// in flight; nothing makes them fall short, and so nothing hides it.
func (p *Pool) readLocked() (_ Stats, ok bool) {
	var now time.Duration
	if p.timed {
		now = time.Since(p.config.Base)
	}
	g := p.load()
	s := Stats{
		Limit:    g.limit(),
		InFlight: g.inFlight(),
		Waiting:  p.queue.len,
		Leaked:   p.leaked.Load(),
		Closed:   g&gateClosed != 0,
	}
	var other, moreReleased, moreGranted uint64
	for i := range p.cells {
		c := &p.cells[i]
		for o := range c.other {
			n := c.other[o].Load()
			s.Released[o] += n
			other += n
		}
		moreReleased += c.moreReleased.Load()
		moreGranted += c.moreGranted.Load()
		s.Refused += c.refused.Load()
	}
	ok = true
	inUse, size := 0, 0 // records, and the permits they stand for
	var generations uint64
	for i := range p.cells {
		c := &p.cells[i]
		c.mu.Lock()
		records := c.records // only ever appended to
		c.mu.Unlock()
		for _, r := range records {
			tag := r.tag.Load()
			n, at := int(r.size.Load()), time.Duration(r.at.Load())
			if r.tag.Load() != tag {
				ok = false // n and at may be of another permit
			}
			generations += tag >> stateBits
			switch tag & stateMask {
			case closing:
				ok = false
				continue
			case free:
				continue
			case abandoned:
				s.Overhang += n
			}
			inUse++
			size += n
			if p.timed {
				s.Oldest = max(s.Oldest, now-at)
			}
		}
	}
	s.Granted = generations + uint64(inUse) + moreGranted
	s.Released[Success] += generations + moreReleased - other
	return s, ok && size == s.InFlight && p.load() == g
}

// Limit returns the limit in force.
func (p *Pool) Limit() int { return p.load().limit() }

// InFlight returns how many permits are out. It is exact, and never less than the
// work that runs under one.
func (p *Pool) InFlight() int { return p.load().inFlight() }

// Waiting returns how many callers wait for a permit. While nobody does it is one load.
func (p *Pool) Waiting() int {
	if !p.crowded.Load() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.len
}
