package permit

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrClosed is returned by Acquire when the pool has been closed, before or
	// while it waited.
	ErrClosed = errors.New("permit: pool is closed")

	// ErrQueueFull is returned by AcquireWithin when no permit is free at once
	// and as many callers as allowed are waiting already.
	ErrQueueFull = errors.New("permit: too many callers are waiting")

	// ErrTooMany is returned by AcquireN when it asks for more permits than the
	// limit, or when the limit falls below what it asks for while it waits: it
	// could wait for ever, and everyone behind it.
	ErrTooMany = errors.New("permit: more permits wanted at once than the limit")
)

// A Pool hands out permits, at most as many as its limit, in the order in which
// they were asked for; under pressure the other way round, if Config.LIFOAfter is set.
//
// TryAcquire and TryAcquireLeaving never wait, Acquire waits as long as its
// context allows, and AcquireWithin waits only in a short queue. Most callers
// want Acquire, followed by a deferred Release.
//
// A Pool must be made by NewPool: the zero value panics. All methods may be
// called from any number of goroutines. The Release of a permit synchronizes
// before the return of the Acquire that is granted its place, so what the old
// holder wrote is seen by the new one.
//
// A permit that is free at once allocates nothing, unless more are out than ever before.
// It costs no lock while few are out, and the short lock of a part of the books that
// few goroutines share while there are many (BenchmarkFixed, BenchmarkHeld); a refusal costs
// one load and its count (BenchmarkRefusal), and a wait one allocation (BenchmarkHandOff).
type Pool struct {
	// gate decides every admission, and every release ends with it. It is written by
	// every goroutine, and so shares its cache line with nothing.
	_    [64]byte
	gate atomic.Uint64
	_    [64]byte

	// Immutable after NewPool.
	config    Config
	timed     bool
	base      time.Time // Config.Base, or that of the times in the queue
	cells     []cell    // the books: who holds a permit, and what came back
	cellShift uint

	// crowded is a hint that the queue is not empty, apart from the gate so that
	// looking at it costs nothing while nobody waits. It is changed under mu; who is
	// misled by it takes the other way to the same end.
	crowded atomic.Bool

	leaked atomic.Uint64 // permits whose handle is gone

	// mu guards the queue and the flags of the gate. It is taken before cell.mu if
	// both are. No foreign code runs and nobody is waited for while it is held, but
	// for Stats, which waits for calls that are between two steps of their own.
	mu sync.Mutex

	// waiters are those of earlier waits, to be used again. Their channels are not: one
	// that was made in a bubble of testing/synctest may not be used outside.
	waiters sync.Pool

	// Guarded by mu.

	// queue holds those who wait, oldest first.
	// Invariant, whenever mu is free: who is next does not fit the gate, or a release
	// that made room has seen the waiting flag and is on its way to mu.
	// Invariant: n ≤ limit for every waiter, so that none waits for what cannot come.
	queue queue
	// idle is made by the first Close that has to wait, and closed when the gate is
	// closed and in flight is 0. Invariant: idle != nil ⇔ closers > 0, so that nothing
	// is left of a Close that gave up.
	idle    chan struct{}
	closers int // those who wait for idle
}

// NewPool returns a pool with nothing in flight and nobody waiting. It fails, and
// returns nil, if a field of config is out of its range.
func NewPool(config Config) (*Pool, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	p := &Pool{config: config, timed: !config.Base.IsZero(), base: config.Base}
	if config.LIFOAfter > 0 && !p.timed {
		p.base = time.Now()
	}
	p.openBooks()
	p.gate.Store(uint64(newGate(config.Limit)))
	return p, nil
}

func (p *Pool) load() gate { return gate(p.gate.Load()) }

func (p *Pool) swap(old, new gate) bool { return p.gate.CompareAndSwap(uint64(old), uint64(new)) }

// TryAcquire takes a permit if one is free at once, and returns false otherwise.
// It never waits, and it refuses while anyone waits, even if there is room for
// an instant: a newcomer must not overtake. On false nothing is held and the
// returned permit is the zero value, whose methods do nothing.
func (p *Pool) TryAcquire() (Permit, bool) { return p.try(1, 0) }

// TryAcquireLeaving is TryAcquire for work that others come before: it takes a
// permit only if at least reserve more would still be free afterwards. The check
// and the grant are one decision. A negative reserve counts as 0.
func (p *Pool) TryAcquireLeaving(reserve int) (Permit, bool) { return p.try(1, max(reserve, 0)) }

// try refuses by one load.
func (p *Pool) try(n, reserve int) (Permit, bool) {
	g := p.load()
	for !g.refuses(n, reserve) {
		x, refused, ok := p.admit(n, reserve, newcomer)
		if ok {
			return x, true
		}
		if g = refused; g&gateFrozen != 0 {
			// Stats is reading: mu is free as soon as it has done so.
			p.mu.Lock()
			x, g, ok = p.admit(n, reserve, newcomer)
			p.mu.Unlock()
			if ok {
				return x, true
			}
		}
	}
	p.cell().refused.Add(1)
	return Permit{}, false
}

