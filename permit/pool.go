package permit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
)

var (
	// ErrClosed is returned by Acquire when the pool has been closed, before or
	// while it waited.
	ErrClosed = errors.New("permit: pool is closed")

	// ErrQueueFull is returned by AcquireWithin when no permit is free at once
	// and as many callers as allowed are waiting already.
	ErrQueueFull = errors.New("permit: too many callers are waiting")
)

// Config describes a pool.
type Config struct {
	// Limit is how many permits may be out at first. It must be at least 1;
	// there is no default. Resize changes it later.
	Limit int

	_ struct{}
}

// A Pool hands out permits, at most as many as its limit, in the order in which
// they were asked for.
//
// TryAcquire and TryAcquireLeaving never wait, Acquire waits as long as its
// context allows, and AcquireWithin waits only in a short queue. Most callers
// want Acquire, followed by a deferred Release.
//
// A Pool must be made by NewPool: the zero value has no room. All methods may be
// called from any number of goroutines. The Release of a permit synchronizes
// before the return of the Acquire that is granted its place, so what the old
// holder wrote is seen by the new one.
type Pool struct {
	// mu is a leaf: nothing is called and nobody is waited for while it is held.
	mu sync.Mutex

	// All fields below are guarded by mu.

	limit    int // Invariant: 1 ≤ limit.
	inFlight int // Invariant: inFlight == number of tokens that are held ≥ 0.
	overhang int // Invariant: overhang == number of held tokens that are abandoned; 0 ≤ overhang ≤ inFlight.

	// queue holds those who wait, oldest first.
	// Invariant, whenever mu is free: queue.len > 0 implies inFlight ≥ limit.
	queue queue

	// granted and released are counted apart, so that
	// granted == inFlight + Σ released can fail if the ledger is wrong.
	granted  uint64
	released [NumOutcomes]uint64

	// free are tokens that nobody holds. A token is either here or held.
	free *token

	// closed never becomes false again. Invariant: closed implies queue.len == 0.
	closed bool
	// idle is made by the first Close that finds permits out, and closed when
	// closed && inFlight == 0.
	idle chan struct{}
}

// NewPool returns a pool with the limit of config, nothing in flight and nobody
// waiting. It fails, and returns nil, if the limit is below 1.
func NewPool(config Config) (*Pool, error) {
	if config.Limit < 1 {
		return nil, fmt.Errorf("permit: Limit %d is below 1", config.Limit)
	}
	return &Pool{limit: config.Limit}, nil
}

// TryAcquire takes a permit if one is free at once, and returns false otherwise.
// It never waits, and it refuses while anyone waits, even if there is room for
// an instant: a newcomer must not overtake. On false nothing is held and the
// returned permit is the zero value, whose methods do nothing.
func (p *Pool) TryAcquire() (Permit, bool) { return p.TryAcquireLeaving(0) }

