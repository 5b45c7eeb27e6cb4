package permit

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// state is what a record of the ledger stands for. It lives through this circle, and
// every arrow is one atomic step of its tag:
//
//	        claim                    decide               shelve
//	free ───────────▶ held ──────────────────▶ closing ───────────▶ free, one generation on
//	  ▲                │ │                        ▲
//	  └────────────────┘ │ Abandon                │ decide
//	      unclaim        └───────▶ abandoned ─────┘
//
//	held or abandoned ───pass───▶ held by another, one generation on (under Pool.mu)
//
// A grant is claim, then all that is written about it, then the gate: in flight rises
// last. A release is decide, then all that is written about it, then the gate, then
// shelve: the record stays visibly closing until in flight has fallen. Therefore, with
// the sums over all records:
//
//	in flight of the gate == Σ size of records held or abandoned,
//	    whenever no record is closing and none is between claim and gate
//
// and a snapshot can tell an instant in which nothing was half done from one in which
// something was; see Stats.
//
// decide is a compare-and-swap from the generation of the handle: of all calls of
// Release through all copies exactly one makes it. While the record is closing it
// belongs to that call alone, and after claim to the call that claimed it until the
// handle is out: its plain fields need no lock.
type state = uint64

const (
	free state = iota
	held
	abandoned // held, and counted as overhang
	closing

	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// record is the entry of one permit in the ledger. It is used again for later
// permits, and never freed while the pool lives.
type record struct {
	// tag is generation<<stateBits | state. The generation counts the releases of
	// this record, and never comes back: 2⁶² are more than a century of them.
	tag atomic.Uint64

	// size is how many permits the holder has: 1, or the n of AcquireN.
	// Invariant: it is 1 while the record is free, so that only AcquireN writes it.
	size atomic.Int64
	// at is when the record was granted, in ns since Config.Base, at most a
	// millisecond before the truth; see stamp.
	at atomic.Int64
	// stack is where a sampled permit was acquired. It may be of an older generation.
	stack atomic.Pointer[stack]

	// witness is what the handle points to. Invariant: it is nil while the record is
	// held, so that the handle alone keeps it reachable, and the collector's finding
	// it gone means that the handle is gone.
	witness *witness

	next  *record // in the free list of the cell; guarded by cell.mu
	cell  *cell   // immutable
	index int     // in cell.records; immutable
}

// decide ends the permit of this generation, if it is out. It reports whether this
// call did so; the caller must shelve the record then.
func (r *record) decide(generation uint64) bool {
	tag := generation<<stateBits | held
	if r.tag.CompareAndSwap(tag, tag|closing) {
		return true
	}
	// An abandoned permit, or none of ours. Nothing leads back from abandoned to held,
	// so two tries are enough.
	tag = generation<<stateBits | abandoned
	return r.tag.CompareAndSwap(tag, tag|closing)
}

// pass makes the permit of this generation, if it is out, one of the next generation,
// held by somebody else. Pool.mu must be held, so that no snapshot sees half of it.
func (r *record) pass(generation uint64) bool {
	next := (generation+1)<<stateBits | held
	return r.tag.CompareAndSwap(generation<<stateBits|held, next) ||
		r.tag.CompareAndSwap(generation<<stateBits|abandoned, next)
}

// isOut reports whether the permit of this generation is out.
func (r *record) isOut(generation uint64) bool {
	tag := r.tag.Load()
	return tag == generation<<stateBits|held || tag == generation<<stateBits|abandoned
}

// stamp notes the time of the grant. A store costs as much as the rest of an
// uncontended claim, so a record that is granted again within a millisecond keeps its
// old stamp: ages come out at most that much too old.
func (r *record) stamp(now time.Duration) {
	if old := r.at.Load(); int64(now)-old >= int64(time.Millisecond) || int64(now) < old {
		r.at.Store(int64(now))
	}
}

// fastRecords is how many records of a cell are found without a lock.
const fastRecords = 4

// cell is one part of the books. Goroutines that run at the same time use, by and
// large, different cells, and nobody needs another one's: only the gate is common.
type cell struct {
	// fast is immutable. Its records are claimed by compare-and-swap.
	fast [fastRecords]*record

	// mu is a leaf, taken after Pool.mu if both are.
	mu sync.Mutex
	// Guarded by mu.

	// spare holds the other records of this cell that are free, and claim pops them:
	// who has popped one owns it. A record is in fast, in spare, or out.
	spare   *record
	records []*record // all of this cell, out or not

	// Atomic. How many permits success released, and how many were granted one by one,
	// is in the generations of the records; these are the rest.
	other        [NumOutcomes]atomic.Uint64 // permits released, by outcome; not those by Success
	moreGranted  atomic.Uint64              // Σ (n−1) over the grants of AcquireN; changed under Pool.mu only
	moreReleased atomic.Uint64              // Σ (n−1) over their releases
	refused      atomic.Uint64              // calls turned away at once

	_ [64]byte // two cells never share a cache line
}

// cell returns the part of the books that the calling goroutine uses, by where its
// stack lies: 0.7 ns, against 5 for a random number and 10 for a sync.Pool, which
// knows the processor, and a goroutine that comes again finds its own records in
// its own cache. Any answer is right.
func (p *Pool) cell() *cell {
	var here byte
	const golden = 0x9e3779b97f4a7c15
	return &p.cells[uint64(uintptr(unsafe.Pointer(&here))>>11)*golden>>p.cellShift]
}

// claim takes a free record, of c if there is one, and makes it held. Nobody but the
// caller has it. All that may take time comes before: between claim and gate lie a few
// instructions, for which a snapshot waits.
func (p *Pool) claim(c *cell) (r *record, generation uint64) {
	for _, r := range &c.fast {
		if tag := r.tag.Load(); tag&stateMask == free && r.tag.CompareAndSwap(tag, tag|held) {
			return r, tag >> stateBits
		}
	}
	r = c.pop()
	for i := 0; r == nil && i < len(p.cells); i++ {
		r = p.cells[i].pop() // of work that was acquired elsewhere
	}
	if r == nil {
		r = p.add(c)
	}
	tag := r.tag.Load()
	r.tag.Store(tag | held)
	return r, tag >> stateBits
}

// pop takes a record out of the free list. It is the caller's then.
func (c *cell) pop() *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.spare
	if r != nil {
		c.spare, r.next = r.next, nil
	}
	return r
}

