package hedgedlimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// rounds of each tie: the scheduler orders what happens in one instant as it likes.
const rounds = 5000

// Field case B49, with the order of delivery forced. The caller is kept busy in its
// DelayFunc while two attempts end one after the other, so that it finds both
// reports when it looks: they are of one instant to it.
func TestSuccessInTheSameInstantIsNeverHidden(t *testing.T) {
	type end struct {
		err    error
		panics bool
	}
	success, retryable, fatal, panics := end{}, end{err: errRetryable}, end{err: errFatal}, end{panics: true}
	for name, c := range map[string]struct {
		primary, hedge end
		winner         int   // 0 if none
		err            error // of a call without a winner
		leaves         bool  // the caller's context ends in the same instant
	}{
		"error and success":             {primary: retryable, hedge: success, winner: 2},
		"success and error":             {primary: success, hedge: retryable, winner: 1},
		"fatal error and success":       {primary: fatal, hedge: success, winner: 2},
		"panic and success":             {primary: panics, hedge: success, winner: 2},
		"two successes":                 {primary: success, hedge: success, winner: 1},
		"two errors":                    {primary: retryable, hedge: retryable, err: errRetryable},
		"fatal error and error":         {primary: retryable, hedge: fatal, err: errFatal},
		"two panics":                    {primary: panics, hedge: panics, err: panicError{1}},
		"success and cancellation":      {primary: success, hedge: retryable, winner: 1, leaves: true},
		"fatal error and cancellation":  {primary: fatal, hedge: retryable, err: errFatal, leaves: true},
		"retryable errors and leaving":  {primary: retryable, hedge: retryable, err: context.Canceled, leaves: true},
		"two successes and the leaving": {primary: success, hedge: success, winner: 1, leaves: true},
	} {
		for order, takes := range map[string][2]time.Duration{
			"primary first": {10 * ms, 20 * ms},
			"hedge first":   {20 * ms, 10 * ms},
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					h := newHedger(t, hedgedlimit.Config{
						MaxAttempts: 3,
						Budget:      &allowance{left: 1}, // no third attempt after two errors
						Delay: hedgedlimit.DelayFunc(func(n int) (time.Duration, bool) {
							if n == 2 {
								time.Sleep(30 * ms) // both attempts end meanwhile
								if c.leaves {
									cancel()
								}
							}
							return 0, n == 1
						}),
						OnPanic: func(any, []byte) {},
					})
					var discarded []int
					result, err := caught(func() (int, error) {
						return hedgedlimit.Do(ctx, h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
							e := []end{c.primary, c.hedge}[a.Number()-1]
							time.Sleep(takes[a.Number()-1])
							if e.panics {
								panic(a.Number())
							}
							return a.Number(), e.err
						}, hedgedlimit.Discard(func(n int) { discarded = append(discarded, n) }))
					})
					if result != c.winner || !errors.Is(err, c.err) {
						t.Errorf("Do returned %v, %v, want %v, %v", result, err, c.winner, c.err)
					}
					synctest.Wait()
					for i, e := range []end{c.primary, c.hedge} {
						n, want := 0, 0
						for _, d := range discarded {
							if d == i+1 {
								n++
							}
						}
						if e == success && c.winner != i+1 {
							want = 1
						}
						if n != want {
							t.Errorf("the result of attempt %d was discarded %d times, want %d", i+1, n, want)
						}
					}
					probe(t, h)
				})
			})
		}
	}
}

// allowance is a budget of a fixed number of attempts.
type allowance struct{ left int }

func (b *allowance) Deposit(time.Time) {}
func (b *allowance) Withdraw(time.Time) bool {
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}
func (b *allowance) Refund(time.Time)          { b.left++ }
func (b *allowance) Balance(time.Time) float64 { return float64(b.left) }

// Field case B49, as the scheduler has it: whatever the order, one attempt wins, one
// win is counted, and each other result is discarded once.
func TestTieHasOneWinner(t *testing.T) {
	for name, c := range map[string]struct {
		primary, hedge error
		leaves         bool
		ok             func(result int, err error) bool
	}{
		"error and success": {primary: errRetryable, ok: func(n int, err error) bool { return n == 2 && err == nil }},
		"two successes":     {ok: func(n int, err error) bool { return (n == 1 || n == 2) && err == nil }},
		"two errors":        {primary: errRetryable, hedge: errRetryable, ok: func(_ int, err error) bool { return errors.Is(err, errRetryable) }},
		"success and cancellation": {hedge: errRetryable, leaves: true, ok: func(n int, err error) bool {
			return n == 1 && err == nil || n == 0 && err == context.Canceled //nolint:errorlint // ctx.Err() itself
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Fixed(0)})
				discards, successes := 0, uint64(0)
				for range rounds {
					ctx, cancel := context.WithCancel(t.Context())
					if c.leaves {
						time.AfterFunc(10*ms, cancel)
					}
					at := time.Now().Add(10 * ms)
					result, err := hedgedlimit.Do(ctx, h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
						time.Sleep(time.Until(at))
						return a.Number(), []error{c.primary, c.hedge}[a.Number()-1]
					}, hedgedlimit.Discard(func(int) { discards++ }))
					synctest.Wait()
					cancel()
					if !c.ok(result, err) || !time.Now().Equal(at) {
						t.Fatalf("Do returned %v, %v, %v from the tie", result, err, time.Since(at))
					}
					if err == nil {
						successes++
					}
				}
				s := h.Stats()
				if s.Succeeded != successes || s.Won[limiter.Primary]+s.Won[limiter.Hedge] != successes {
					t.Errorf("%d successes, %+v", successes, s)
				}
				made := uint64(0) // results
				if c.primary == nil {
					made += s.Started[limiter.Primary]
				}
				if c.hedge == nil {
					made += s.Started[limiter.Hedge]
				}
				if uint64(discards) != made-successes {
					t.Errorf("%d results, %d taken, %d discarded", made, successes, discards)
				}
				probe(t, h)
			})
		})
	}
}
