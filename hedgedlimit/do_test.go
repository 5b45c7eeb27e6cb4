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

func TestPrimaryThatAnswersBeforeTheDelayIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		run(t, t.Context(), h, want{result: 1, at: 49 * ms, started: []time.Duration{0}},
			step{takes: 49 * ms})
		settle(time.Second)
		if s := h.Stats(); s.Due != 0 || s.Won[limiter.Primary] != 1 || s.Hedged != 0 {
			t.Errorf("a hedge was due: %+v", s)
		}
		probe(t, h)
	})
}

func TestHedgeWinsAndLoserIsToldWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		tr := run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: time.Hour}, step{takes: 10 * ms})
		synctest.Wait()
		if tr.stopped[1] != 60*ms || tr.causes[1] != hedgedlimit.ErrLost { //nolint:errorlint // the sentinel itself is the claim
			t.Errorf("the loser was cancelled after %v for %v", tr.stopped[1], tr.causes[1])
		}
		s := h.Stats()
		if s.Won[limiter.Hedge] != 1 || s.Lost[limiter.Primary] != 1 || s.Hedged != 1 || s.Ended[limiter.Primary][permit.Canceled] != 1 {
			t.Errorf("%+v", s)
		}
		probe(t, h)
	})
}

func TestRetryableErrorStartsTheNextAttemptAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{MaxAttempts: 4})
		tr := run(t, t.Context(), h, want{result: 4, at: 125 * ms, started: []time.Duration{0, 20 * ms, 70 * ms, 75 * ms}},
			step{takes: 20 * ms, err: errRetryable}, // none runs: a retry
			step{takes: time.Hour},                  // a hedge is due 50 ms after its start
			step{takes: 5 * ms, err: errRetryable},  // one runs: a hedge, at once
			step{takes: 50 * ms})
		wantKinds := []limiter.Kind{limiter.Primary, limiter.Retry, limiter.Hedge, limiter.Hedge}
		for i, k := range wantKinds {
			if tr.kinds[i] != k {
				t.Errorf("kinds %v, want %v", tr.kinds, wantKinds)
				break
			}
		}
		synctest.Wait()
		probe(t, h)
	})
}

func TestFatalErrorCancelsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{MaxAttempts: 3})
		fn, tr := script(t, step{takes: time.Hour}, step{takes: 10 * ms, err: errFatal})
		_, err := hedgedlimit.Do(t.Context(), h, fn)
		if err != errFatal { //nolint:errorlint // one attempt failed: its error, unchanged
			t.Errorf("Do returned %v", err)
		}
		synctest.Wait()
		if tr.stopped[1] != 60*ms || tr.causes[1] != hedgedlimit.ErrLost { //nolint:errorlint // the sentinel itself
			t.Errorf("the primary was cancelled after %v for %v", tr.stopped[1], tr.causes[1])
		}
		settle(time.Second)
		if len(tr.started) != 2 || h.Stats().Failed != 1 {
			t.Errorf("%d attempts, %+v", len(tr.started), h.Stats())
		}
		probe(t, h)
	})
}

// broke is a budget with nothing in it. It counts what it is asked.
type broke struct{ deposits, withdrawals, refunds int }

func (b *broke) Deposit(time.Time)         { b.deposits++ }
func (b *broke) Withdraw(time.Time) bool   { b.withdrawals++; return false }
func (b *broke) Refund(time.Time)          { b.refunds++ }
func (b *broke) Balance(time.Time) float64 { return 0 }

