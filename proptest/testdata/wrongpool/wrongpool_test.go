// Package wrongpool holds pools that are wrong on purpose: one implementation, and
// a switch for the fault. All of its tests must fail but TestNoFault and those
// whose names begin with TestAnyOrder; a test of package proptest sees to that.
package wrongpool

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/proptest"
)

var errClosed = errors.New("wrongpool: closed")

type waiter struct {
	ready  chan struct{}
	got    bool
	closed bool
}

// pool is right if fault is empty.
type pool struct {
	fault string

	mu         sync.Mutex
	limit, out int
	queue      []*waiter
	closed     bool
	idle       chan struct{}
}

func (p *pool) is(fault string) bool { return p.fault == fault }

func (p *pool) fits() bool {
	if p.is("off by one") {
		return p.out <= p.limit
	}
	if p.is("never more than six") {
		return p.out < min(p.limit, 6)
	}
	return p.out < p.limit
}

// grant hands permits to those who wait, at most so many. p.mu must be held.
func (p *pool) grant(most int) {
	for ; most > 0 && len(p.queue) > 0 && p.fits(); most-- {
		i := 0
		if p.is("last in, first out") {
			i = len(p.queue) - 1
		}
		w := p.queue[i]
		p.queue = slices.Delete(p.queue, i, i+1)
		w.got = true
		p.out++
		close(w.ready)
	}
	if p.closed && p.out == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

const all = 1 << 30

func (p *pool) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	switch {
	case p.is("barging try"):
		go func() { // the place is open until this runs
			p.mu.Lock()
			defer p.mu.Unlock()
			p.grant(all)
		}()
	case p.is("no wake-up by a release"):
	default:
		p.grant(all)
	}
}

func (p *pool) release() func() {
	switch p.fault {
	case "no release":
		return nil
	case "a second release counts":
		return p.free
	case "a second release in the same instant counts":
		var done atomic.Bool
		return func() {
			if !done.Load() {
				runtime.Gosched()
				done.Store(true)
				p.free()
			}
		}
	}
	return sync.OnceFunc(p.free)
}

func (p *pool) TryAcquire() (func(), bool) {
	if p.is("try waits") {
		release, err := p.Acquire(context.Background())
		return release, err == nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fits() || p.closed || len(p.queue) > 0 && !p.is("barging try") {
		return nil, false
	}
	if p.is("check, then act") {
		p.mu.Unlock()
		runtime.Gosched()
		p.mu.Lock()
	}
	p.out++
	return p.release(), true
}

func (p *pool) Acquire(ctx context.Context) (func(), error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	if p.fits() && len(p.queue) == 0 {
		p.out++
		p.mu.Unlock()
		release := p.release()
		if p.is("a cancelled context ends the permit") {
			context.AfterFunc(ctx, release)
		}
		return release, nil
	}
	w := &waiter{ready: make(chan struct{})}
	p.queue = append(p.queue, w)
	p.mu.Unlock()
	if p.is("deaf to its context") {
		ctx = context.Background()
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		if p.leave(w) {
			return nil, ctx.Err()
		}
	}
	if w.closed {
		return nil, errClosed
	}
	return p.release(), nil
}

// leave takes w out of the queue, and gives back what it got meanwhile.
func (p *pool) leave(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.queue, w)
	switch {
	case w.got:
		if p.is("grant lost when cancel meets grant") {
			return true
		}
		p.out--
		if !p.is("who leaves wakes nobody") {
			p.grant(all)
		}
	case i < 0: // closed
	case p.is("who leaves takes along those behind"):
		p.queue = p.queue[:i]
	default:
		p.queue = slices.Delete(p.queue, i, i+1)
		if p.is("a waiter who leaves gives a permit back") {
			p.out--
			p.grant(all)
		}
	}
	return true
}

func (p *pool) Resize(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
	if p.is("a raise wakes one") {
		p.grant(1)
	} else {
		p.grant(all)
	}
}

func (p *pool) InFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.is("in flight counts who waits") {
		return p.out + len(p.queue)
	}
	return p.out
}

func (p *pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	if !p.is("close forgets who waits") {
		for _, w := range p.queue {
			w.closed = true
			close(w.ready)
		}
		p.queue = nil
	}
	if p.out == 0 || p.is("close waits for nobody") {
		p.mu.Unlock()
		return nil
	}
	p.idle = make(chan struct{})
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run runs the suite over pools that have the fault.
func run(t *testing.T, fault string, anyOrder bool) {
	t.Parallel()
	proptest.TestPool(t, func(limit int) proptest.Pool {
		p := &pool{fault: fault, limit: limit}
		if fault == "a goroutine is left" {
			go func() { select {} }()
		}
		q := proptest.Pool{TryAcquire: p.TryAcquire, Acquire: p.Acquire, Resize: p.Resize, Close: p.Close, AnyOrder: anyOrder}
		if fault == "" || p.is("in flight counts who waits") {
			q.InFlight = p.InFlight // the others are to be found without it
		}
		return q
	})
}

func TestNoFault(t *testing.T) { run(t, "", false) }

// In any order these are no faults.
func TestAnyOrderLast(t *testing.T)  { run(t, "last in, first out", true) }
func TestAnyOrderBarge(t *testing.T) { run(t, "barging try", true) }

func TestOffByOne(t *testing.T)       { run(t, "off by one", false) }
func TestCapped(t *testing.T)         { run(t, "never more than six", false) }
func TestNoRelease(t *testing.T)      { run(t, "no release", false) }
func TestLastInFirstOut(t *testing.T) { run(t, "last in, first out", false) }
func TestBargingTry(t *testing.T)     { run(t, "barging try", false) }
func TestNoWakeUp(t *testing.T)       { run(t, "no wake-up by a release", false) }
func TestSecondRelease(t *testing.T)  { run(t, "a second release counts", false) }
func TestSecondReleaseRaces(t *testing.T) {
	run(t, "a second release in the same instant counts", false)
}
func TestTryWaits(t *testing.T)            { run(t, "try waits", false) }
func TestCheckThenAct(t *testing.T)        { run(t, "check, then act", false) }
func TestCancelEndsPermit(t *testing.T)    { run(t, "a cancelled context ends the permit", false) }
func TestDeaf(t *testing.T)                { run(t, "deaf to its context", false) }
func TestGrantLost(t *testing.T)           { run(t, "grant lost when cancel meets grant", false) }
func TestLeavingWakesNobody(t *testing.T)  { run(t, "who leaves wakes nobody", false) }
func TestLeavingTakesAlong(t *testing.T)   { run(t, "who leaves takes along those behind", false) }
func TestLeavingGivesBack(t *testing.T)    { run(t, "a waiter who leaves gives a permit back", false) }
func TestRaiseWakesOne(t *testing.T)       { run(t, "a raise wakes one", false) }
func TestInFlightIsWrong(t *testing.T)     { run(t, "in flight counts who waits", false) }
func TestCloseForgetsWaiters(t *testing.T) { run(t, "close forgets who waits", false) }
func TestCloseIsEarly(t *testing.T)        { run(t, "close waits for nobody", false) }
func TestGoroutineLeft(t *testing.T)       { run(t, "a goroutine is left", false) }
