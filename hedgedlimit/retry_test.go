package hedgedlimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// The back-off of gRFC A6: min(initial·multiplierⁿ⁻¹, max)·U(0.8, 1.2), and no hedge.
func TestRetriesWaitTheBackoffOfA6(t *testing.T) {
	for random, factor := range map[float64]float64{0: 0.8, 0.5: 1, 0.75: 1.1} {
		synctest.Test(t, func(t *testing.T) {
			h := newHedger(t, hedgedlimit.Config{
				MaxAttempts: 5, Rand: func() float64 { return random },
				Retry: &hedgedlimit.Backoff{Initial: 100 * ms, Max: 500 * ms, Multiplier: 2},
			})
			wait := func(n float64) time.Duration { return time.Duration(n * factor * float64(ms)) }
			fail := step{takes: time.Second, err: errRetryable} // longer than any delay
			at := []time.Duration{0}
			for _, n := range []float64{100, 200, 400, 500} {
				at = append(at, at[len(at)-1]+time.Second+wait(n))
			}
			run(t, t.Context(), h, want{result: 5, at: at[4] + ms, started: at}, fail, fail, fail, fail, step{takes: ms})
			if s := h.Stats(); s.Started[limiter.Retry] != 4 || s.Hedged != 0 {
				t.Errorf("%+v", s)
			}
			probe(t, h)
		})
	}
}

// No permit is held during a back-off, and each retry takes its own.
func TestNoPermitIsHeldDuringABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Retry: &hedgedlimit.Backoff{}, Rand: func() float64 { return 0.5 }})
		time.AfterFunc(60*ms, func() {
			if n := h.Limiter().InFlight(); n != 0 {
				t.Errorf("%d in flight during the back-off", n)
			}
		})
		run(t, t.Context(), h, want{result: 2, at: 120 * ms, started: []time.Duration{0, 110 * ms}},
			step{takes: 10 * ms, err: errRetryable}, step{takes: 10 * ms})
		probe(t, h)
	})
}

// Field case B33: each attempt is a sample of its own, from its grant to its answer. What
// lies between attempts, back-offs and delays, is no latency.
func TestEachAttemptIsASampleOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spy{}
		l, err := limiter.New(limiter.Config{Algorithm: s, Classify: func(err error) permit.Outcome {
			if err != nil {
				return permit.Overload // the 503 of a service with no room
			}
			return permit.Success
		}})
		if err != nil {
			t.Fatal(err)
		}
		var took []time.Duration
		var outcomes []permit.Outcome
		var mu sync.Mutex
		told := func(e hedgedlimit.AttemptEvent) {
			mu.Lock()
			defer mu.Unlock()
			took, outcomes = append(took, e.Returned.Sub(e.Granted)), append(outcomes, e.Outcome)
		}
		h := newHedger(t, hedgedlimit.Config{
			Limiter: l, MaxAttempts: 3, Rand: func() float64 { return 0.5 }, OnAttempt: told,
			Retry: &hedgedlimit.Backoff{Initial: time.Second, Multiplier: 1},
		})
		fail := step{takes: 10 * ms, err: errRetryable}
		run(t, t.Context(), h, want{result: 3, at: 2030 * ms, started: []time.Duration{0, 1010 * ms, 2020 * ms}}, fail, fail, step{takes: 10 * ms})
		synctest.Wait()
		if !slices.Equal(took, []time.Duration{10 * ms, 10 * ms, 10 * ms}) || !slices.Equal(outcomes, []permit.Outcome{permit.Overload, permit.Overload, permit.Success}) {
			t.Errorf("attempts took %v and ended as %v", took, outcomes)
		}
		if s.mean != 10*ms {
			t.Errorf("the limit learned a latency of %v", s.mean)
		}
		took = nil
		hedged := newHedger(t, hedgedlimit.Config{OnAttempt: told})
		run(t, t.Context(), hedged, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}}, step{takes: 200 * ms}, step{takes: 10 * ms})
		synctest.Wait()
		if slices.Sort(took); !slices.Equal(took, []time.Duration{10 * ms, 60 * ms}) {
			t.Errorf("the hedge and the primary took %v", took)
		}
		probe(t, h)
	})
}

