package gate_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/internal/gate"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

func newGate(t *testing.T, limit, waiting int, maxExtra float64) (*gate.Gate, *limiter.Limiter) {
	t.Helper()
	algorithm, err := gradient.NewFixed(limit)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: waiting})
	if err != nil {
		t.Fatal(err)
	}
	return gate.New(l, maxExtra), l
}

// Whoever is inside when Close is called has left when it returns, and nobody enters after
// that, however the two meet: in real time, with several closers.
func TestNobodyIsInsideWhenCloseReturns(t *testing.T) {
	const limit, visitors, closers = 4, 8, 2
	for range 200 {
		g, l := newGate(t, limit, limiter.Unbounded, 1)
		var inside, closed atomic.Int64
		var all sync.WaitGroup
		for range visitors {
			all.Go(func() {
				for {
					p, why := g.Enter(context.Background(), limiter.Primary)
					if why == gate.Closed {
						return
					}
					if n := inside.Add(1); n > limit || closed.Load() > 0 {
						t.Errorf("%d inside, closed: %d", n, closed.Load())
					}
					inside.Add(-1)
					p.Release(permit.Ignored)
					g.Leave()
				}
			})
		}
		for range closers {
			all.Go(func() {
				if err := g.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if n := inside.Load(); n != 0 || l.InFlight() != 0 {
					t.Errorf("%d inside and %d in flight when Close had returned", n, l.InFlight())
				}
				closed.Add(1)
			})
		}
		all.Wait()
		if s := g.Stats(); s.Inside != 0 || s.Refused != (gate.Refusals{Closed: visitors}) {
			t.Errorf("%+v", s)
		}
	}
}

// A Close that was given up can be repeated, and so can one that has succeeded.
func TestCloseMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, 1, 0, 1)
		p, _ := g.Enter(t.Context(), limiter.Primary)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := g.Close(ctx); err != context.DeadlineExceeded { //nolint:errorlint // bare is what is asked
				t.Errorf("Close with one inside: %v", err)
			}
			cancel()
		}
		p.Release(permit.Ignored)
		g.Leave()
		for range 3 {
			if _, why := g.Enter(t.Context(), limiter.Primary); why != gate.Closed {
				t.Errorf("let in after Close, or refused for %v", why)
			}
			if err := g.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
