package hedgedlimit_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// body is a result that must be closed once. Closing may take time.
type body struct {
	takes  time.Duration
	closed int
	onlyIf func() // called at each Close
}

func (b *body) Close() error {
	b.closed++
	if b.onlyIf != nil {
		b.onlyIf()
	}
	time.Sleep(b.takes)
	return nil
}

// Field case B10: a result that comes after the race is over is disposed of once,
// before its permit comes back, and the caller does not wait for that.
func TestLateResultIsDisposedOfBeforeItsPermitComesBack(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Losers: p})
		late, winner := &body{takes: 2 * time.Second}, &body{}
		start := time.Now()
		got, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (io.Closer, error) {
			if a.Number() == 1 {
				time.Sleep(time.Second) // deaf
				return late, nil
			}
			time.Sleep(10 * ms)
			return winner, nil
		})
		if got != winner || err != nil || time.Since(start) != 60*ms {
			t.Fatalf("Do returned %v, %v after %v", got, err, time.Since(start))
		}
		settle(time.Second)
		if late.closed != 1 || h.Limiter().InFlight() != 1 {
			t.Errorf("while the late result is being closed: closed %d times, in flight %d", late.closed, h.Limiter().InFlight())
		}
		settle(2 * time.Second)
		if late.closed != 1 || winner.closed != 0 {
			t.Errorf("the late result was closed %d times, the winner's %d times", late.closed, winner.closed)
		}
		probe(t, h)
	})
}

// Field case B10, the variant: the caller has left, and both attempts succeed later.
func TestResultsThatNobodyTakesAreAllDisposedOf(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Losers: p})
		ctx, cancel := context.WithTimeout(t.Context(), 55*ms)
		defer cancel()
		bodies := []*body{{}, {}}
		got, err := hedgedlimit.Do(ctx, h, func(_ context.Context, a hedgedlimit.Attempt) (*body, error) {
			time.Sleep(time.Second)
			return bodies[a.Number()-1], nil
		})
		if got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do returned %v, %v", got, err)
		}
		settle(2 * time.Second)
		for i, b := range bodies {
			if b.closed != 1 {
				t.Errorf("the result of attempt %d was closed %d times", i+1, b.closed)
			}
		}
		probe(t, h)
	})
}

func TestOnlyTheResultsOfSuccessesAreDisposedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{MaxAttempts: 4, Delay: hedgedlimit.Fixed(0), OnPanic: func(any, []byte) {}})
		var discarded []int
		got, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			n := a.Number()
			time.Sleep(time.Duration(n) * time.Second)
			switch n {
			case 2:
				return n, errRetryable // a result beside an error
			case 3:
				panic("late")
			}
			return n, nil
		}, hedgedlimit.Discard(func(n int) { discarded = append(discarded, n) }))
		settle(time.Minute)
		if got != 1 || err != nil || !slices.Equal(discarded, []int{4}) {
			t.Errorf("Do returned %v, %v; discarded %v", got, err, discarded)
		}
		probe(t, h)
	})
}

// A nil result is a result: it wins, and disposing of it harms nobody.
func TestNilResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p told
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Fixed(0), OnPanic: p.OnPanic})
		both := func(t *testing.T, do func() error) {
			t.Helper()
			if err := do(); err != nil {
				t.Error(err)
			}
			settle(time.Second)
			probe(t, h)
		}
		both(t, func() error {
			got, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (io.Closer, error) { time.Sleep(ms); return nil, nil })
			if got != nil {
				t.Errorf("got %v", got)
			}
			return err
		})
		both(t, func() error {
			_, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (any, error) { time.Sleep(ms); return nil, nil })
			return err
		})
		if len(p.values) != 0 {
			t.Errorf("OnPanic was told %v", p.values)
		}
		both(t, func() error { // its Close panics on a nil pointer: told, and ended there
			got, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (*body, error) { time.Sleep(ms); return nil, nil })
			if got != nil {
				t.Errorf("got %v", got)
			}
			return err
		})
		if len(p.values) != 1 {
			t.Errorf("OnPanic was told %v", p.values)
		}
	})
}

func TestDiscardThatDoesNotReturnGivesThePermitBack(t *testing.T) {
	for name, bad := range map[string]func(){"panic": func() { panic("discard") }, "goexit": goexit} {
		t.Run(name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, policy hedgedlimit.LoserPolicy) {
				var p told
				h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Fixed(0), Losers: policy, OnPanic: p.OnPanic})
				_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
					time.Sleep(ms) // both in one instant, or one after the decision
					return a.Number(), nil
				}, hedgedlimit.Discard(func(int) { bad() }))
				settle(time.Second)
				if err != nil || len(p.values) > 0 != (name == "panic") {
					t.Errorf("Do returned %v, OnPanic was told %v", err, p.values)
				}
				probe(t, h)
			})
		})
	}
}

