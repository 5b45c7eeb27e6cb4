package permit

// A Permit is the right of one piece of work to run. It is a small value and may
// be copied: all copies are the same permit, and only the first Release through
// any of them counts.
//
// The zero Permit is held by nobody; its methods do nothing and return zero
// values. All methods may be called from any goroutine.
type Permit struct {
	pool  *Pool
	token *token
	gen   uint64
}

// token is the entry of one permit in the ledger. It is used again for later
// permits; gen tells which of them a handle means.
// All fields are guarded by the mu of the pool.
type token struct {
	gen       uint64 // Invariant: a handle x is held ⇔ x.gen == x.token.gen and the token is not free.
	abandoned bool
	grant     Grant
	next      *token // in the free list
}

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
}

// Release ends the permit with the outcome o and reports whether this call did
// so. Whoever is next in the queue is granted the place before Release returns.
// A second call, a call through a copy, and a call on the zero Permit change
// nothing and return false. A value that is no outcome counts as Ignored.
//
// Release must be called when the work has ended, and not before: the end of the
// wait for it is not the end of the work.
func (x Permit) Release(o Outcome) bool {
	if x.pool == nil {
		return false
	}
	if o >= NumOutcomes {
		o = Ignored
	}
	x.pool.mu.Lock()
	defer x.pool.mu.Unlock()
	return x.pool.releaseLocked(x, o)
}

// Abandon notes that nobody waits for the work any more. The permit stays in
// flight and is counted as overhang until it is released. It does nothing if the
// permit has been released or abandoned already.
func (x Permit) Abandon() {
	if x.pool == nil {
		return
	}
	x.pool.mu.Lock()
	defer x.pool.mu.Unlock()
	if x.token.gen == x.gen && !x.token.abandoned {
		x.token.abandoned = true
		x.pool.overhang++
	}
}

// Held reports whether the permit has been granted and not yet released.
func (x Permit) Held() bool {
	if x.pool == nil {
		return false
	}
	x.pool.mu.Lock()
	defer x.pool.mu.Unlock()
	return x.token.gen == x.gen
}

// Grant tells what the ledger showed when this permit was granted. It is the
// zero Grant for a permit that is no longer held.
func (x Permit) Grant() Grant {
	if x.pool == nil {
		return Grant{}
	}
	x.pool.mu.Lock()
	defer x.pool.mu.Unlock()
	if x.token.gen != x.gen {
		return Grant{}
	}
	return x.token.grant
}
