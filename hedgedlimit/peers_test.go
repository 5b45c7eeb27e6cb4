package hedgedlimit_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// What has gone wrong in public where hedging met a limit, a budget or a panic: one test
// for each, which this package must not fail.

// A hedge that finds the limit reached is not the result of the call.
func TestRefusalOfAHedgeIsNotTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 1, limiter.Config{}), MaxAttempts: 5, Classify: func(error) hedgedlimit.Verdict { return hedgedlimit.Fatal }})
		run(t, t.Context(), h, want{result: 1, at: time.Second, started: []time.Duration{0}}, step{takes: time.Second})
		probe(t, h)
	})
}

// At limit 4, never more than four attempts run, losers that nobody waits for included,
// however many calls hedge.
func TestHedgesDoNotExceedTheLimit(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{
			Limiter: newLimiter(t, 4, limiter.Config{MaxWaiting: limiter.Unbounded}), Losers: p, MaxAttempts: 5, Delay: hedgedlimit.Fixed(ms),
		})
		var running, most atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				_, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) {
					n := running.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					time.Sleep(time.Duration(10+i) * ms) // deaf
					running.Add(-1)
					return 0, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := most.Load(); n != 4 {
			t.Errorf("%d attempts ran at limit 4", n)
		}
		settle(time.Second)
		probe(t, h)
	})
}

// By default an error of one attempt does not end the call while another runs.
func TestFirstErrorDoesNotWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := hedgedlimit.New(hedgedlimit.Config{
			Limiter: newLimiter(t, 10, limiter.Config{}), Delay: hedgedlimit.Fixed(50 * ms), Rand: always,
		})
		if err != nil {
			t.Fatal(err)
		}
		run(t, t.Context(), h, want{result: 1, at: 100 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 100 * ms}, step{takes: ms, err: errFatal})
		probe(t, h)
	})
}

// After an error with nothing running the next attempt starts at once, not after the
// delay.
func TestErrorWithNothingRunningDoesNotWaitForTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Fixed(time.Second)})
		run(t, t.Context(), h, want{result: 2, at: 20 * ms, started: []time.Duration{0, 10 * ms}},
			step{takes: 10 * ms, err: errRetryable}, step{takes: 10 * ms})
		probe(t, h)
	})
}

// The caller who cancels, or whose deadline passes, has its answer in that instant,
// whatever attempts do and whatever timer is pending.
func TestCancellationIsAnsweredAtOnce(t *testing.T) {
	for name, config := range map[string]hedgedlimit.Config{
		"a delay is pending":   {Delay: hedgedlimit.Fixed(3 * time.Second)},
		"a back-off":           {Retry: &hedgedlimit.Backoff{Initial: time.Hour}},
		"a skip":               {Limiter: nil, Delay: hedgedlimit.Fixed(7 * ms), MaxAttempts: 2},
		"a hedge runs as well": {Delay: hedgedlimit.Fixed(20 * ms)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if name == "a skip" {
					config.Limiter = newLimiter(t, 1, limiter.Config{})
				}
				h := newHedger(t, config)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(50*ms, cancel)
				start := time.Now()
				_, err := hedgedlimit.Do(ctx, h, func(context.Context, hedgedlimit.Attempt) (int, error) {
					if config.Retry != nil {
						return 0, errRetryable
					}
					time.Sleep(time.Minute) // deaf
					return 0, nil
				})
				if d := time.Since(start); err != context.Canceled || d != 50*ms { //nolint:errorlint // bare
					t.Errorf("Do returned %v after %v", err, d)
				}
				settle(time.Hour)
				probe(t, h)
			})
		})
	}
}

