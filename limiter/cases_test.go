// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package limiter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// between is an algorithm that goes round a list of limits, one for each window, and
// every release or refusal ends a window. It can be told to rest.
type between struct {
	limits []int
	next   atomic.Int64
	rests  atomic.Bool // from here on, at the first of the list
}

func (b *between) Start(time.Time) gradient.Decision {
	return gradient.Decision{Limit: b.limits[0]}
}

func (b *between) Next(time.Time, *gradient.Window) gradient.Decision {
	if b.rests.Load() {
		return gradient.Decision{Limit: b.limits[0]}
	}
	return gradient.Decision{Limit: b.limits[int(b.next.Add(1))%len(b.limits)]}
}

// rest brings the limit back to where it began, and keeps it there.
func rest(t testing.TB, l *limiter.Limiter, b *between) {
	t.Helper()
	b.rests.Store(true)
	p, ok := l.TryAcquire(limiter.Bypass)
	if !ok || !p.Release(permit.Ignored) || l.Limit() != b.limits[0] {
		t.Errorf("at rest: a permit is free %v, limit %d", ok, l.Limit())
	}
}

// Field case B01: a permit outlives the context that it was asked for with, and Do
// holds it for as long as deaf work runs, whatever becomes of the caller's context.
func TestPermitOutlivesTheContextOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, limiter.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		busy := func(until time.Duration, since time.Time) {
			t.Helper()
			time.Sleep(until - time.Since(since))
			if _, ok := l.TryAcquire(limiter.Primary); ok || l.InFlight() != 1 {
				t.Errorf("after %v: a permit was free (%v), in flight %d", until, ok, l.InFlight())
			}
		}
		start := time.Now()
		p, err := l.Acquire(ctx, limiter.Primary)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(300*time.Millisecond, func() { p.Release(permit.Expired) })
		busy(51*time.Millisecond, start)
		p.Abandon()
		busy(299*time.Millisecond, start)
		time.Sleep(2 * time.Millisecond)
		probe(t, l)

		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start = time.Now()
		done := make(chan error)
		go func() {
			done <- l.Do(ctx, func(ctx context.Context) error { time.Sleep(300 * time.Millisecond); return ctx.Err() })
		}()
		busy(51*time.Millisecond, start)
		busy(299*time.Millisecond, start)
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 300*time.Millisecond {
			t.Errorf("Do returned %v after %v", err, time.Since(start))
		}
		probe(t, l)
	})
}

// Field case B11: a permit of the limiter that is released from eight goroutines at
// once, in either way, comes back once and teaches once.
func TestManyReleasesOfOnePermitCountOnce(t *testing.T) {
	l := fixed(t, 10, limiter.Config{})
	for range 50 {
		var held []limiter.Permit
		for range 10 {
			p, ok := l.TryAcquire(limiter.Primary)
			if !ok {
				t.Fatalf("in flight %d", l.InFlight())
			}
			held = append(held, p)
		}
		var counted atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		for _, p := range held {
			for i := range 8 {
				all.Go(func() {
					<-start
					ok := false
					if i%2 == 0 {
						ok = p.Release(permit.Success)
					} else {
						ok = p.ReleaseAfter(permit.Success, time.Millisecond)
					}
					if ok {
						counted.Add(1)
					}
					if n := l.InFlight(); n < 0 || n > 10 {
						t.Errorf("in flight %d", n)
					}
				})
			}
		}
		close(start)
		all.Wait()
		if counted.Load() != 10 {
			t.Fatalf("%d releases of 10 permits counted", counted.Load())
		}
	}
	if n := l.Stats().Ledger.Released[permit.Success]; n != 500 {
		t.Errorf("%d permits came back, want 500", n)
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var none []limiter.Permit
	for _, kind := range []limiter.Kind{limiter.Primary, limiter.Hedge, limiter.Retry, limiter.Bypass} {
		p, err := l.Acquire(gone, kind)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", kind, err)
		}
		none = append(none, p)
	}
	for _, p := range append(none, limiter.Permit{}) {
		p.Abandon()
		if p.Release(permit.Success) || p.ReleaseAfter(permit.Success, 0) || p.Held() {
			t.Error("a permit that was never granted could be released")
		}
	}
	probe(t, l)
}

