// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package permit_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// sum is how many permits have come back.
func sum(s permit.Stats) (n uint64) {
	for _, r := range s.Released {
		n += r
	}
	return n
}

// take takes n permits, which must be free.
func take(t testing.TB, pool *permit.Pool, n int) []permit.Permit {
	t.Helper()
	held := make([]permit.Permit, n)
	for i := range held {
		p, ok := pool.TryAcquire()
		if !ok {
			t.Fatalf("permit %d of %d was not to be had", i+1, n)
		}
		held[i] = p
	}
	return held
}

// raise sets *peak to n if that is more.
func raise(peak *atomic.Int64, n int64) {
	for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); {
		old = peak.Load()
	}
}

// Field case B01: the context that a permit was asked for with ends the wait and
// nothing else. Fifty callers who time out one after the other do not make deaf work
// run twice at once.
func TestEndOfTheContextIsNotTheEndOfTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		var running, peak atomic.Int64
		timedOut := 0
		for range 50 {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			p, err := pool.Acquire(ctx)
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 50*time.Millisecond {
					t.Errorf("Acquire returned %v after %v", err, time.Since(start))
				}
				timedOut++
				cancel()
				continue
			}
			raise(&peak, running.Add(1))
			go func() { // deaf
				time.Sleep(300 * time.Millisecond)
				running.Add(-1)
				p.Release(permit.Success)
			}()
			<-ctx.Done()
			cancel()
			p.Abandon()
			time.Sleep(50 * time.Millisecond)
			if _, ok := pool.TryAcquire(); ok || pool.InFlight() != 1 || pool.Stats().Overhang != 1 || !p.Held() {
				t.Fatalf("a permit was free (%v) while the work ran: %+v", ok, pool.Stats())
			}
		}
		time.Sleep(301 * time.Millisecond)
		if peak.Load() != 1 || timedOut == 0 || timedOut == 50 {
			t.Errorf("%d ran at once, %d callers of 50 timed out", peak.Load(), timedOut)
		}
		probe(t, pool)
	})
}