// Field case B46: a hedge that is refused, or fails, does not touch the primary.
func TestHedgeThatCannotStartOrFailsLeavesThePrimaryAlone(t *testing.T) {
	// A hedge that is skipped is due again after every delay: at 50, 100 and 150 ms.
	one, two := []time.Duration{0}, []time.Duration{0, 50 * ms}
	slow := step{takes: 199 * ms}
	for name, c := range map[string]struct {
		config  func(t testing.TB) hedgedlimit.Config
		started []time.Duration
		skip    hedgedlimit.Skip
		skips   uint64
		steps   []step
	}{
		"budget refuses": {
			config:  func(testing.TB) hedgedlimit.Config { return hedgedlimit.Config{Budget: &broke{}} },
			started: one, skip: hedgedlimit.SkipBudget, skips: 3, steps: []step{slow},
		},
		"no permit": {
			config: func(t testing.TB) hedgedlimit.Config {
				return hedgedlimit.Config{Limiter: newLimiter(t, 1, limiter.Config{})}
			},
			started: one, skip: hedgedlimit.SkipPermit, skips: 3, steps: []step{slow},
		},
		"no permit beyond the reserve": {
			config: func(t testing.TB) hedgedlimit.Config {
				return hedgedlimit.Config{Limiter: newLimiter(t, 3, limiter.Config{Reserve: 2})}
			},
			started: one, skip: hedgedlimit.SkipPermit, skips: 3, steps: []step{slow},
		},
		"hedge fails": {
			config:  func(testing.TB) hedgedlimit.Config { return hedgedlimit.Config{} },
			started: two, steps: []step{slow, {takes: 1 * ms, err: errRetryable}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := c.config(t)
				h := newHedger(t, config)
				tr := run(t, t.Context(), h, want{result: 1, at: 199 * ms, started: c.started}, c.steps...)
				if len(tr.stopped) != 0 {
					t.Errorf("an attempt was cancelled: %v", tr.stopped)
				}
				if n := h.Stats().Skipped[c.skip]; n != c.skips {
					t.Errorf("%d skips (%v), want %d", n, c.skip, c.skips)
				}
				if b, ok := config.Budget.(*broke); ok && (b.deposits != 1 || b.withdrawals != 3 || b.refunds != 0) {
					t.Errorf("the budget was asked %+v", *b)
				}
				synctest.Wait()
				probe(t, h)
			})
		})
	}
}

// purse is a budget that counts: what was taken out is what was used.
type purse struct{ taken int }

func (b *purse) Deposit(time.Time)         {}
func (b *purse) Withdraw(time.Time) bool   { b.taken++; return true }
func (b *purse) Refund(time.Time)          { b.taken-- }
func (b *purse) Balance(time.Time) float64 { return 1 }

func TestSkippedAttemptGivesItsBudgetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &purse{}
		h := newHedger(t, hedgedlimit.Config{Budget: budget, Limiter: newLimiter(t, 1, limiter.Config{})})
		// Three hedges without a permit, then a retry, whose permit is the failed
		// primary's.
		run(t, t.Context(), h, want{result: 2, at: 200 * ms, started: []time.Duration{0, 199 * ms}},
			step{takes: 199 * ms, err: errRetryable}, step{takes: 1 * ms})
		if s := h.Stats(); budget.taken != 1 || s.Started[limiter.Retry] != 1 || s.Skipped[hedgedlimit.SkipPermit] != 3 {
			t.Errorf("%d taken from the budget; %+v", budget.taken, s)
		}
		synctest.Wait()
		probe(t, h)

		// A retry that finds no permit gives its share back too.
		other, ok := limiter.Permit{}, false
		_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			release := a.Hold() // the failed attempt's work goes on
			time.AfterFunc(time.Second, func() { release(permit.Success) })
			return 0, errRetryable
		})
		if err != errRetryable || budget.taken != 1 { //nolint:errorlint // the bare error of the only attempt
			t.Errorf("Do returned %v, %d taken from the budget", err, budget.taken)
		}
		settle(time.Second)
		if other, ok = h.Limiter().TryAcquire(limiter.Primary); !ok {
			t.Error("no permit after the hold was released")
		}
		other.Release(permit.Ignored)
		probe(t, h)
	})
}

// Field case B16: the caller's leaving ends the call at once and sends nothing.
func TestCallerThatLeavesCausesNoAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		cancel  time.Duration
		started []time.Duration
	}{
		"before the delay": {15 * ms, []time.Duration{0}},
		"after one hedge":  {75 * ms, []time.Duration{0, 50 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHedger(t, hedgedlimit.Config{MaxAttempts: 4})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(c.cancel, cancel)
				deaf := step{takes: 400 * ms, deaf: true}
				tr := run(t, ctx, h, want{err: context.Canceled, at: c.cancel, started: c.started}, deaf, deaf)
				settle(time.Second)
				if len(tr.started) != len(c.started) || h.Stats().ContextEnded != 1 {
					t.Errorf("attempts began after %v; %+v", tr.started, h.Stats())
				}
				probe(t, h)
			})
		})
	}
}