// Field case B12: of a thousand callers who start at one barrier never more run than
// the limit, with and without a queue, while the limit goes to and fro. They run in
// parallel; only the time is virtual.
func TestBarrierOfCallersStaysWithinTheLimit(t *testing.T) {
	for _, limits := range [][]int{{10}, {10, 8}, {1}} {
		synctest.Test(t, func(t *testing.T) {
			highest := limits[0]
			b := &between{limits: limits}
			l := limitedBy(t, b, limiter.Config{MaxWaiting: 50, Reserve: limiter.NoReserve})
			var running, peak atomic.Int64
			work := func(p limiter.Permit) {
				n := running.Add(1)
				for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); {
					old = peak.Load()
				}
				if g := p.Grant(); g.InFlight < 1 || g.InFlight > g.Limit || g.Limit > highest {
					t.Errorf("granted at %+v, the limit is among %v", g, limits)
				}
				time.Sleep(time.Millisecond)
				running.Add(-1)
				p.Release(permit.Success)
			}
			rounds := 200
			if len(limits) == 1 {
				rounds = 20
			}
			for round := range rounds {
				start := make(chan struct{})
				var all sync.WaitGroup
				var admitted atomic.Int64
				for range 1000 {
					all.Go(func() {
						<-start
						if round%2 == 0 {
							if p, ok := l.TryAcquire(limiter.Primary); ok {
								admitted.Add(1)
								work(p)
							}
						} else if p, err := l.Acquire(t.Context(), limiter.Primary); err == nil {
							admitted.Add(1)
							work(p)
						} else if err != limiter.ErrLimitExceeded { //nolint:errorlint // the bare sentinel is the claim
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				close(start)
				all.Wait()
				if n := admitted.Load(); len(limits) == 1 && n != int64(limits[0]+50*(round%2)) {
					t.Errorf("%d of 1000 were admitted at a limit of %v, queue %v", n, limits, round%2 == 1)
				}
			}
			if peak.Load() > int64(highest) {
				t.Errorf("%d ran at once under a limit of %d", peak.Load(), highest)
			}
			rest(t, l, b)
			probe(t, l)
		})
	}
}

// Field case B13: a caller who has gone gets no permit although one is free, and one
// who goes as the turn comes loses none.
func TestCallerWhoHasGoneGetsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, config := range []limiter.Config{
			{}, {MaxWaiting: 5}, {MaxWaiting: limiter.Unbounded}, {MaxWaiting: limiter.Unbounded, MaxWait: time.Hour},
		} {
			l := fixed(t, 1, config)
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			for range 1000 {
				err := l.Do(gone, func(context.Context) error { t.Error("the work of a caller who has gone ran"); return nil })
				if err != context.Canceled { //nolint:errorlint // the bare error is the claim
					t.Fatalf("Do: %v", err)
				}
			}
			if s := l.Stats(); s.Ledger.Granted != 0 || s.Rejected.Canceled != 1000 {
				t.Errorf("%+v", s)
			}
			if config.MaxWaiting != 0 {
				for range 1000 {
					p, _ := l.TryAcquire(limiter.Primary)
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error, 1)
					go func() {
						done <- l.Do(ctx, func(context.Context) error { t.Error("the work of a caller who has gone ran"); return nil })
					}()
					synctest.Wait()
					cancel()
					p.Release(permit.Success)
					if err := <-done; err != context.Canceled { //nolint:errorlint // as above
						t.Fatalf("cancelled, then its turn: %v", err)
					}
				}
			}
			probe(t, l)
		}
	})
}