// TryAcquireLeaving is TryAcquire for work that others come before: it takes a
// permit only if at least reserve more would still be free afterwards. The check
// and the grant are one decision. A negative reserve counts as 0.
func (p *Pool) TryAcquireLeaving(reserve int) (Permit, bool) {
	reserve = max(reserve, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	// limit − inFlight may be negative after a Resize, and reserve may be huge:
	// compared in this form nothing can overflow.
	if p.closed || p.queue.len > 0 || p.limit-p.inFlight <= reserve {
		return Permit{}, false
	}
	return p.grantLocked(false), true
}

// Acquire takes a permit, and waits for one in first-in first-out order if none
// is free. It returns ctx.Err() if ctx ends first, also when a permit is free
// but ctx has ended already, and ErrClosed if the pool is closed. On error no
// permit is held, and a place in the queue is given up.
//
// If ctx ends in the instant of the grant, Acquire returns the context's error
// and the permit goes to the next in the queue.
func (p *Pool) Acquire(ctx context.Context) (Permit, error) {
	return p.AcquireWithin(ctx, math.MaxInt)
}

// AcquireWithin is Acquire with a bounded queue: it returns ErrQueueFull at once
// if no permit is free and maxWaiting or more callers wait already. The check and
// the place in the queue are one decision.
func (p *Pool) AcquireWithin(ctx context.Context, maxWaiting int) (Permit, error) {
	// Asked first, so that work whose caller has gone never starts.
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	p.mu.Lock()
	switch {
	case p.closed:
		p.mu.Unlock()
		return Permit{}, ErrClosed
	case p.queue.len == 0 && p.inFlight < p.limit:
		x := p.grantLocked(false)
		p.mu.Unlock()
		return x, nil
	case p.queue.len >= maxWaiting:
		p.mu.Unlock()
		return Permit{}, ErrQueueFull
	}
	w := &waiter{ready: make(chan struct{})}
	p.queue.push(w)
	p.mu.Unlock()

	// The context may be the user's code: it is never asked under the lock, and if
	// it panics the place in the queue, or the permit, is given back all the same.
	var err error
	left := false
	defer func() {
		if !left {
			p.leave(w)
		}
	}()
	woken := false
	select {
	case <-w.ready:
		woken = true
	case <-ctx.Done():
	}
	// Both may be ready, and select chooses at random. A context that has ended
	// counts, also if it did so only after the grant.
	if err = ctx.Err(); err != nil {
		return Permit{}, err // leave sees to the permit, if there is one
	}
	if !woken {
		return Permit{}, context.Canceled // done, by a context that gives no reason
	}
	left = true
	// What closed ready, a grant or Close, had written before what is read here.
	if w.permit.pool == nil {
		return Permit{}, ErrClosed
	}
	return w.permit, nil
}

// leave takes w out of the queue. If it has been granted meanwhile, the permit goes
// to the next: taking it back through the ledger hands it over.
func (p *Pool) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.permit.pool != nil:
		p.releaseLocked(w.permit, Ignored)
	case w.queued:
		// Nobody needs to be woken: while anyone waits, in flight is at the limit,
		// and this changes neither.
		p.queue.remove(w)
	}
}

// Resize sets the limit to n. Everyone who now fits is granted before Resize
// returns. Lowering the limit takes nothing back: in flight may stay above it
// until holders release. It fails, and changes nothing, if n is below 1.
func (p *Pool) Resize(n int) error {
	if n < 1 {
		return fmt.Errorf("permit: Resize to %d, below 1", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = n
	p.wakeLocked()
	return nil
}

// Close refuses all further permits, wakes everyone who waits with ErrClosed,
// and then waits until the last holder has released. It returns nil when nothing
// is in flight any more, or ctx.Err() if ctx ends before; the pool stays closed
// either way, and Close may be called again to go on waiting.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for w := p.queue.pop(); w != nil; w = p.queue.pop() {
		close(w.ready)
	}
	if p.inFlight == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	// As in Acquire: an end of both in the same instant counts as success.
	select {
	case <-idle:
		return nil
	default:
		return ctx.Err()
	}
}

// grantLocked takes a token out of the free list and makes it a held permit.
// p.mu must be held and p.inFlight < p.limit.
func (p *Pool) grantLocked(waited bool) Permit {
	t := p.free
	if t == nil {
		t = new(token)
	} else {
		p.free = t.next
		t.next = nil
	}
	p.inFlight++
	p.granted++
	t.grant = Grant{InFlight: p.inFlight, Limit: p.limit, Waited: waited}
	return Permit{pool: p, token: t, gen: t.gen}
}

// wakeLocked hands permits to the head of the queue for as long as it fits.
// p.mu must be held. Afterwards nobody sleeps who could run.
func (p *Pool) wakeLocked() {
	for p.inFlight < p.limit {
		w := p.queue.pop()
		if w == nil {
			return
		}
		w.permit = p.grantLocked(true)
		close(w.ready) // w.permit is written before, so the waiter may read it.
	}
}

// releaseLocked ends the permit x if it is still held, and wakes whoever fits
// then. p.mu must be held.
func (p *Pool) releaseLocked(x Permit, o Outcome) bool {
	t := x.token
	if t.gen != x.gen {
		return false
	}
	// From here on every copy of x is void: the generation is what a handle is
	// compared with, and it never comes back (2⁶⁴ grants of one token).
	t.gen++
	p.inFlight--
	if t.abandoned {
		t.abandoned = false
		p.overhang--
	}
	p.released[o]++
	t.next, p.free = p.free, t
	p.wakeLocked()
	if p.closed && p.inFlight == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
	return true
}