// unclaim undoes claim, for a record that the gate did not admit.
func (c *cell) unclaim(r *record, generation uint64) { c.free(r, generation) }

// shelve makes a record that is closing free again, one generation on.
func (c *cell) shelve(r *record, generation uint64) { c.free(r, generation+1) }

func (c *cell) free(r *record, generation uint64) {
	r.tag.Store(generation << stateBits) // free
	// From here on a record of fast may be claimed.
	if r.index >= fastRecords {
		c.push(r)
	}
}

// count enters the release of n permits that generations do not tell of.
func (c *cell) count(o Outcome, n uint64) {
	if n > 1 {
		c.moreReleased.Add(n - 1)
	}
	if o != Success {
		if o >= NumOutcomes {
			o = Ignored
		}
		c.other[o].Add(n)
	}
}

func (c *cell) push(r *record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare, r.next = r, c.spare
}

// add makes a record that is free and owned by the caller.
func (p *Pool) add(c *cell) *record {
	r := &record{cell: c}
	r.size.Store(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.index = len(c.records)
	r.witness = p.newWitness(r)
	c.records = append(c.records, r)
	return r
}

// openBooks makes a power of two of cells, enough that the processors need not meet
// and few enough that a snapshot stays cheap.
func (p *Pool) openBooks() {
	n, bits := 1, uint(0)
	for n < min(2*runtime.GOMAXPROCS(0), 16) {
		n, bits = 2*n, bits+1
	}
	p.cells, p.cellShift = make([]cell, n), 64-bits
	for i := range p.cells {
		c := &p.cells[i]
		for j := range c.fast {
			c.fast[j] = p.add(c)
		}
	}
}
