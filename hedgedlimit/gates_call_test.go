package hedgedlimit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// always and never draw for the win gate.
func always() float64 { return 0 }
func never() float64  { return 0.999 }

// only checks that one reason and no other was counted, so often.
func only(t *testing.T, h *hedgedlimit.Hedger, reason hedgedlimit.Skip, want uint64) {
	t.Helper()
	for r, n := range h.Stats().Skipped {
		if hedgedlimit.Skip(r) == reason && n != want || hedgedlimit.Skip(r) != reason && n != 0 {
			t.Errorf("%d skips for %v, want %d for %v and no others", n, hedgedlimit.Skip(r), want, reason)
		}
	}
}

// A no of the win gate is final for the call: at a later draw it would be a yes half
// the time.
func TestNoOfTheWinGateIsFinalForTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draws := 0
		h := newHedger(t, hedgedlimit.Config{Gates: new(hedgedlimit.Gates), MaxAttempts: 3, Delay: hedgedlimit.Fixed(10 * ms), Rand: func() float64 { draws++; return 0.25 }})
		run(t, t.Context(), h, want{result: 1, at: time.Second, started: []time.Duration{0}}, step{takes: time.Second})
		only(t, h, hedgedlimit.SkipWin, 1)
		if draws != 1 {
			t.Errorf("%d draws", draws)
		}
		probe(t, h)
	})
}

// A yes of the win gate holds until the hedge is sent: a skip by another gate does not
// make it pass twice. Each hedge has a draw of its own.
func TestOneDrawForEachHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draws := 0
		l := newLimiter(t, 3, limiter.Config{})
		h := newHedger(t, hedgedlimit.Config{Limiter: l, Gates: new(hedgedlimit.Gates), MaxAttempts: 3, Delay: hedgedlimit.Fixed(10 * ms), Rand: func() float64 { draws++; return 0 }})
		a, _ := l.TryAcquire(limiter.Primary)
		b, _ := l.TryAcquire(limiter.Primary)
		time.AfterFunc(45*ms, func() { a.Release(permit.Success); b.Release(permit.Success) })
		run(t, t.Context(), h, want{result: 1, at: 100 * ms, started: []time.Duration{0, 50 * ms, 60 * ms}},
			step{takes: 100 * ms}, step{takes: time.Second}, step{takes: time.Second})
		only(t, h, hedgedlimit.SkipPermit, 4)
		if draws != 2 {
			t.Errorf("%d draws for 2 hedges", draws)
		}
		settle(time.Second)
		probe(t, h)
	})
}

// A retry has nothing else that the caller could wait for, so it asks no gate.
func TestRetryAsksNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, limiter.Config{})
		h := newHedger(t, hedgedlimit.Config{Limiter: l, Gates: new(hedgedlimit.Gates), Rand: never, MaxAttempts: 3})
		p, _ := l.TryAcquire(limiter.Primary)
		if _, ok := l.TryAcquire(limiter.Primary); ok { // pressure
			t.Error("a limit of 1")
		}
		p.Release(permit.Success)
		fail := step{takes: 10 * ms, err: errRetryable}
		run(t, t.Context(), h, want{result: 3, at: 30 * ms, started: []time.Duration{0, 10 * ms, 20 * ms}}, fail, fail, step{takes: 10 * ms})
		only(t, h, hedgedlimit.SkipWin, 0)
		probe(t, h)
	})
}

// No hedge is sent within a second after a primary was refused, and one is after it: a
// skip is no end, the hedge is due again after the delay.
func TestNoHedgeWithinASecondOfPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 10, limiter.Config{})
		h := newHedger(t, hedgedlimit.Config{Limiter: l, Gates: new(hedgedlimit.Gates), Rand: always})
		var held []limiter.Permit
		for {
			p, ok := l.TryAcquire(limiter.Primary)
			if !ok {
				break
			}
			held = append(held, p)
		}
		for _, p := range held {
			p.Release(permit.Success)
		}
		run(t, t.Context(), h, want{result: 2, at: 1060 * ms, started: []time.Duration{0, 1050 * ms}},
			step{takes: 3 * time.Second}, step{takes: 10 * ms})
		only(t, h, hedgedlimit.SkipPressure, 20)
		settle(3 * time.Second)
		probe(t, h)
	})
}

