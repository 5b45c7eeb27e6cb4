package hedgedlimit_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// What the other side has asked for holds whoever of the attempts was told, and whatever
// fails after that.
func TestPushbackHoldsForAllAttempts(t *testing.T) {
	type answer struct {
		after    time.Duration
		pushback time.Duration
		pushed   bool
	}
	for name, c := range map[string]struct {
		answers []answer // of attempts 1, 2, …; then success
		starts  []time.Duration
	}{
		"a later failure says nothing": {
			answers: []answer{{80 * ms, time.Second, true}, {40 * ms, 0, false}},
			starts:  []time.Duration{0, 50 * ms, 1080 * ms},
		},
		"the longer one holds": {
			answers: []answer{{80 * ms, time.Second, true}, {40 * ms, 100 * ms, true}},
			starts:  []time.Duration{0, 50 * ms, 1080 * ms},
		},
		"never": {
			answers: []answer{{90 * ms, 0, false}, {30 * ms, -1, true}},
			starts:  []time.Duration{0, 50 * ms},
		},
	} {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				type told struct {
					error
					answer
				}
				h := newHedger(t, hedgedlimit.Config{
					MaxAttempts: 3, Classify: classify,
					Pushback: func(err error) (time.Duration, bool) {
						var a told
						errors.As(err, &a)
						return a.pushback, a.pushed
					},
				})
				began := time.Now()
				var starts [3]time.Duration
				var n atomic.Int32
				_, _ = hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
					starts[a.Number()-1] = time.Since(began)
					n.Add(1)
					if a.Number() > len(c.answers) {
						return 1, nil
					}
					time.Sleep(c.answers[a.Number()-1].after)
					return 0, told{errRetryable, c.answers[a.Number()-1]}
				})
				time.Sleep(time.Minute) // losers end
				if int(n.Load()) != len(c.starts) {
					t.Errorf("%s: %d attempts, want %d: %v", name, n.Load(), len(c.starts), starts)
				}
				for i, want := range c.starts {
					if starts[i] != want {
						t.Errorf("%s: attempt %d after %v, want %v", name, i+1, starts[i], want)
					}
				}
			})
		}
	}
}

// panicky is a budget of the user's with a bug.
type panicky struct{ in string }

func (p panicky) at(where string) {
	if p.in == where {
		panic(where)
	}
}
func (p panicky) Deposit(time.Time)                      { p.at("Deposit") }
func (p panicky) Withdraw(time.Time) bool                { p.at("Withdraw"); return p.in != "no" }
func (p panicky) Refund(time.Time)                       { p.at("Refund") }
func (p panicky) Balance(time.Time) float64              { return 1 }
func (p panicky) Answered(time.Time, hedgedlimit.Answer) { p.at("Answered") }
func (p panicky) Ended(time.Time, bool)                  { p.at("Ended") }

func TestPartOfABudgetThatPanicsTakesNothingFromTheOthers(t *testing.T) {
	for _, in := range []string{"Withdraw", "Refund", "Ended", "Deposit", "no"} {
		for _, first := range []bool{true, false} {
			own, err := hedgedlimit.NewInFlightBudget(0, 1)
			if err != nil {
				t.Fatal(err)
			}
			parts := []hedgedlimit.Budget{own, panicky{in}}
			if first {
				parts = []hedgedlimit.Budget{panicky{in}, own}
			}
			all := hedgedlimit.AllOf(parts...)
			try := func(f func()) {
				defer func() { _ = recover() }()
				f()
			}
			now := time.Now()
			try(func() { all.Deposit(now) })
			taken := false
			try(func() { taken = all.Withdraw(now) })
			if taken {
				try(func() { all.Refund(now) })
			}
			try(func() { taken = all.Withdraw(now) })
			if taken {
				try(func() { all.(hedgedlimit.Follower).Ended(now, true) })
			}
			if b := own.Balance(now); b != 1 {
				t.Errorf("%s panics, first %v: balance %v at rest, want 1", in, first, b)
			}
		}
	}
}

func TestNilInsideANestedBudgetIsRefused(t *testing.T) {
	for _, b := range []hedgedlimit.Budget{
		hedgedlimit.AllOf(hedgedlimit.AllOf(nil)),
		hedgedlimit.AllOf(hedgedlimit.Unlimited, hedgedlimit.AllOf((*hedgedlimit.Throttle)(nil))),
	} {
		if _, err := hedgedlimit.New(hedgedlimit.Config{Budget: b}); err == nil || !strings.Contains(err.Error(), "AllOf") {
			t.Errorf("error %v", err)
		}
	}
}

// Callers who lose interest say nothing about the other side.
func TestCancelledCallsDoNotShutAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := newThrottle(t, 10, 0.1)
		before := throttle.Balance(time.Now())
		h := newHedger(t, hedgedlimit.Config{Budget: throttle, MaxAttempts: 1})
		for range 10 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, nil)
			go func() { time.Sleep(10 * ms); cancel() }()
			_, _ = hedgedlimit.Do(ctx, h, func(ctx context.Context, _ hedgedlimit.Attempt) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			synctest.Wait()
		}
		if b := throttle.Balance(time.Now()); b != before {
			t.Errorf("balance %v after ten cancelled calls, %v before", b, before)
		}
	})
}

// A context of the user's that panics while a retry asks for its permit costs no budget.
func TestRetryThatPanicsGivesItsBudgetBack(t *testing.T) {
	for after := range int32(8) { // wherever it is asked
		synctest.Test(t, func(t *testing.T) {
			budget, err := hedgedlimit.NewInFlightBudget(0, 1)
			if err != nil {
				t.Fatal(err)
			}
			h := newHedger(t, hedgedlimit.Config{Budget: budget, MaxAttempts: 2, OnPanic: func(any, []byte) {}})
			ctx := &badContext{Context: t.Context()}
			ctx.good.Store(1 << 20)
			func() {
				defer func() { _ = recover() }()
				_, _ = hedgedlimit.Do(ctx, h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
					if a.Number() == 1 {
						ctx.good.Store(after)
					}
					return 0, errRetryable
				})
			}()
			synctest.Wait()
			if b := budget.Balance(time.Now()); b != 1 {
				t.Errorf("after %d: balance %v at rest, want 1", after, b)
			}
			probe(t, h)
		})
	}
}

// badContext panics when it is asked for its error, after so many times that it is good.
type badContext struct {
	context.Context
	good atomic.Int32
}

func (c *badContext) Err() error {
	if c.good.Add(-1) < 0 {
		panic("Err")
	}
	return c.Context.Err()
}
