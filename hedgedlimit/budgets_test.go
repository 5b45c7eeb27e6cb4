package hedgedlimit_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

func newThrottle(t interface{ Fatal(...any) }, tokens, ratio float64) *hedgedlimit.Throttle {
	b, err := hedgedlimit.NewThrottle(tokens, ratio)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Quoted from gRFC A6: "If token_count is less than or equal to the threshold, defined
// to be (maxTokens / 2), then RPCs will not be retried".
func TestThrottleShutsAtHalfOfItsTokens(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		tokens   float64
		failures int // that shut it
	}{{10, 5}, {3, 2}, {1, 1}, {1000, 500}, {0.001, 1}} {
		b := newThrottle(t, c.tokens, 0.1)
		for i := range c.failures {
			if !b.Withdraw(now) {
				t.Errorf("%v tokens: shut after %d failures, want %d", c.tokens, i, c.failures)
			}
			b.Answered(now, hedgedlimit.AnswerNonFatal)
		}
		if b.Withdraw(now) || b.Balance(now) != 0 {
			t.Errorf("%v tokens: open after %d failures, balance %v", c.tokens, c.failures, b.Balance(now))
		}
	}
	b := newThrottle(t, 10, 0.1)
	for range 100 {
		b.Answered(now, hedgedlimit.AnswerNonFatal)
	}
	for i := range 51 {
		if b.Withdraw(now) {
			t.Errorf("open after %d successes from nothing, want 51", i)
		}
		b.Answered(now, hedgedlimit.AnswerSuccess)
	}
	if !b.Withdraw(now) {
		t.Error("shut after 51 successes")
	}
	b = newThrottle(t, 2, 1)
	b.Answered(now, hedgedlimit.AnswerFatal)
	b.Refund(now)
	b.Deposit(now)
	b.Ended(now, true)
	if got := b.Balance(now); got != 1 {
		t.Errorf("a fatal failure, a refund or a deposit moved the balance to %v", got)
	}
}

// The three decimals of gRFC A6 are kept exactly, and more are cut off.
func TestThrottleKeepsThreeDecimals(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ ratio, want float64 }{
		{0.5466, 0.546}, {0.9999, 0.999}, {1.001, 1.001}, {1.003, 1.003}, {1.005, 1.005}, {0.251, 0.251}, {0.502, 0.502},
	} {
		b := newThrottle(t, 1000, c.ratio)
		for range 1000 {
			b.Answered(now, hedgedlimit.AnswerNonFatal)
		}
		for range 600 {
			b.Answered(now, hedgedlimit.AnswerSuccess)
		}
		if got, want := b.Balance(now), max(0, 600*c.want-500); math.Abs(got-want) > 1e-9 {
			t.Errorf("ratio %v: balance %v, want %v", c.ratio, got, want)
		}
	}
	for _, c := range [][2]float64{
		{0, 1}, {-1, 1}, {1000.001, 1}, {math.NaN(), 1}, {math.Inf(1), 1}, {0.0001, 1},
		{10, 0}, {10, -1}, {10, 0.0004}, {10, math.NaN()}, {10, math.Inf(1)},
	} {
		if b, err := hedgedlimit.NewThrottle(c[0], c[1]); b != nil || err == nil || !strings.HasPrefix(err.Error(), "hedgedlimit: Throttle: ") {
			t.Errorf("NewThrottle(%v, %v): %v, %v", c[0], c[1], b, err)
		}
	}
}

