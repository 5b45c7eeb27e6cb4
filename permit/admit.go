package permit

import "time"

// What keeps a call of admit out, whether it fits or not.
const (
	newcomer = gateClosed | gateWaiting | gateFrozen
	// holder of mu: it is the one who sets the other flags.
	holder = gateClosed
)

// admit grants n permits if they fit and none of the flags barred is set. If not,
// it returns the word that refused and leaves nothing behind. n > 1 needs mu.
//
// It makes ready whatever does not depend on the gate before it looks at it, once:
// a look beforehand as well would fetch the line twice, which made Acquire a quarter
// dearer where two processors were at it (BenchmarkSampled, 16 goroutines: 104 ns
// against 82).
func (p *Pool) admit(n, reserve int, barred gate) (_ Permit, refused gate, ok bool) {
	var now time.Duration
	if p.timed {
		now = time.Since(p.config.Base)
	}
	c := p.cell()
	r, generation := p.claim(c)
	if p.timed {
		r.stamp(now)
	}
	if n > 1 {
		r.size.Store(int64(n))
	}
	w := r.witness
	r.witness = nil
	var g gate
	for {
		g = p.load()
		if g&barred != 0 || !g.fits(n, reserve) {
			r.size.Store(1)
			r.witness = w
			r.cell.unclaim(r, generation)
			return Permit{}, g, false
		}
		if p.swap(g, g+gate(n)) {
			break
		}
	}
	if n > 1 {
		c.moreGranted.Add(uint64(n - 1))
	}
	x := Permit{witness: w, generation: generation, at: now, seen: g + gate(n)}
	if barred == newcomer { // else the caller may be somebody who makes room for another
		p.sample(x)
	}
	return x, 0, true
}

// finish ends the permit of this generation, unless it has ended. w is what the next
// handle of the record will hold.
func (p *Pool) finish(w *witness, generation uint64, o Outcome) bool {
	if p.crowded.Load() {
		if done, ok := p.handOver(w, generation, o); done {
			return ok
		}
	}
	r := w.record
	if !r.decide(generation) {
		return false
	}
	n := r.size.Load()
	if o != Success || n > 1 { // else the generation tells all
		r.cell.count(o, uint64(n))
		r.size.Store(1)
	}
	r.witness = w
	g := gate(p.gate.Add(-uint64(n)))
	r.cell.shelve(r, generation)
	if g&(gateWaiting|gateClosed) != 0 {
		p.settle()
	}
	return true
}

// handOver ends a permit as finish does, and gives it to who is next in the queue as it
// is: one in flight before, one in flight after. That spares a crowd the way through
// the gate and the books, an eighth of BenchmarkHandOff (447 ns before, 390 after). It
// reports whether it was done that way, and if so, whether the permit had not ended
// before. mu is taken first: a record that is closing must not wait for it, since Stats
// holds mu and waits for the record.
func (p *Pool) handOver(w *witness, generation uint64, o Outcome) (done, ok bool) {
	p.mu.Lock()
	r, next, g := w.record, p.nextLocked(), p.load()
	if next == nil || next.n != 1 || r.size.Load() != 1 || g.inFlight() > g.limit() {
		p.mu.Unlock()
		return false, false
	}
	if !r.pass(generation) {
		p.mu.Unlock()
		return true, false
	}
	r.cell.count(o, 1)
	x := Permit{witness: w, generation: generation + 1, seen: g | grantWaited}
	if p.timed {
		r.stamp(time.Since(p.config.Base))
	}
	next.permit = x
	p.dropLocked(next, nil)
	p.mu.Unlock()
	// Out of the queue and with a permit, next is its own goroutine's and ours: that one
	// waits for this, or leaves and lets it be.
	close(next.ready)
	return true, true
}

// settle does what a release finds to do behind it: it wakes whoever fits, and ends
// Close.
func (p *Pool) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wakeLocked()
	if g := p.load(); g&gateClosed != 0 && g.inFlight() == 0 && p.idle != nil {
		close(p.idle)
		p.idle, p.closers = nil, 0
	}
}
