package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

func ExampleLimiter_Do() {
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lim.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("in flight:", lim.InFlight())
		return nil
	})
	fmt.Println("error:", err)
	fmt.Println("in flight afterwards:", lim.InFlight())
	// Output:
	// in flight: 1
	// error: <nil>
	// in flight afterwards: 0
}

// A worker pool waits for its turn instead of being refused.
func ExampleLimiter_workerPool() {
	fixed, err := gradient.NewFixed(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	lim, err := limiter.New(limiter.Config{Algorithm: fixed, MaxWaiting: limiter.Unbounded})
	if err != nil {
		fmt.Println(err)
		return
	}
	var sum atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			_ = lim.Do(context.Background(), func(context.Context) error {
				sum.Add(int64(i))
				return nil
			})
		})
	}
	wg.Wait()
	fmt.Println(sum.Load())
	// Output: 4950
}

func ExampleLimiter_TryAcquire() {
	fixed, err := gradient.NewFixed(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	lim, err := limiter.New(limiter.Config{Algorithm: fixed})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, ok := lim.TryAcquire(limiter.Primary)
	fmt.Println("first:", ok)
	_, err = lim.Acquire(context.Background(), limiter.Primary)
	fmt.Println("second:", errors.Is(err, limiter.ErrLimitExceeded))
	p.Release(permit.Success)
	// Output:
	// first: true
	// second: true
}
