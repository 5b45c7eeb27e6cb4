package bubble

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls f for 0 to n−1, parallel calls at a time, and begins with the low numbers.
// When ctx ends or a call fails, stop becomes true and no further call begins; a
// channel could not tell a simulation so, since it would not belong to its bubble. Each
// returns when all that were begun have returned: nil, the error of ctx, or else the
// first error of f.
func Each(ctx context.Context, parallel, n int, f func(i int, stop *atomic.Bool) error) error {
	var (
		workers sync.WaitGroup
		next    atomic.Int64
		stop    atomic.Bool
		once    sync.Once
		failure error
	)
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	for range max(parallel, 1) {
		workers.Go(func() {
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i, &stop); err != nil {
					once.Do(func() { failure = err })
					stop.Store(true)
					return
				}
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failure
}
