package hedgedlimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
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