// A hedge that is refused is no pressure: only those whose refusal somebody feels are.
func TestSkippedHedgeIsNoPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 2, limiter.Config{Reserve: 1})
		h := newHedger(t, hedgedlimit.Config{Limiter: l, Gates: new(hedgedlimit.Gates), Rand: always, Delay: hedgedlimit.Fixed(10 * ms)})
		run(t, t.Context(), h, want{result: 1, at: 95 * ms, started: []time.Duration{0}}, step{takes: 95 * ms})
		only(t, h, hedgedlimit.SkipPermit, 9)
		if !l.LastPressure().IsZero() {
			t.Error("a skipped hedge counts as pressure")
		}
		probe(t, h)
	})
}

// In a surge no hedge is sent: what is in flight has risen to more than three times its
// mean, and to more than half the limit.
func TestNoHedgeInASurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 40, limiter.Config{})
		h := newHedger(t, hedgedlimit.Config{Limiter: l, Gates: new(hedgedlimit.Gates), Rand: always})
		for range 1000 {
			run(t, t.Context(), h, want{result: 1, at: 10 * ms, started: []time.Duration{0}}, step{takes: 10 * ms})
		}
		slow := func(begins int) {
			done := make(chan struct{})
			for range begins {
				// Hedges that are due in one instant may see the same room.
				time.Sleep(time.Microsecond)
				go func() {
					defer func() { done <- struct{}{} }()
					_, _ = hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
						select {
						case <-time.After(60 * ms):
						case <-ctx.Done():
						}
						return 0, ctx.Err()
					})
				}()
			}
			synctest.Wait()
			run(t, t.Context(), h, want{result: 1, at: 10 * ms, started: []time.Duration{0}}, step{takes: 10 * ms}) // no standstill
			for range begins {
				<-done
			}
		}
		slow(20) // with one more it is above half of 40
		only(t, h, hedgedlimit.SkipSurge, 20)
		slow(19)
		if s := h.Stats(); s.Started[limiter.Hedge] != 1 || s.Skipped[hedgedlimit.SkipSurge] != 20+18 {
			t.Errorf("19 in flight, room for 1: %d hedges, %d skips", s.Started[limiter.Hedge], s.Skipped[hedgedlimit.SkipSurge])
		}
		settle(time.Second)
		probe(t, h)
	})
}

// While nobody is answered no hedge is sent, but one a second. An answer to anybody, be it
// an error, is enough; a call that is cut short is none.
func TestNoHedgeInAStandstill(t *testing.T) {
	for end, answers := range map[error]bool{nil: true, errRetryable: true, context.Canceled: false, context.DeadlineExceeded: false} {
		synctest.Test(t, func(t *testing.T) {
			h := newHedger(t, hedgedlimit.Config{
				Limiter: newLimiter(t, 100, limiter.Config{}), Gates: new(hedgedlimit.Gates), Rand: always,
				MaxAttempts: 2, Delay: hedgedlimit.Fixed(52 * ms),
			})
			call := func(ctx context.Context, takes time.Duration, err error) {
				_, _ = hedgedlimit.Do(ctx, h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
					select {
					case <-time.After(takes):
						return 0, err
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				})
			}
			sent := func(hedges, skips uint64) {
				t.Helper()
				synctest.Wait()
				only(t, h, hedgedlimit.SkipStandstill, skips)
				if n := h.Stats().Started[limiter.Hedge]; n != hedges {
					t.Errorf("after an end with %v %d hedges were sent, want %d", end, n, hedges)
				}
			}
			var calls sync.WaitGroup
			for range 12 { // at 0, 5, … 55 ms, due at 52, 57, … 107 ms
				calls.Go(func() { call(t.Context(), 2*time.Second, nil) })
				time.Sleep(5 * ms)
			}
			sent(1, 1)
			switch end {
			case context.Canceled:
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(ms, cancel)
				call(ctx, time.Second, nil)
			case context.DeadlineExceeded:
				ctx, cancel := context.WithTimeout(t.Context(), ms)
				defer cancel()
				call(ctx, time.Second, nil)
			default:
				call(t.Context(), ms, end)
			}
			time.Sleep(29 * ms)
			if answers {
				sent(1+6, 1)
			} else {
				sent(1, 1+6)
				time.Sleep(time.Second)
				if n := h.Stats().Started[limiter.Hedge]; n != 2 {
					t.Errorf("a second later %d hedges were sent, want 2", n)
				}
			}
			calls.Wait()
			settle(3 * time.Second)
			probe(t, h)
		})
	}
}