// Field case B11: ten permits, each released from eight goroutines at once through
// copies, come back ten times, and in flight never reads below zero.
func TestManyReleasesAtOnceInventNoCapacity(t *testing.T) {
	pool := newPool(t, 10)
	for range 50 {
		held := take(t, pool, 10)
		start, done := make(chan struct{}), make(chan struct{})
		var counted atomic.Int64
		var watch, releases sync.WaitGroup
		watch.Go(func() {
			for {
				s := pool.Stats()
				if s.InFlight < 0 || s.InFlight > 10 || s.Granted != uint64(s.InFlight)+sum(s) {
					t.Errorf("while permits come back: %+v", s)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
		for _, p := range held {
			for range 8 {
				copied := p
				releases.Go(func() {
					<-start
					if copied.Release(permit.Success) {
						counted.Add(1)
					}
				})
			}
		}
		close(start)
		releases.Wait()
		close(done)
		watch.Wait()
		if counted.Load() != 10 {
			t.Fatalf("%d releases of 10 permits counted", counted.Load())
		}
		// Each handle is void for good, also while others hold its place.
		again := take(t, pool, 10)
		for _, p := range held {
			if p.Release(permit.Success) || p.Held() {
				t.Fatal("a permit came back twice")
			}
		}
		if _, ok := pool.TryAcquire(); ok || pool.InFlight() != 10 {
			t.Fatalf("useless releases made room: in flight %d", pool.InFlight())
		}
		for _, p := range again {
			p.Release(permit.Success)
		}
	}
	probe(t, pool)
}

// Field case B11: what comes beside an error or false is nobody's permit.
func TestReleaseOfNoPermitIsHarmless(t *testing.T) {
	pool := newPool(t, 1)
	held := take(t, pool, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	beside := map[string]permit.Permit{"zero": {}}
	var err error
	if beside["a context that has ended"], err = pool.Acquire(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v", err)
	}
	if beside["a full queue"], err = pool.AcquireWithin(t.Context(), 0); !errors.Is(err, permit.ErrQueueFull) {
		t.Errorf("AcquireWithin: %v", err)
	}
	var ok bool
	if beside["false"], ok = pool.TryAcquire(); ok {
		t.Error("TryAcquire above the limit")
	}
	closed := newPool(t, 1)
	if err := closed.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if beside["a closed pool"], err = closed.Acquire(t.Context()); !errors.Is(err, permit.ErrClosed) {
		t.Errorf("Acquire after Close: %v", err)
	}
	for name, p := range beside {
		copied := p
		p.Abandon()
		if p.Release(permit.Success) || copied.Release(permit.Success) || p.Held() {
			t.Errorf("%s: it could be released", name)
		}
	}
	if s := pool.Stats(); s.InFlight != 1 || s.Overhang != 0 || sum(s) != 0 {
		t.Errorf("useless releases left %+v", s)
	}
	held[0].Release(permit.Success)
	probe(t, pool)
}

// Field case B12: of a thousand callers who start at one barrier and hold for a
// millisecond, never more run than the limit, with and without a queue, also while
// the limit goes to and fro. The callers run in parallel; only the time is virtual.
func TestBarrierOfCallersDoesNotOvershoot(t *testing.T) {
	for _, limits := range [][]int{{10}, {8, 10}, {1}} {
		synctest.Test(t, func(t *testing.T) {
			highest := limits[len(limits)-1]
			pool := newPool(t, highest)
			var running, peak atomic.Int64
			work := func(p permit.Permit) {
				raise(&peak, running.Add(1))
				if g := p.Grant(); g.InFlight < 1 || g.InFlight > g.Limit || g.Limit > highest {
					t.Errorf("granted at %+v, the limit is among %v", g, limits)
				}
				time.Sleep(time.Millisecond)
				running.Add(-1)
				p.Release(permit.Success)
			}
			const callers = 1000
			rounds := 200
			if len(limits) == 1 {
				rounds = 20
			}
			for round := range rounds {
				start := make(chan struct{})
				var all, flips sync.WaitGroup
				var admitted atomic.Int64
				for range callers {
					all.Go(func() {
						<-start
						if round%2 == 0 {
							if p, ok := pool.TryAcquire(); ok {
								admitted.Add(1)
								work(p)
							}
						} else if p, err := pool.AcquireWithin(t.Context(), 50); err == nil {
							admitted.Add(1)
							work(p)
						} else if !errors.Is(err, permit.ErrQueueFull) {
							t.Error(err)
						}
					})
				}
				flips.Go(func() {
					<-start
					for i := range 50 {
						if err := pool.Resize(limits[i%len(limits)]); err != nil {
							t.Error(err)
						}
						runtime.Gosched()
					}
				})
				synctest.Wait() // all are at the barrier
				close(start)
				all.Wait()
				flips.Wait()
				// Nobody's millisecond is over before all have tried.
				n, most := admitted.Load(), int64(highest)
				if round%2 == 1 {
					most += 50
				}
				if n < int64(limits[0]) || n > most || len(limits) == 1 && n != most {
					t.Errorf("%d of %d were admitted at a limit among %v, queue %v", n, callers, limits, round%2 == 1)
				}
			}
			if peak.Load() > int64(highest) {
				t.Errorf("%d ran at once under a limit of %d", peak.Load(), highest)
			}
			probe(t, pool)
		})
	}
}

// Field case B63: a limit below 1 or above MaxLimit is refused by name, at the start and
// later, and any other works.
func TestNonsenseLimitsAreRefusedByName(t *testing.T) {
	for _, limit := range []int{0, -1, math.MinInt} {
		if pool, err := permit.NewPool(permit.Config{Limit: limit}); pool != nil || err == nil || !contains(err, "Limit", limit) {
			t.Errorf("NewPool with limit %d: %v, %v", limit, pool, err)
		}
		pool := newPool(t, 2)
		if err := pool.Resize(limit); err == nil || !contains(err, "Resize", limit) || pool.Limit() != 2 {
			t.Errorf("Resize to %d: %v, limit %d", limit, err, pool.Limit())
		}
		probe(t, pool)
	}
	for _, limit := range []int{permit.MaxLimit + 1, math.MaxInt} {
		if pool, err := permit.NewPool(permit.Config{Limit: limit}); pool != nil || err == nil || !contains(err, "Limit", limit) {
			t.Errorf("NewPool with limit %d: %v, %v", limit, pool, err)
		}
		pool := newPool(t, 2)
		if err := pool.Resize(limit); err == nil || !contains(err, "Resize", limit) || pool.Limit() != 2 {
			t.Errorf("Resize to %d: %v, limit %d", limit, err, pool.Limit())
		}
		probe(t, pool)
	}
	pool := newPool(t, permit.MaxLimit)
	p := take(t, pool, 1)[0]
	q, ok := pool.TryAcquireLeaving(math.MaxInt)
	if ok {
		t.Error("nothing can leave MaxInt permits free")
	}
	if q.Release(permit.Success) || !p.Release(permit.Outcome(200)) || pool.Stats().Released[permit.Ignored] != 1 {
		t.Errorf("an outcome that is none does not count as ignored: %+v", pool.Stats())
	}
	if err := pool.Resize(1); err != nil {
		t.Error(err)
	}
	probe(t, pool)
}