// Field case B14: one permit is released and the head of the queue leaves in the same
// step; the next is granted with no further release. The queues are those of each
// configuration that has one.
func TestTurnOfACallerWhoLeavesGoesToTheNext(t *testing.T) {
	for _, config := range []limiter.Config{
		{MaxWaiting: 5}, {MaxWaiting: limiter.Unbounded}, {MaxWaiting: 5, MaxWait: time.Hour}, {MaxWaiting: limiter.Unbounded, MaxWait: time.Hour},
	} {
		for round := range 100 {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, config)
				held, _ := l.TryAcquire(limiter.Primary)
				ctx, cancel := context.WithCancel(t.Context())
				errs := [3]chan error{make(chan error, 1), make(chan error, 1), make(chan error, 1)}
				stop := make(chan struct{})
				for i, c := range []context.Context{ctx, t.Context(), t.Context()} {
					go func() {
						p, err := l.Acquire(c, limiter.Primary)
						errs[i] <- err
						select {
						case <-stop:
						case <-c.Done(): // the work of A ends with its context
						}
						p.Release(permit.Success)
					}()
					synctest.Wait()
				}
				if round%2 == 0 {
					cancel()
					held.Release(permit.Success)
				} else {
					held.Release(permit.Success)
					cancel()
				}
				synctest.Wait()
				if len(errs[1]) != 1 || len(errs[2]) != 0 || l.InFlight() != 1 || l.Stats().Ledger.Waiting != 1 {
					t.Errorf("%+v: B returned %d times, C %d times; %+v", config, len(errs[1]), len(errs[2]), l.Stats().Ledger)
				}
				close(stop)
				synctest.Wait()
				probe(t, l)
			})
		}
	}
}

// Field case B17: every hook of the limiter may use the limiter, Do included.
func TestHooksMayUseTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *limiter.Limiter
		called := make(map[string]int)
		depth := 0
		use := func(hook string) {
			called[hook]++
			if depth > 1 {
				return
			}
			depth++
			defer func() { depth-- }()
			if p, ok := l.TryAcquire(limiter.Primary); ok {
				p.Release(permit.Success)
			}
			_, _, _, _ = l.InFlight(), l.Limit(), l.Stats(), l.LastPressure()
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_ = l.Do(ended, func(context.Context) error { return nil })
			if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil && err != limiter.ErrLimitExceeded { //nolint:errorlint // the bare sentinel
				t.Error(err)
			}
		}
		h := &hooked{use: use}
		l = limitedBy(t, h, limiter.Config{
			Classify:      func(error) permit.Outcome { use("Classify"); return permit.Success },
			OnLimitChange: func(limiter.Change) { use("OnLimitChange"); panic("told to OnPanic") },
			OnPanic:       func(any, []byte) { use("OnPanic") },
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 100 {
				p, ok := l.TryAcquire(limiter.Primary)
				if !ok {
					t.Error("no permit")
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				context.AfterFunc(ctx, func() { defer close(ended); p.Release(permit.Canceled); _, _ = l.InFlight(), l.Limit() })
				cancel()
				<-ended
				if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatal("the limiter hangs in its own hook")
		}
		for _, hook := range []string{"Next", "Classify", "OnLimitChange", "OnPanic"} {
			if called[hook] == 0 {
				t.Errorf("%s was never called", hook)
			}
		}
		h.rests = true
		probe(t, l)
	})
}

// hooked is an algorithm that calls back, and moves the limit each time.
type hooked struct {
	use   func(string)
	high  bool
	rests bool
}

func (h *hooked) Start(time.Time) gradient.Decision { return gradient.Decision{Limit: 20} }

func (h *hooked) Next(time.Time, *gradient.Window) gradient.Decision {
	if !h.rests {
		h.use("Next")
		h.high = !h.high
	}
	if h.high {
		return gradient.Decision{Limit: 21}
	}
	return gradient.Decision{Limit: 20}
}
