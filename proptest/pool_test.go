package proptest_test

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/permit"
	"github.com/holdfast-go/holdfast/proptest"
)

func TestPermitPool(t *testing.T) {
	proptest.TestPool(t, func(limit int) proptest.Pool {
		p, err := permit.NewPool(permit.Config{Limit: limit})
		if err != nil {
			panic(err)
		}
		release := func(x permit.Permit) func() { return func() { x.Release(permit.Success) } }
		return proptest.Pool{
			TryAcquire: func() (func(), bool) {
				x, ok := p.TryAcquire()
				return release(x), ok
			},
			Acquire: func(ctx context.Context) (func(), error) {
				x, err := p.Acquire(ctx)
				return release(x), err
			},
			Resize: func(limit int) {
				if err := p.Resize(limit); err != nil {
					panic(err)
				}
			},
			InFlight: func() int { return p.Stats().InFlight },
			Close:    p.Close,
		}
	})
}

// A pool that knows neither a second release nor another limit.
func TestSemaphore(t *testing.T) {
	proptest.TestPool(t, func(limit int) proptest.Pool {
		s := semaphore.NewWeighted(int64(limit))
		release := func() func() { return sync.OnceFunc(func() { s.Release(1) }) }
		return proptest.Pool{
			TryAcquire: func() (func(), bool) { return release(), s.TryAcquire(1) },
			Acquire:    func(ctx context.Context) (func(), error) { return release(), s.Acquire(ctx, 1) },
		}
	})
}

// A channel that is full when all permits are out.
func TestChannel(t *testing.T) {
	proptest.TestPool(t, func(limit int) proptest.Pool {
		out := make(chan struct{}, limit)
		release := func() func() { return sync.OnceFunc(func() { <-out }) }
		return proptest.Pool{
			TryAcquire: func() (func(), bool) {
				select {
				case out <- struct{}{}:
					return release(), true
				default:
					return nil, false
				}
			},
			Acquire: func(ctx context.Context) (func(), error) {
				select {
				case out <- struct{}{}:
					return release(), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			InFlight: func() int { return len(out) },
		}
	})
}