// In retry mode no hedge is sent, however long a call takes, also when the usual latency
// has been learnt.
func TestRetryModeSendsNoHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Retry: &hedgedlimit.Backoff{}, Rand: func() float64 { return 0.5 }})
		for range 200 {
			run(t, t.Context(), h, want{result: 1, at: 10 * ms, started: []time.Duration{0}}, step{takes: 10 * ms})
		}
		run(t, t.Context(), h, want{result: 1, at: time.Hour, started: []time.Duration{0}}, step{takes: time.Hour})
		if h.Stats().Due != 0 {
			t.Errorf("%+v", h.Stats())
		}
		// What was learnt is used: a retry that cannot be expected to answer is not sent.
		ctx, cancel := context.WithTimeout(t.Context(), 115*ms)
		defer cancel()
		run(t, ctx, h, want{err: errRetryable, at: 10 * ms, started: []time.Duration{0}}, step{takes: 10 * ms, err: errRetryable})
		only(t, h, hedgedlimit.SkipDeadline, 1)
		probe(t, h)
	})
}

// Law L7, L8: a back-off is a start to come; the end of the context ends it, and one
// that the deadline does not leave time for is none.
func TestBackoffEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Retry: &hedgedlimit.Backoff{}, Rand: func() float64 { return 0.5 }})
		fail := step{takes: 10 * ms, err: errRetryable}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		run(t, ctx, h, want{err: context.Canceled, at: 50 * ms, started: []time.Duration{0}}, fail)
		ctx, cancel = context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		run(t, ctx, h, want{err: errRetryable, at: 10 * ms, started: []time.Duration{0}}, fail)
		only(t, h, hedgedlimit.SkipDeadline, 1)
		probe(t, h)
	})
}

func TestFatalErrorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Retry: &hedgedlimit.Backoff{}})
		run(t, t.Context(), h, want{err: errFatal, at: ms, started: []time.Duration{0}}, step{takes: ms, err: errFatal})
		probe(t, h)
	})
}

// A pushback replaces the back-off, and the one after it begins again with Initial
// (gRFC A6: "reset").
func TestPushbackReplacesTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pushed := errors.New("come again in 70 ms")
		h := newHedger(t, hedgedlimit.Config{
			MaxAttempts: 5, Retry: &hedgedlimit.Backoff{}, Rand: func() float64 { return 0.5 },
			Pushback: func(err error) (time.Duration, bool) { return 70 * ms, errors.Is(err, pushed) },
		})
		fail := step{err: errRetryable}
		run(t, t.Context(), h, want{result: 5, at: 470 * ms, started: []time.Duration{0, 100 * ms, 300 * ms, 370 * ms, 470 * ms}},
			fail, fail, step{err: pushed}, fail, step{})
		probe(t, h)
	})
}

