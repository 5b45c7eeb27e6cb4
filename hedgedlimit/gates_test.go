package hedgedlimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Law L4: a hedge leaves the last permits to primaries.
func TestHedgeLeavesTheReserve(t *testing.T) {
	for _, c := range []struct{ limit, reserve, hedges int }{
		{limit: 4, reserve: 2, hedges: 1}, {limit: 4, reserve: 1, hedges: 2}, {limit: 4, reserve: limiter.NoReserve, hedges: 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHedger(t, hedgedlimit.Config{
				Limiter:     newLimiter(t, c.limit, limiter.Config{Reserve: c.reserve}),
				MaxAttempts: 5, Delay: hedgedlimit.Fixed(0),
			})
			_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
				if g := a.Grant(); a.Kind() == limiter.Hedge && g.InFlight > g.Limit-max(c.reserve, 0) {
					t.Errorf("a hedge was granted at %+v with a reserve of %d", g, c.reserve)
				}
				time.Sleep(time.Second)
				return 0, nil
			})
			synctest.Wait()
			if n := h.Stats().Started[limiter.Hedge]; err != nil || int(n) != c.hedges {
				t.Errorf("limit %d, reserve %d: %d hedges, want %d (error %v)", c.limit, c.reserve, n, c.hedges, err)
			}
			probe(t, h)
		})
	}
}

// Law L4: a hedge does not overtake a caller who waits.
func TestHedgeDoesNotOvertakeAWaitingPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 2, limiter.Config{MaxWaiting: limiter.Unbounded})
		h := newHedger(t, hedgedlimit.Config{Limiter: l})
		other, _ := l.TryAcquire(limiter.Primary)
		var order []string
		go func() {
			time.Sleep(10 * ms) // the call below has the last permit by now
			p, err := l.Acquire(t.Context(), limiter.Primary)
			if err != nil {
				t.Error(err)
			}
			order = append(order, "waiter")
			time.Sleep(30 * ms)
			p.Release(permit.Success)
		}()
		time.AfterFunc(100*ms, func() { other.Release(permit.Success) }) // a hedge is due in the same instant
		result, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Kind() == limiter.Hedge {
				order = append(order, "hedge")
			} else {
				time.Sleep(200 * ms)
			}
			return a.Number(), nil
		})
		// The hedge was due at 50 and 100 ms, and found a free permit at 150 ms.
		if result != 2 || err != nil || len(order) != 2 || order[0] != "waiter" {
			t.Errorf("Do returned %v, %v; order %v", result, err, order)
		}
		settle(time.Second)
		probe(t, h)
	})
}

// Field case B58: an attempt that cannot be expected to answer in time is not sent.
func TestAttemptThatCannotAnswerBeforeTheDeadlineIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: 0.6, MinSamples: 10})})
		learn := func(d time.Duration) {
			_, _ = hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) {
				time.Sleep(d)
				return 0, nil
			}, hedgedlimit.NoHedge[int]())
		}
		for range 100 {
			learn(100 * ms) // the median, and the 60th percentile
		}
		slow := func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			select {
			case <-time.After(time.Second):
				return 0, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		for _, c := range []struct {
			deadline time.Duration
			hedges   uint64
		}{
			{deadline: 150 * ms, hedges: 0}, // at the hedge's time 50 ms are left, 100 are usual
			{deadline: 250 * ms, hedges: 1},
		} {
			before := h.Stats()
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			start := time.Now()
			_, err := hedgedlimit.Do(ctx, h, slow)
			cancel()
			after := h.Stats()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != c.deadline {
				t.Errorf("Do returned %v after %v", err, time.Since(start))
			}
			if n := after.Started[limiter.Hedge] - before.Started[limiter.Hedge]; n != c.hedges {
				t.Errorf("deadline %v: %d hedges, want %d", c.deadline, n, c.hedges)
			}
			if n := after.Skipped[hedgedlimit.SkipDeadline] - before.Skipped[hedgedlimit.SkipDeadline]; (n == 0) != (c.hedges > 0) {
				t.Errorf("deadline %v: %d skips", c.deadline, n)
			}
		}
		synctest.Wait()
		probe(t, h)
	})
}

func TestRetryThatCannotAnswerBeforeTheDeadlineEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{MinSamples: 1})})
		run(t, t.Context(), h, want{result: 1, at: 100 * ms, started: []time.Duration{0}}, step{takes: 100 * ms})
		ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
		defer cancel()
		// At 80 ms 70 are left, and 100 are usual: the failure is the answer.
		run(t, ctx, h, want{err: errRetryable, at: 80 * ms, started: []time.Duration{0}}, step{takes: 80 * ms, err: errRetryable})
		if h.Stats().Skipped[hedgedlimit.SkipDeadline] != 1 {
			t.Errorf("%+v", h.Stats())
		}
		probe(t, h)
	})
}