// Field case B16, the tie: the caller leaves in the instant in which a hedge is due.
func TestCallerThatLeavesWhenAHedgeIsDue(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			h := newHedger(t, hedgedlimit.Config{MaxAttempts: 4})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			fn, tr := script(t, step{takes: 400 * ms, deaf: true}, step{takes: 400 * ms, deaf: true})
			time.AfterFunc(50*ms, cancel)
			if _, err := hedgedlimit.Do(ctx, h, fn); !errors.Is(err, context.Canceled) {
				t.Errorf("Do returned %v", err)
			}
			if at := time.Since(tr.began); at != 50*ms {
				t.Errorf("Do returned after %v", at)
			}
			settle(time.Second)
			if n := len(tr.started); n > 2 {
				t.Errorf("%d attempts", n)
			}
			probe(t, h)
		})
	}
}

// Field case B16: a caller seen to have left gets no hedge, however short the delay.
func TestNoHedgeIsSentOnceTheCallerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := newHedger(t, hedgedlimit.Config{MaxAttempts: 4, Delay: hedgedlimit.DelayFunc(func(int) (time.Duration, bool) {
			cancel() // in the goroutine that would send the hedge
			return 0, true
		})})
		fn, tr := script(t, step{takes: 400 * ms, deaf: true})
		if _, err := hedgedlimit.Do(ctx, h, fn); !errors.Is(err, context.Canceled) || time.Since(tr.began) != 0 {
			t.Errorf("Do returned %v after %v", err, time.Since(tr.began))
		}
		settle(time.Second)
		if s := h.Stats(); s.Started[limiter.Hedge] != 0 || s.Due != 0 {
			t.Errorf("%d hedges of %d due for a caller who had left", s.Started[limiter.Hedge], s.Due)
		}
		probe(t, h)
	})
}

func TestAttemptsAreBoundedByMaxAttempts(t *testing.T) {
	for attempts := 1; attempts <= 5; attempts++ {
		synctest.Test(t, func(t *testing.T) {
			h := newHedger(t, hedgedlimit.Config{MaxAttempts: attempts})
			if h.MaxAttempts() != attempts {
				t.Errorf("MaxAttempts() = %d, want %d", h.MaxAttempts(), attempts)
			}
			var steps []step
			var started []time.Duration
			for i := range attempts {
				steps = append(steps, step{takes: time.Second})
				started = append(started, time.Duration(i)*50*ms)
			}
			run(t, t.Context(), h, want{result: 1, at: time.Second, started: started}, steps...)
			synctest.Wait()
			probe(t, h)
			// The same when it is failures that use them up.
			for i := range steps {
				steps[i], started[i] = step{err: errRetryable}, 0
			}
			run(t, t.Context(), h, want{err: errRetryable, started: started}, steps...)
			synctest.Wait()
			probe(t, h)
		})
	}
}

func TestNoHedgeKeepsACallToItsPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{MaxAttempts: 5, Delay: hedgedlimit.Fixed(0)})
		for _, failure := range []error{nil, errRetryable} {
			fn, tr := script(t, step{takes: time.Second, err: failure})
			if _, err := hedgedlimit.Do(t.Context(), h, fn, hedgedlimit.NoHedge[int]()); err != failure { //nolint:errorlint // unchanged
				t.Errorf("Do returned %v, want %v", err, failure)
			}
			if len(tr.started) != 1 || h.Stats().Due != 0 {
				t.Errorf("%d attempts, %d due", len(tr.started), h.Stats().Due)
			}
		}
		synctest.Wait()
		probe(t, h)
	})
}

func TestRefusedPrimaryNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, limiter.Config{})
		h := newHedger(t, hedgedlimit.Config{Limiter: l})
		p, _ := l.TryAcquire(limiter.Primary)
		run(t, t.Context(), h, want{err: limiter.ErrLimitExceeded})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		run(t, gone, h, want{err: context.Canceled})
		p.Release(permit.Ignored)
		run(t, gone, h, want{err: context.Canceled}) // also when a permit is free
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		run(t, t.Context(), h, want{err: limiter.ErrClosed})
		if s := h.Stats(); s.Calls != 4 || s.Refused != 4 {
			t.Errorf("%+v", s)
		}
		probe(t, h)
	})
}

func TestDoRefusesNil(t *testing.T) {
	h := newHedger(t, hedgedlimit.Config{})
	if _, err := hedgedlimit.Do[int](t.Context(), h, nil); err == nil {
		t.Error("a nil function was run")
	}
	fn := func(context.Context, hedgedlimit.Attempt) (int, error) { return 1, nil }
	if _, err := hedgedlimit.Do(t.Context(), nil, fn); err == nil {
		t.Error("a nil hedger was used")
	}
	probe(t, h)
}
