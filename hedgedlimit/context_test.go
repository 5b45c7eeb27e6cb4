package hedgedlimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// poisoned is a context whose Value panics after so many calls.
type poisoned struct {
	context.Context
	good *int
}

func (p poisoned) Value(key any) any {
	if *p.good--; *p.good < 0 {
		panic("value")
	}
	return p.Context.Value(key)
}

// L10: a context that panics while an attempt is being launched, primary or hedge,
// loses no permit and no count.
func TestContextThatPanicsAtLaunchKeepsTheAccountsBalanced(t *testing.T) {
	for good := range 6 {
		synctest.Test(t, func(t *testing.T) {
			fixed, err := gradient.NewFixed(4)
			if err != nil {
				t.Fatal(err)
			}
			l, err := limiter.New(limiter.Config{Algorithm: fixed})
			if err != nil {
				t.Fatal(err)
			}
			h, err := hedgedlimit.New(hedgedlimit.Config{
				Limiter: l, Delay: hedgedlimit.Fixed(time.Millisecond), OnPanic: func(any, []byte) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			left := good
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			func() {
				defer func() { _ = recover() }()
				_, _ = hedgedlimit.Do(poisoned{ctx, &left}, h, func(context.Context, hedgedlimit.Attempt) (int, error) {
					time.Sleep(10 * time.Millisecond)
					return 1, nil
				})
			}()
			time.Sleep(time.Second)
			s := h.Stats()
			var skipped uint64
			for _, n := range s.Skipped {
				skipped += n
			}
			if l.InFlight() != 0 || s.Calls != s.Refused+s.Succeeded+s.Failed+s.ContextEnded ||
				s.Due != s.Started[limiter.Hedge]+s.Started[limiter.Retry]+skipped || s.Started[limiter.Primary] != s.Calls-s.Refused {
				t.Errorf("after %d good calls of Value: in flight %d, %+v", good, l.InFlight(), s)
			}
		})
	}
}

// The context of an attempt ends as the caller's does, with its error and its cause, under
// every policy for losers, and so does that of a result which is still held.
func TestAttemptEndsWithTheErrorAndCauseOfTheCaller(t *testing.T) {
	own := errors.New("the caller's own")
	for name, row := range map[string]struct {
		make func(context.Context) (context.Context, context.CancelFunc)
		err  error
		want error
	}{
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, context.DeadlineExceeded, context.DeadlineExceeded},
		"deadline with a cause": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Second, own)
		}, context.DeadlineExceeded, own},
		"cancelled with a cause before the deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			timed, stop := context.WithTimeout(ctx, time.Hour)
			ctx, cancel := context.WithCancelCause(timed)
			time.AfterFunc(time.Second, func() { cancel(own) })
			return ctx, func() { cancel(nil); stop() }
		}, context.Canceled, own},
	} {
		for _, losers := range []hedgedlimit.LoserPolicy{hedgedlimit.Cancel(), hedgedlimit.Drain(time.Minute), hedgedlimit.Linger(time.Minute)} {
			t.Run(name+", "+losers.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fixed, err := gradient.NewFixed(4)
					if err != nil {
						t.Fatal(err)
					}
					l, err := limiter.New(limiter.Config{Algorithm: fixed})
					if err != nil {
						t.Fatal(err)
					}
					h, err := hedgedlimit.New(hedgedlimit.Config{Limiter: l, Losers: losers, MaxAttempts: 1})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := row.make(t.Context())
					defer cancel()
					var release func(permit.Outcome)
					held, err := hedgedlimit.Do(ctx, h, func(ctx context.Context, a hedgedlimit.Attempt) (context.Context, error) {
						release = a.Hold()
						return ctx, nil
					})
					if err != nil {
						t.Fatal(err)
					}
					<-held.Done()
					if err := held.Err(); err != row.err || context.Cause(held) != row.want { //nolint:errorlint // the same, not one like it
						t.Errorf("%v by %v, want %v by %v", err, context.Cause(held), row.err, row.want)
					}
					release(permit.Success)
					time.Sleep(time.Hour) // all timers
				})
			})
		}
	}
}