// In a call: failures shut the throttle for all methods of the server, a hedge is then a
// skip, and losers that were cancelled count neither way.
func TestThrottleFollowsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThrottle(t, 4, 0.5)
		h := newHedger(t, hedgedlimit.Config{Budget: b})
		other := newHedger(t, hedgedlimit.Config{Budget: b})
		balance := func(want float64) {
			t.Helper()
			synctest.Wait()
			if got := b.Balance(time.Now()); got != want {
				t.Errorf("balance %v, want %v", got, want)
			}
		}
		run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}}, step{takes: time.Hour}, step{takes: 10 * ms})
		balance(2) // full: a success pays nothing, the loser takes nothing
		fail := step{takes: ms, err: errRetryable}
		run(t, t.Context(), h, want{err: errRetryable, at: 2 * ms, started: []time.Duration{0, ms}}, fail, fail)
		balance(0)
		run(t, t.Context(), other, want{result: 1, at: 120 * ms, started: []time.Duration{0}}, step{takes: 120 * ms})
		only(t, other, hedgedlimit.SkipBudget, 2)
		balance(0.5)
		run(t, t.Context(), h, want{err: errFatal, at: ms, started: []time.Duration{0}}, step{takes: ms, err: errFatal})
		balance(0.5)
		probe(t, h)
	})
}

// What ends an attempt with the caller's context says nothing about the other side, whether
// the caller leaves or its deadline passes. A deadline of the other side's does.
func TestEndOfTheCallersContextTakesNoToken(t *testing.T) {
	for name, c := range map[string]struct {
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		takes time.Duration
		want  float64
	}{
		"canceled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(60*ms, cancel)
			return ctx, cancel
		}, time.Hour, 2},
		"too late": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 60*ms)
		}, time.Hour, 2},
		"of the other side": {context.WithCancel, ms, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newThrottle(t, 4, 0.5)
				h := newHedger(t, hedgedlimit.Config{Budget: b, Classify: func(error) hedgedlimit.Verdict { return hedgedlimit.NonFatal }})
				ctx, cancel := c.ctx(t.Context())
				defer cancel()
				_, err := hedgedlimit.Do(ctx, h, func(ctx context.Context, _ hedgedlimit.Attempt) (int, error) {
					select {
					case <-ctx.Done():
						return 0, ctx.Err()
					case <-time.After(c.takes):
						return 0, context.DeadlineExceeded
					}
				})
				synctest.Wait()
				if got := b.Balance(time.Now()); err == nil || got != c.want {
					t.Errorf("after %v the balance is %v; want %v", err, got, c.want)
				}
				probe(t, h)
			})
		})
	}
}

// A pushback that asks for no further attempt is a sign of overload, whatever the error
// is (gRFC A6).
func TestDontRetryPushbackTakesAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThrottle(t, 4, 0.5)
		h := newHedger(t, hedgedlimit.Config{Budget: b, Pushback: func(error) (time.Duration, bool) { return -1, true }})
		run(t, t.Context(), h, want{err: errFatal, at: ms, started: []time.Duration{0}}, step{takes: ms, err: errFatal})
		run(t, t.Context(), h, want{err: errRetryable, at: ms, started: []time.Duration{0}}, step{takes: ms, err: errRetryable})
		if got := b.Balance(time.Now()); got != 0 {
			t.Errorf("balance %v", got)
		}
		probe(t, h)
	})
}

// Extra attempts in flight stay within the share of the primaries in flight, or the
// floor, counted until their work has ended.
func TestInFlightBudgetCountsWorkUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := hedgedlimit.NewInFlightBudget(0.5, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := newHedger(t, hedgedlimit.Config{Budget: b})
		// The hedge loses and is deaf: it counts for 500 ms.
		run(t, t.Context(), h, want{result: 1, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 60 * ms}, step{takes: 500 * ms, deaf: true})
		run(t, t.Context(), h, want{result: 1, at: 60 * ms, started: []time.Duration{0}}, step{takes: 60 * ms})
		only(t, h, hedgedlimit.SkipBudget, 1)
		settle(time.Second)
		if got := b.Balance(time.Now()); got != 1 {
			t.Errorf("at rest there is room for %v, the floor is 1", got)
		}
		now := time.Now()
		for range 6 {
			b.Deposit(now)
		}
		for i, want := range []bool{true, true, true, false} {
			if got := b.Withdraw(now); got != want {
				t.Errorf("extra attempt %d of 6 primaries: %v", i+1, got)
			}
		}
		for range 6 {
			b.Ended(now, false)
		}
		for range 3 {
			b.Ended(now, true)
		}
		probe(t, h)
	})
	for _, c := range []struct {
		ratio float64
		floor int
	}{{math.NaN(), 1}, {-0.1, 1}, {1.1, 1}, {0.1, -1}, {0.1, math.MaxInt}} {
		if b, err := hedgedlimit.NewInFlightBudget(c.ratio, c.floor); b != nil || err == nil || !strings.HasPrefix(err.Error(), "hedgedlimit: ") {
			t.Errorf("NewInFlightBudget(%v, %v): %v, %v", c.ratio, c.floor, b, err)
		}
	}
}

