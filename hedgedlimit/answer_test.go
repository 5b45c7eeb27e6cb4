package hedgedlimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// What goes on after the answer is no latency, whether the function then succeeds or
// fails: the delay learns the time until Answered was called first.
func TestLatencyEndsAtAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []hedgedlimit.AttemptEvent
		h := newHedger(t, hedgedlimit.Config{
			MaxAttempts: 1,
			Delay:       hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: 0.5, MinSamples: 10}),
			OnAttempt:   func(e hedgedlimit.AttemptEvent) { events = append(events, e) },
		})
		var kept hedgedlimit.Attempt
		for range 20 {
			_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
				time.Sleep(10 * ms)
				a.Answered()
				time.Sleep(90 * ms)
				a.Answered() // says nothing any more
				kept = a
				return 1, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			kept.Answered() // nor after the end
		}
		if s := h.Stats(); !s.DelayKnown || s.Delay < 9*ms || s.Delay > 12*ms {
			t.Errorf("the delay is %v (%v), want 10 ms", s.Delay, s.DelayKnown)
		}
		for _, e := range events {
			if e.Answered.Sub(e.Granted) != 10*ms || e.Returned.Sub(e.Granted) != 100*ms {
				t.Fatalf("answered after %v, returned after %v", e.Answered.Sub(e.Granted), e.Returned.Sub(e.Granted))
			}
		}
		probe(t, h)
	})
}

// A result that is marked is returned, and counts as the failure that it is: for the
// limit, for the budget, for the holdback, and for whether hedges pay.
func TestMarkedResultCountsAsFailure(t *testing.T) {
	for name, row := range map[string]struct {
		marked  bool
		outcome permit.Outcome
		answer  hedgedlimit.Answer
		failed  uint64
	}{
		"marked": {true, permit.Overload, hedgedlimit.AnswerNonFatal, 1},
		"plain":  {false, permit.Success, hedgedlimit.AnswerSuccess, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := &answers{}
				h := newHedger(t, hedgedlimit.Config{Budget: budget, Holdback: 1})
				var kept hedgedlimit.Attempt
				result, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
					if row.marked {
						a.MarkFailed(permit.Overload)
					}
					kept = a
					return 7, nil
				})
				if result != 7 || err != nil {
					t.Errorf("Do returned %v, %v", result, err)
				}
				synctest.Wait()
				kept.MarkFailed(permit.Expired) // too late to say anything
				s := h.Stats()
				if s.Succeeded != 1 || s.Ended[limiter.Primary][row.outcome] != 1 || s.HeldBack.Failed != row.failed {
					t.Errorf("%+v", s)
				}
				if len(budget.got) != 1 || budget.got[0] != row.answer {
					t.Errorf("the budget heard %v, want %v", budget.got, row.answer)
				}
				probe(t, h)
			})
		})
	}
}

// A hedge that wins with a failure has not paid.
func TestMarkedHedgeHasNotPaid(t *testing.T) {
	for _, marked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := newHedger(t, hedgedlimit.Config{Gates: new(hedgedlimit.Gates), Rand: func() float64 { return 0 }})
			quick := func(context.Context, hedgedlimit.Attempt) (int, error) { return 1, nil }
			if _, err := hedgedlimit.Do(t.Context(), h, quick); err != nil { // somebody is answered
				t.Fatal(err)
			}
			before := h.Stats()
			_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
				if a.Number() == 1 {
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
					return 0, errRetryable
				}
				if marked {
					a.MarkFailed(permit.Overload)
				}
				return 2, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			after := h.Stats()
			if after.Hedged != 1 || (after.Gates.WinRate > before.Gates.WinRate) == marked {
				t.Errorf("marked %v: hedged %d, skipped %v, win rate %v after %v", marked, after.Hedged, after.Skipped, after.Gates.WinRate, before.Gates.WinRate)
			}
			probe(t, h)
		})
	}
}

// answers is a budget without bound that notes what it hears.
type answers struct{ got []hedgedlimit.Answer }

func (*answers) Deposit(time.Time)         {}
func (*answers) Withdraw(time.Time) bool   { return true }
func (*answers) Refund(time.Time)          {}
func (*answers) Balance(time.Time) float64 { return 1 }
func (*answers) Ended(time.Time, bool)     {}
func (b *answers) Answered(_ time.Time, a hedgedlimit.Answer) {
	b.got = append(b.got, a)
}