// Checking and taking are one step: of many who ask at once, no more get something than
// there is.
func TestBudgetsDoNotOvershoot(t *testing.T) {
	inFlight, err := hedgedlimit.NewInFlightBudget(0, 3)
	if err != nil {
		t.Fatal(err)
	}
	ratio := newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1, Burst: 3})
	for name, b := range map[string]hedgedlimit.Budget{
		"ratio": ratio, "in flight": inFlight,
		"both": hedgedlimit.AllOf(newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1, Burst: 3}), newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1, Burst: 8})),
	} {
		var got atomic.Int64
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 64 {
			wg.Go(func() {
				<-begin
				if b.Withdraw(time.Now()) {
					got.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		if got.Load() != 3 {
			t.Errorf("%s: %d of 64 got something, there were 3", name, got.Load())
		}
	}
}

// A panic that somebody recovers costs no permit.
func TestRecoveredPanicCostsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 2, limiter.Config{}), OnPanic: func(any, []byte) {}})
		for range 10 {
			_, err := caught(func() (int, error) {
				return hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { panic("recovered upstream") })
			})
			if err != (panicError{"recovered upstream"}) {
				t.Errorf("Do ended with %v", err)
			}
		}
		probe(t, h)
	})
}

// A panic in the goroutine of an attempt does not end the process: it reaches the
// caller, or nobody if the call is over.
func TestPanicDoesNotEndTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{OnPanic: func(any, []byte) {}})
		got, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() == 2 {
				return 2, nil
			}
			<-ctx.Done()
			panic("the call is over")
		})
		if got != 2 || err != nil {
			t.Errorf("Do returned %v, %v", got, err)
		}
		synctest.Wait()
		if h.Stats().Panics != 1 {
			t.Error("the panic was not counted")
		}
		probe(t, h)
	})
}

// closer counts how often it was closed.
type closer struct{ closed *atomic.Int64 }

func (c closer) Close() error { c.closed.Add(1); return errors.New("nobody is told") }

// The results of losers are disposed of, each once, and that of the winner is not.
func TestResultsOfLosersAreDisposedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		var closed [2]atomic.Int64
		for range 100 {
			_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (closer, error) {
				time.Sleep([]time.Duration{200, 10}[a.Number()-1] * ms) // deaf
				return closer{&closed[a.Number()-1]}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		settle(time.Second)
		if closed[0].Load() != 100 || closed[1].Load() != 0 {
			t.Errorf("losers were closed %d times of 100, winners %d times", closed[0].Load(), closed[1].Load())
		}
		probe(t, h)
	})
}

// A delay that knows nothing, not a number or nothing at all, sends no hedge.
func TestColdDelaySendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{}), MaxAttempts: 5})
		for _, takes := range []time.Duration{0, time.Nanosecond, time.Hour} { // not one, and not enough
			run(t, t.Context(), h, want{result: 1, at: takes, started: []time.Duration{0}}, step{takes: takes})
		}
		if s := h.Stats(); s.DelayKnown || s.Due != 0 {
			t.Errorf("%+v", s)
		}
		probe(t, h)
	})
}

// An empty budget fills again: with the calls, and with the time where there are few.
func TestBudgetFillsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		calls int
		every time.Duration
	}{"by calls": {10, 0}, "by time": {1, time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHedger(t, hedgedlimit.Config{Budget: newBudget(t, hedgedlimit.RatioConfig{})})
				hedged := func() bool {
					before := h.Stats().Hedged
					fn, _ := script(t, step{takes: 75 * ms}, step{takes: ms})
					if _, err := hedgedlimit.Do(t.Context(), h, fn); err != nil {
						t.Error(err)
					}
					return h.Stats().Hedged > before
				}
				for hedged() {
				}
				for range c.calls {
					run(t, t.Context(), h, want{result: 1, started: []time.Duration{0}}, step{})
					time.Sleep(c.every)
				}
				if !hedged() {
					t.Errorf("after %d calls in %v there is no budget: %+v", c.calls, c.every, h.Stats())
				}
				settle(time.Second)
				probe(t, h)
			})
		})
	}
}

// When all work has ended no goroutine is left: none idles, ticks or waits for work.
func TestNoGoroutineLingers(t *testing.T) {
	h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 1000, limiter.Config{}), Delay: hedgedlimit.Fixed(100 * time.Microsecond)})
	before := runtime.NumGoroutine()
	for range 500 {
		_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() == 1 {
				<-ctx.Done() // until a hedge wins
			}
			return 0, ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The last act of an attempt's goroutine is to say that it is over.
	for patience := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(patience); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines were there before, %d are after", before, n)
	}
	var waiting permit.Stats = h.Limiter().Stats().Ledger
	if waiting.Waiting != 0 || waiting.Overhang != 0 {
		t.Errorf("%+v", waiting)
	}
}