// Law L9: at rest an InFlightBudget is as at first, whatever calls did.
func TestInFlightBudgetIsBalancedAtRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			b, err := hedgedlimit.NewInFlightBudget(0.5, 1)
			if err != nil {
				t.Fatal(err)
			}
			h, err := hedgedlimit.New(hedgedlimit.Config{
				Limiter: newFixedLimiter(t, rapid.IntRange(1, 4).Draw(t, "limit"), limiter.Config{}),
				Budget:  b, Gates: hedgedlimit.NoGates, MaxAttempts: 4, Delay: hedgedlimit.Fixed(grid), OnPanic: func(any, []byte) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(1, 6).Draw(t, "calls") {
				steps := rapid.SliceOfN(rapid.Custom(drawAttempt), 4, 4).Draw(t, "steps")
				go func() {
					_, _ = caught(func() (int, error) {
						return hedgedlimit.Do(context.Background(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
							s := steps[a.Number()-1]
							time.Sleep(s.takes)
							switch s.ends {
							case panics:
								panic("scripted")
							case exits:
								goexit()
							case succeeds:
								return 1, nil
							case failsRetryable, failsFatal:
							}
							return 0, errRetryable
						})
					})
				}()
				time.Sleep(times(0, 3).Draw(t, "pause"))
			}
			synctest.Wait()
			time.Sleep(time.Minute)
			if err := h.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := b.Balance(time.Now()); got != 1 {
				t.Errorf("at rest there is room for %v, the floor is 1", got)
			}
		})
	})
}

// Law L9: a composite takes from all or from none.
func TestAllOfTakesFromAllOrNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		var parts []hedgedlimit.Budget
		var left []int
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			n := rapid.IntRange(1, 5).Draw(t, "tokens")
			parts = append(parts, newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1, Burst: n}))
			left = append(left, n)
		}
		all := hedgedlimit.AllOf(parts...)
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			room := true
			for _, n := range left {
				room = room && n > 0
			}
			if got := all.Withdraw(now); got != room {
				t.Fatalf("Withdraw with %v left: %v", left, got)
			}
			refund := room && rapid.Bool().Draw(t, "refund")
			if refund {
				all.Refund(now)
			}
			least := math.Inf(1)
			for i := range left {
				if room && !refund {
					left[i]--
				}
				if got := parts[i].Balance(now); got != float64(left[i]) {
					t.Fatalf("part %d has %v, want %d", i, got, left[i])
				}
				least = min(least, float64(left[i]))
			}
			if got := all.Balance(now); got != least {
				t.Fatalf("balance %v of %v", got, left)
			}
		}
	})
}

// A composite passes on what its parts follow.
func TestAllOfPassesAnswersOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := newThrottle(t, 4, 0.5)
		inFlight, err := hedgedlimit.NewInFlightBudget(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := newHedger(t, hedgedlimit.Config{Budget: hedgedlimit.AllOf(hedgedlimit.Unlimited, throttle, inFlight)})
		fail := step{takes: ms, err: errRetryable}
		run(t, t.Context(), h, want{err: errRetryable, at: 2 * ms, started: []time.Duration{0, ms}}, fail, fail)
		if throttle.Balance(time.Now()) != 0 || inFlight.Balance(time.Now()) != 1 {
			t.Errorf("throttle %v, in flight %v", throttle.Balance(time.Now()), inFlight.Balance(time.Now()))
		}
		probe(t, h)
	})
}