// Acquire takes a permit, and waits for one if none is free, in first-in first-out order
// but for Config.LIFOAfter. It returns ctx.Err() if ctx ends first, also when a permit is free
// but ctx has ended already, and ErrClosed if the pool is closed. On error no
// permit is held, and a place in the queue is given up.
//
// If ctx ends in the instant of the grant, Acquire returns the context's error
// and the permit goes to the next in the queue.
func (p *Pool) Acquire(ctx context.Context) (Permit, error) {
	// Asked first, so that work whose caller has gone never starts.
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	if !p.crowded.Load() {
		if x, _, ok := p.admit(1, 0, newcomer); ok {
			return x, nil
		}
	}
	return p.wait(ctx, 1, math.MaxInt)
}

// AcquireWithin is Acquire with a bounded queue: it returns ErrQueueFull at once
// if no permit is free and maxWaiting or more callers wait already. The check and
// the place in the queue are one decision. A negative maxWaiting counts as 0.
func (p *Pool) AcquireWithin(ctx context.Context, maxWaiting int) (Permit, error) {
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	if maxWaiting <= 0 {
		// As cheap as TryAcquire. A closed pool goes on to be told from a full one.
		if g := p.load(); g&gateClosed == 0 && g.refuses(1, 0) {
			p.cell().refused.Add(1)
			return Permit{}, ErrQueueFull
		}
	}
	if !p.crowded.Load() {
		if x, _, ok := p.admit(1, 0, newcomer); ok {
			return x, nil
		}
	}
	return p.wait(ctx, 1, maxWaiting)
}

// AcquireN is Acquire for work that weighs as much as n: it takes n permits as one,
// which are released together and counted as n everywhere. While it is the head of
// the queue and does not fit, those behind it wait, as in x/sync's semaphore. While it
// waits, the queue is first-in first-out, whatever Config.LIFOAfter says. It
// fails if n is below 1, and returns ErrTooMany if n exceeds the limit when it asks
// or falls to exceed it while it waits. On error nothing is held.
//
// Work of weight 1 pays nothing for this.
func (p *Pool) AcquireN(ctx context.Context, n int) (Permit, error) {
	if n == 1 {
		return p.Acquire(ctx)
	}
	if err := checkLimit("AcquireN", n); n < 1 {
		return Permit{}, err
	}
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	return p.wait(ctx, n, math.MaxInt)
}

// TryAcquireN is TryAcquire for n permits at once. It refuses any n below 1.
func (p *Pool) TryAcquireN(n int) (Permit, bool) {
	if n == 1 {
		return p.try(1, 0)
	}
	if n < 1 {
		return Permit{}, false
	}
	if !p.load().refuses(n, 0) {
		p.mu.Lock()
		x, _, ok := p.admit(n, 0, newcomer)
		p.mu.Unlock()
		if ok {
			return x, true
		}
	}
	p.cell().refused.Add(1)
	return Permit{}, false
}

// Resize sets the limit to n. Everyone who now fits is granted before Resize
// returns. Lowering the limit takes nothing back: in flight may stay above it
// until holders release. Callers of AcquireN who wait for more than n get
// ErrTooMany. It fails, and changes nothing, if n is below 1 or above MaxLimit.
func (p *Pool) Resize(n int) error {
	if err := checkLimit("Resize to", n); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for g := p.load(); !p.swap(g, g.withLimit(n)); g = p.load() {
	}
	for w := p.queue.head; w != nil && p.queue.heavy > 0; {
		next := w.next
		if w.n > n {
			p.dropLocked(w, ErrTooMany)
		}
		w = next
	}
	p.wakeLocked()
	return nil
}

// Close refuses all further permits, wakes everyone who waits with ErrClosed,
// and then waits until the last holder has released. It returns nil when nothing
// is in flight any more, or ctx.Err() if ctx ends before; the pool stays closed
// either way, and Close may be called again to go on waiting.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.gate.Or(uint64(gateClosed))
	for p.queue.head != nil {
		p.dropLocked(p.queue.head, ErrClosed)
	}
	// A release either came before the flag, and is seen here, or finds it, and comes
	// to mu.
	if p.load().inFlight() == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.closers++
	p.mu.Unlock()

	// The context may be the user's code: if it panics, this Close is gone all the same.
	defer p.stopWaiting(idle)
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	// An end of both in the same instant counts as success.
	select {
	case <-idle:
		return nil
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled // done, by a context that gives no reason
}

// stopWaiting takes a Close out that waits for idle no more.
func (p *Pool) stopWaiting(idle chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != idle {
		return // it was closed, and with it went the count
	}
	if p.closers--; p.closers == 0 {
		p.idle = nil
	}
}