// Layers that try again do not multiply: the innermost work runs at most as often as
// the largest MaxAttempts says (field case K15: retries times hedges).
func TestLayersDoNotMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			l := newFixedLimiter(t, 100, limiter.Config{})
			depth := rapid.IntRange(1, 3).Draw(t, "depth")
			most := 0
			hedgers := make([]*hedgedlimit.Hedger, depth)
			for i := range hedgers {
				c := hedgedlimit.Config{Limiter: l, MaxAttempts: rapid.IntRange(1, 5).Draw(t, "attempts"), Budget: hedgedlimit.Unlimited, Gates: hedgedlimit.NoGates}
				if rapid.Bool().Draw(t, "retries") {
					c.Retry = &hedgedlimit.Backoff{Initial: ms}
				} else {
					c.Delay = hedgedlimit.Fixed(times(0, 2).Draw(t, "delay"))
				}
				most = max(most, c.MaxAttempts)
				var err error
				if hedgers[i], err = hedgedlimit.New(c); err != nil {
					t.Fatal(err)
				}
			}
			ran := make(chan struct{}, 1000)
			var work func(ctx context.Context, i int) (int, error)
			work = func(ctx context.Context, i int) (int, error) {
				if i == depth {
					ran <- struct{}{}
					time.Sleep(25 * ms)
					return 0, errRetryable
				}
				return hedgedlimit.Do(ctx, hedgers[i], func(ctx context.Context, _ hedgedlimit.Attempt) (int, error) { return work(ctx, i+1) })
			}
			if _, err := work(context.Background(), 0); !errors.Is(err, errRetryable) {
				t.Errorf("Do returned %v", err)
			}
			if n := len(ran); n > most || n < 1 {
				t.Errorf("the work ran %d times, the largest MaxAttempts is %d", n, most)
			}
			for _, h := range hedgers {
				if err := h.Close(context.Background()); err != nil {
					t.Error(err)
				}
				identities(t, h.Stats())
			}
		})
	})
}

// Calls side by side in one attempt are different work: each has its own attempts.
func TestCallsOfAFanOutInsideACallAreHedgedEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Fixed(time.Hour)})
		inner := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 100, limiter.Config{}), Delay: hedgedlimit.Fixed(10 * ms)})
		_, err := hedgedlimit.Do(t.Context(), outer, func(ctx context.Context, _ hedgedlimit.Attempt) (int, error) {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					run(t, ctx, inner, want{result: 2, at: 11 * ms, started: []time.Duration{0, 10 * ms}}, step{takes: time.Second}, step{takes: ms})
				})
			}
			wg.Wait()
			run(t, ctx, inner, want{result: 2, at: 11 * ms, started: []time.Duration{0, 10 * ms}}, step{takes: time.Second}, step{takes: ms})
			return 0, nil
		})
		if err != nil {
			t.Error(err)
		}
		synctest.Wait()
		probe(t, inner)
		probe(t, outer)
	})
}

// One logical call pays into a budget once, also if a layer that retries lies around
// one that hedges with the same budget, and not again for a retry.
func TestNestedCallsPayOnce(t *testing.T) {
	for name, c := range map[string]struct {
		shared bool
		want   float64
	}{"one budget": {true, 0.1 - 1}, "two budgets": {false, 0.1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := func() *hedgedlimit.RatioBudget {
					return newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1, Burst: 5})
				}
				inner, outer := budget(), budget()
				if c.shared {
					outer = inner
				}
				for range 3 { // room for the deposit below the cap
					inner.Withdraw(time.Now())
				}
				before := inner.Balance(time.Now())
				retries := newHedger(t, hedgedlimit.Config{Budget: outer, Retry: &hedgedlimit.Backoff{}})
				hedges := newHedger(t, hedgedlimit.Config{Budget: inner})
				n := 0
				_, err := hedgedlimit.Do(t.Context(), retries, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
					return hedgedlimit.Do(ctx, hedges, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
						if n++; n == 1 {
							return 0, fmt.Errorf("try again: %w", errFatal)
						}
						return 0, nil
					})
				})
				// The outer layer classifies the error too, so it is fatal there.
				if !errors.Is(err, errFatal) {
					t.Errorf("Do returned %v", err)
				}
				n = 0
				_, err = hedgedlimit.Do(t.Context(), retries, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
					_, err := hedgedlimit.Do(ctx, hedges, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
						if n++; n == 1 {
							return 0, errFatal
						}
						return 0, nil
					})
					if err != nil {
						err = errRetryable
					}
					return 0, err
				})
				if err != nil || n != 2 {
					t.Errorf("Do returned %v, the work ran %d times", err, n)
				}
				// Two calls, and one retry of the outer layer.
				if got := inner.Balance(time.Now()) - before; got < c.want+0.1-1e-6 || got > c.want+0.1+1e-6 {
					t.Errorf("the balance moved by %v, want %v", got, c.want+0.1)
				}
			})
		})
	}
}
