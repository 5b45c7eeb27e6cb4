package permit

import "time"

// A Permit is the right of one piece of work to run. It is a small value and may
// be copied: all copies are the same permit, and only the first Release through
// any of them counts.
//
// The zero Permit is held by nobody; its methods do nothing and return zero
// values. All methods may be called from any goroutine.
type Permit struct {
	// Four words: the compiler keeps structs of up to four in registers, and a fifth
	// made Acquire and Release half as slow again (BenchmarkFixed, 61 ns against 39).
	witness    *witness
	generation uint64 // of the record at the time of the grant
	at         time.Duration
	seen       gate // the word that admitted, and grantWaited
}

// grantWaited in Permit.seen tells that the permit was handed over in the queue. The
// word that admits is never frozen.
const grantWaited = gateFrozen

// Grant is what the ledger showed in the instant of a grant.
type Grant struct {
	// InFlight counts the permits out, this one included.
	// Invariant: InFlight ≤ Limit.
	InFlight int
	// Limit was in force.
	Limit int
	// Waited tells that the permit was handed over in the queue, rather than
	// taken at once.
	Waited bool
	// At is the time of the grant since Config.Base, or of the return of the Acquire
	// that waited for it. It is 0 without Config.Base.
	At time.Duration
}

// Release ends the permit with the outcome o and reports whether this call did
// so. Whoever is next in the queue is granted the place before Release returns.
// A second call, a call through a copy, and a call on the zero Permit change
// nothing and return false. A value that is no outcome counts as Ignored.
//
// Release must be called when the work has ended, and not before: the end of the
// wait for it is not the end of the work.
func (x Permit) Release(o Outcome) bool {
	return x.witness != nil && x.witness.pool.finish(x.witness, x.generation, o)
}

// Abandon notes that nobody waits for the work any more. The permit stays in
// flight and is counted as overhang until it is released. It does nothing if the
// permit has been released or abandoned already.
func (x Permit) Abandon() {
	if x.witness != nil {
		tag := x.generation << stateBits
		x.witness.record.tag.CompareAndSwap(tag|held, tag|abandoned)
	}
}

// Held reports whether the permit has been granted and not yet released.
func (x Permit) Held() bool {
	return x.witness != nil && x.witness.record.isOut(x.generation)
}

// Grant tells what the ledger showed when this permit was granted. It stays so
// after the release, and is the zero Grant for the zero Permit.
func (x Permit) Grant() Grant {
	return Grant{InFlight: x.seen.inFlight(), Limit: x.seen.limit(), Waited: x.seen&grantWaited != 0, At: x.at}
}