// Where primaries go to a replica that is dead, and hedges to another, the gate opens within
// a second and stays open.
func TestStandstillOfPrimariesAloneIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{
			Limiter: newLimiter(t, 200, limiter.Config{}), Gates: new(hedgedlimit.Gates), Rand: always,
			MaxAttempts: 2, Delay: hedgedlimit.Fixed(152 * ms),
		})
		run(t, t.Context(), h, want{result: 1, at: 160 * ms, started: []time.Duration{0, 152 * ms}}, step{takes: 160 * ms}, step{takes: time.Second})
		var calls sync.WaitGroup
		for i := range 200 {
			calls.Go(func() {
				began := time.Now()
				_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
					takes := 5 * time.Second
					if a.Number() > 1 {
						takes = ms
					}
					select {
					case <-time.After(takes):
					case <-ctx.Done():
					}
					return 0, ctx.Err()
				})
				if took := time.Since(began); err != nil || took > 1200*ms || i >= 100 && took != 153*ms {
					t.Errorf("call %d took %v: %v", i, took, err)
				}
			})
			time.Sleep(14 * ms)
		}
		calls.Wait()
		if s := h.Stats(); s.Skipped[hedgedlimit.SkipStandstill] < 60 {
			t.Errorf("skipped %v: the gate was never shut", s.Skipped)
		}
		settle(time.Second)
		probe(t, h)
	})
}

// Suppression: hedges that never win are sent less and less, down to one in 32, and
// more again when they win. This is what keeps hedging that does not pay from costing.
func TestHedgingThatDoesNotPayBacksOffAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		h := newHedger(t, hedgedlimit.Config{Gates: new(hedgedlimit.Gates), Delay: hedgedlimit.Fixed(10 * ms), Rand: func() float64 {
			n++ // every number of 1/64, as even as can be
			return float64(n*37%64) / 64
		}})
		calls := func(n int, hedge time.Duration) (share float64) {
			before := h.Stats()
			for range n {
				fn, _ := script(t, step{takes: 20 * ms}, step{takes: hedge})
				if _, err := hedgedlimit.Do(t.Context(), h, fn); err != nil {
					t.Fatal(err)
				}
			}
			return float64(h.Stats().Hedged-before.Hedged) / float64(n)
		}
		if share := calls(64, time.Second); share > 0.25 {
			t.Errorf("at first %.2f are hedged", share)
		}
		calls(4000, time.Second)
		if share := calls(640, time.Second); share != 1./32 {
			t.Errorf("when none wins %.3f are hedged", share)
		}
		if s := h.Stats().Gates; s.Share != 1./32 || s.WinRate > 0.01 || s.Threshold != 0.5 {
			t.Errorf("%+v", s)
		}
		calls(20_000, ms)
		if share := calls(640, ms); share != 1 {
			t.Errorf("when all win %.3f are hedged", share)
		}
		settle(time.Minute)
		probe(t, h)
	})
}

// The caller's cancellation decides nothing about hedges; its deadline does, since the
// call was too slow with them.
func TestCancelledCallTeachesTheWinGateNothing(t *testing.T) {
	for name, c := range map[string]struct {
		context func(context.Context) (context.Context, context.CancelFunc)
		teaches bool
	}{
		"cancellation": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(80*ms, cancel)
			return ctx, cancel
		}, false},
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 80*ms)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHedger(t, hedgedlimit.Config{Gates: new(hedgedlimit.Gates), Rand: always})
				for range 16 {
					ctx, cancel := c.context(t.Context())
					fn, _ := script(t, step{takes: time.Hour}, step{takes: time.Hour})
					_, _ = hedgedlimit.Do(ctx, h, fn)
					cancel()
					if c.teaches { // so that it is no standstill
						run(t, t.Context(), h, want{result: 1, at: ms, started: []time.Duration{0}}, step{takes: ms})
					}
				}
				if s := h.Stats(); (s.Gates.Share != 0.25) != c.teaches || s.Started[limiter.Hedge] != 16 {
					t.Errorf("%+v", s)
				}
				settle(time.Second)
				probe(t, h)
			})
		})
	}
}

// Hedgers that share a limiter share their gates.
func TestGatesCanBeShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := new(hedgedlimit.Gates)
		l := newLimiter(t, 10, limiter.Config{})
		a := newHedger(t, hedgedlimit.Config{Limiter: l, Gates: gates, Rand: always})
		b := newHedger(t, hedgedlimit.Config{Limiter: l, Gates: gates, Rand: always})
		for range 16 {
			run(t, t.Context(), a, want{result: 1, at: 60 * ms, started: []time.Duration{0, 50 * ms}}, step{takes: 60 * ms}, step{takes: time.Second})
		}
		if s := b.Stats().Gates; s.Share != 1./8 {
			t.Errorf("%+v", s)
		}
		settle(time.Second)
		probe(t, a)
	})
}