// Field case B17: the user's code may use the limiter and the hedger from wherever
// it is called.
func TestCallbacksMayUseTheLimiterAndTheHedger(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy hedgedlimit.LoserPolicy) {
		var h *hedgedlimit.Hedger
		var calls atomic.Int64
		use := func() {
			l := h.Limiter()
			if p, ok := l.TryAcquire(limiter.Primary); ok {
				p.Release(permit.Ignored)
			}
			_, _, _, _ = l.InFlight(), l.Limit(), l.Stats(), h.Stats()
			if calls.Add(1) > 20 {
				return // a nested call calls back, too
			}
			_, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (*body, error) { return &body{}, nil })
			if err != nil {
				t.Error(err)
			}
		}
		l := newLimiter(t, 100, limiter.Config{Classify: func(err error) permit.Outcome { use(); return limiter.DefaultClassify(err) }})
		h = newHedger(t, hedgedlimit.Config{
			Limiter: l, MaxAttempts: 4, Losers: policy,
			Classify:  func(error) hedgedlimit.Verdict { use(); return hedgedlimit.NonFatal },
			OnAttempt: func(hedgedlimit.AttemptEvent) { use() },
			OnPanic:   func(any, []byte) { use() },
			Delay:     hedgedlimit.DelayFunc(func(int) (time.Duration, bool) { use(); return 50 * ms, true }),
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (*body, error) {
				release := a.Hold()
				context.AfterFunc(ctx, func() { use(); release(permit.Success) })
				if a.Number() == 2 {
					return nil, errRetryable
				}
				time.Sleep(time.Duration(4-a.Number()) * 100 * ms)
				return &body{onlyIf: use}, nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Fatal("the call hangs")
		}
		settle(2 * time.Minute)
		if n := calls.Load(); n < 20 {
			t.Errorf("the callbacks ran %d times", n)
		}
	})
}

func TestErrorOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, third := errors.New("first"), errors.New("second"), &body{}
		wrapped := &closerError{third}
		h := newHedger(t, hedgedlimit.Config{MaxAttempts: 3, Delay: hedgedlimit.Fixed(0)})
		// They fail in the order 3, 1, 2, and are listed by number.
		errs := []error{first, second, wrapped}
		takes := []time.Duration{20 * ms, 30 * ms, 10 * ms}
		_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			time.Sleep(takes[a.Number()-1])
			return 0, errs[a.Number()-1]
		})
		var all *hedgedlimit.AttemptsError
		if !errors.As(err, &all) || !slices.Equal(all.Unwrap(), errs) {
			t.Fatalf("Do returned %v", err)
		}
		var found *closerError
		if !errors.Is(err, first) || !errors.Is(err, second) || !errors.As(err, &found) || found != wrapped {
			t.Errorf("an error of an attempt cannot be found in %v", err)
		}
		if errors.Is(err, hedgedlimit.ErrLost) {
			t.Errorf("%v is our own reason for cancelling", err)
		}
		if text := err.Error(); text != "hedgedlimit: all 3 attempts failed; first; second; closer" {
			t.Errorf("%q", text)
		}
		probe(t, h)

		// A loser that was cancelled by a Fatal error has no part in it.
		_, err = hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			switch a.Number() {
			case 1:
				<-ctx.Done()
				return 0, context.Cause(ctx)
			case 2:
				return 0, errRetryable
			}
			time.Sleep(ms)
			return 0, errFatal
		})
		if !errors.As(err, &all) || !slices.Equal(all.Unwrap(), []error{errRetryable, errFatal}) || !strings.Contains(err.Error(), "2") {
			t.Errorf("Do returned %v", err)
		}
		synctest.Wait()
		probe(t, h)
	})
}

type closerError struct{ io.Closer }

func (*closerError) Error() string { return "closer" }

func TestVerdictNames(t *testing.T) {
	for v, want := range map[hedgedlimit.Verdict]string{hedgedlimit.NonFatal: "nonfatal", hedgedlimit.Fatal: "fatal", 7: "fatal"} {
		if v.String() != want {
			t.Errorf("Verdict(%d) = %q, want %q", v, v, want)
		}
	}
	// So every value that is not NonFatal ends the call.
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Classify: func(error) hedgedlimit.Verdict { return 7 }})
		run(t, t.Context(), h, want{err: errRetryable, started: []time.Duration{0}}, step{err: errRetryable})
		probe(t, h)
	})
}