// A retry is what its caller waits for, so it waits for its permit as a primary may.
func TestRetryWaitsForItsPermit(t *testing.T) {
	// The primary fails at 10 ms, but its work goes on, and holds the only permit,
	// until 40 ms.
	call := func(ctx context.Context, h *hedgedlimit.Hedger) (int, error) {
		return hedgedlimit.Do(ctx, h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() > 1 {
				return a.Number(), nil
			}
			release := a.Hold()
			time.AfterFunc(40*ms, func() { release(permit.Success) })
			time.Sleep(10 * ms)
			return 0, errRetryable
		})
	}
	for name, c := range map[string]struct {
		config limiter.Config
		leaves time.Duration
		result int
		err    error
		at     time.Duration
		skips  uint64
	}{
		"until it has one":     {config: limiter.Config{MaxWaiting: 1}, leaves: time.Hour, result: 2, at: 40 * ms},
		"not where none waits": {leaves: time.Hour, err: errRetryable, at: 10 * ms, skips: 1},
		"not beyond MaxWait":   {config: limiter.Config{MaxWaiting: 1, MaxWait: 15 * ms}, leaves: time.Hour, err: errRetryable, at: 25 * ms, skips: 1},
		"while the caller does": {
			config: limiter.Config{MaxWaiting: 1}, leaves: 20 * ms, err: context.DeadlineExceeded, at: 20 * ms, skips: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := &purse{}
				h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 1, c.config), Budget: budget})
				ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
				defer cancel()
				start := time.Now()
				result, err := call(ctx, h)
				if result != c.result || err != c.err || time.Since(start) != c.at { //nolint:errorlint // unchanged
					t.Errorf("Do returned %v, %v after %v", result, err, time.Since(start))
				}
				if s := h.Stats(); s.Skipped[hedgedlimit.SkipPermit] != c.skips || budget.taken != 1-int(c.skips) {
					t.Errorf("%d taken from the budget, %+v", budget.taken, s)
				}
				settle(time.Second)
				probe(t, h)
			})
		})
	}
}

// Law L8: when no attempt runs and none can start, the call ends at once, however
// long the delay.
func TestCallThatCannotGoOnEndsAtOnce(t *testing.T) {
	for name, config := range map[string]hedgedlimit.Config{
		"no budget":        {Budget: &broke{}, MaxAttempts: 5},
		"no attempts left": {MaxAttempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config.Delay = hedgedlimit.Fixed(time.Hour)
				h := newHedger(t, config)
				run(t, t.Context(), h, want{err: errRetryable, at: 5 * ms, started: []time.Duration{0}}, step{takes: 5 * ms, err: errRetryable})
				probe(t, h)
			})
		})
	}
	// The last of several ends it, too: the hedge here, after the primary.
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		run(t, t.Context(), h, want{err: errRetryable, at: 70 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 60 * ms, err: errRetryable}, step{takes: 20 * ms, err: errRetryable})
		probe(t, h)
	})
}

func TestDelayOfZeroSendsAllAttemptsAtOnce(t *testing.T) {
	zero := func(int) (time.Duration, bool) { return 0, true }
	for name, d := range map[string]hedgedlimit.Delay{"Fixed": hedgedlimit.Fixed(0), "DelayFunc": hedgedlimit.DelayFunc(zero)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHedger(t, hedgedlimit.Config{MaxAttempts: 3, Delay: d})
				slow := step{takes: time.Second}
				run(t, t.Context(), h, want{result: 3, at: 5 * ms, started: make([]time.Duration, 3)}, slow, slow, step{takes: 5 * ms})
				synctest.Wait()
				probe(t, h)
			})
		})
	}
}

func TestDelayFuncIsAskedForEachHedgeAndMayDecline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		h := newHedger(t, hedgedlimit.Config{MaxAttempts: 5, Delay: hedgedlimit.DelayFunc(func(hedge int) (time.Duration, bool) {
			asked = append(asked, hedge)
			return time.Duration(hedge) * 10 * ms, hedge < 3
		})})
		slow := step{takes: time.Second}
		run(t, t.Context(), h, want{result: 1, at: time.Second, started: []time.Duration{0, 10 * ms, 30 * ms}}, slow, slow, slow)
		if len(asked) != 3 || asked[0] != 1 || asked[1] != 2 || asked[2] != 3 {
			t.Errorf("asked for hedges %v", asked)
		}
		synctest.Wait()
		probe(t, h)
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.DelayFunc(func(int) (time.Duration, bool) { return -1, true })})
		run(t, t.Context(), h, want{result: 1, at: time.Hour, started: []time.Duration{0}}, step{takes: time.Hour})
		probe(t, h)
	})
}

// With no delay and every hedge refused, the gates are asked once a millisecond and
// not in a loop without a pause.
func TestRefusedHedgesOfNoDelayDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &broke{}
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Fixed(0), Budget: budget})
		run(t, t.Context(), h, want{result: 1, at: 100 * ms, started: []time.Duration{0}}, step{takes: 100 * ms})
		if n := budget.withdrawals; n < 1 || n > 101 {
			t.Errorf("the budget was asked %d times in 100 ms", n)
		}
		probe(t, h)
	})
}

func TestSkipNames(t *testing.T) {
	for s, want := range map[hedgedlimit.Skip]string{
		hedgedlimit.SkipDeadline: "deadline", hedgedlimit.SkipBudget: "budget", hedgedlimit.SkipPermit: "no_permit", 99: "invalid",
	} {
		if s.String() != want {
			t.Errorf("Skip(%d) = %q, want %q", s, s, want)
		}
	}
}
