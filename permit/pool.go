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
//
// A permit that is free at once costs no lock and no allocation (BenchmarkFixed),
// a refusal one load and its count (BenchmarkRefusal), and a hand-over in the queue
// two allocations (BenchmarkHandOff).
type Pool struct {
	// gate decides every admission, and every release ends with it. It is written by
	// every goroutine, and so has its cache line for itself.
	gate atomic.Uint64
	_    [56]byte

	// Immutable after NewPool.
	config    Config
	timed     bool
	cells     []cell // the books: who holds a permit, and what came back
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
	// Invariant, whenever mu is free: the head does not fit the gate, or a release
	// that made room has seen the waiting flag and is on its way to mu.
	// Invariant: n ≤ limit for every waiter, so that none waits for what cannot come.
	queue queue
	// idle is made by the first Close that finds permits out, and closed when
	// the gate is closed and in flight is 0.
	idle chan struct{}
}

// NewPool returns a pool with nothing in flight and nobody waiting. It fails, and
// returns nil, if a field of config is out of its range.
func NewPool(config Config) (*Pool, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	p := &Pool{config: config, timed: !config.Base.IsZero()}
	p.cells, p.cellShift = newCells()
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

// Acquire takes a permit, and waits for one in first-in first-out order if none
// is free. It returns ctx.Err() if ctx ends first, also when a permit is free
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
// the queue and does not fit, those behind it wait, as in x/sync's semaphore. It
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
	if n > 1 && !p.load().refuses(n, 0) {
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
	r, generation := c.claim()
	if p.timed {
		r.stamp(now)
	}
	if n > 1 {
		r.size.Store(int64(n))
	}
	w := r.witness
	if w == nil {
		w = p.newWitness(r)
	}
	r.witness = nil
	var g gate
	for {
		g = p.load()
		if g&barred != 0 || !g.fits(n, reserve) {
			r.size.Store(1)
			r.witness = w
			c.unclaim(r, generation)
			return Permit{}, g, false
		}
		if p.swap(g, g+gate(n)) {
			break
		}
	}
	if n > 1 {
		c.moreGranted.Add(uint64(n - 1))
	}
	if p.config.StackEvery > 0 {
		p.sample(r, generation)
	}
	return Permit{witness: w, generation: generation, at: now, seen: g + gate(n)}, 0, true
}

// enqueue is the way through mu, for whoever does not fit or found Stats reading: it
// grants, or sends away, or returns a place in the queue.
func (p *Pool) enqueue(n, maxWaiting int) (Permit, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		g := p.load()
		switch {
		case g&gateClosed != 0:
			return Permit{}, nil, ErrClosed
		case n > g.limit():
			return Permit{}, nil, ErrTooMany
		case p.queue.len > 0 || !g.fits(n, 0):
			if p.queue.len >= maxWaiting {
				return Permit{}, nil, ErrQueueFull
			}
			// The decision to sleep is a swap of the very word that refused. A release
			// either comes before it, and the swap fails, or finds the flag, and comes
			// to mu.
			if p.queue.len == 0 && !p.swap(g, g|gateWaiting) {
				continue
			}
			w, _ := p.waiters.Get().(*waiter)
			if w == nil {
				w = new(waiter)
			}
			w.ready, w.n = make(chan struct{}), n
			p.queue.push(w)
			if p.queue.len == 1 {
				p.crowded.Store(true)
			}
			return Permit{}, w, nil
		}
		if x, _, ok := p.admit(n, 0, holder); ok {
			return x, nil, nil
		}
	}
}

func (p *Pool) wait(ctx context.Context, n, maxWaiting int) (Permit, error) {
	x, w, err := p.enqueue(n, maxWaiting)
	if w == nil {
		if err != nil {
			p.cell().refused.Add(1)
		}
		return x, err
	}

	// The context may be the user's code: it is never asked under the lock, and if
	// it panics the place in the queue, or the permit, is given back all the same.
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
	if err := ctx.Err(); err != nil {
		return Permit{}, err // leave sees to the permit, if there is one
	}
	if !woken {
		return Permit{}, context.Canceled // done, by a context that gives no reason
	}
	left = true
	// What closed ready had written before what is read here, and touches w no more.
	x, err = w.permit, w.err
	*w = waiter{}
	p.waiters.Put(w)
	if err != nil {
		return Permit{}, err
	}
	if p.timed {
		x.at = time.Since(p.config.Base) // the time until now was waiting too
	}
	if p.config.StackEvery > 0 {
		p.sample(x.witness.record, x.generation) // what was noted is the stack of whoever woke us
	}
	return x, nil
}

// leave takes w out of the queue. If it has been granted meanwhile, the permit goes
// to the next: releasing it hands it over.
func (p *Pool) leave(w *waiter) {
	p.mu.Lock()
	if w.queued {
		p.dropLocked(w, nil)
		p.wakeLocked() // a head that was too heavy may have held up the rest
	}
	p.mu.Unlock()
	w.permit.Release(Ignored)
}

// dropLocked takes a waiter out of the queue and clears the waiting flag behind the
// last. p.mu must be held.
func (p *Pool) dropLocked(w *waiter, err error) {
	p.queue.remove(w)
	if p.queue.len == 0 {
		p.gate.And(^uint64(gateWaiting))
		p.crowded.Store(false)
	}
	if err != nil {
		w.err = err
		close(w.ready)
	}
}

// wakeLocked hands permits to the head of the queue for as long as it fits.
// p.mu must be held. Afterwards nobody sleeps who could run: what refused the head
// was a word with the waiting flag, so that whoever makes room later comes to mu.
func (p *Pool) wakeLocked() {
	for w := p.queue.head; w != nil && p.load().fits(w.n, 0); w = p.queue.head {
		x, _, ok := p.admit(w.n, 0, holder)
		if !ok {
			continue
		}
		x.seen |= grantWaited
		w.permit = x
		p.dropLocked(w, nil)
		close(w.ready)
	}
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

// handOver ends a permit as finish does, and gives it to the head of the queue as it
// is: one in flight before, one in flight after. That spares a crowd the way through
// the gate and the books, which is a quarter of BenchmarkHandOff. It reports whether it
// was done that way, and if so, whether the permit had not ended before.
func (p *Pool) handOver(w *witness, generation uint64, o Outcome) (done, ok bool) {
	p.mu.Lock()
	r, head, g := w.record, p.queue.head, p.load()
	if head == nil || head.n != 1 || r.size.Load() != 1 || g.inFlight() > g.limit() {
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
	head.permit = x
	p.dropLocked(head, nil)
	p.mu.Unlock()
	// Out of the queue and with a permit, head is its own goroutine's and ours: that one
	// waits for this, or leaves and lets it be.
	close(head.ready)
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
		p.idle = nil
	}
}
