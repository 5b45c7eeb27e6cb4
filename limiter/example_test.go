package limiter_test

import (
	"context"
	"errors"
	"fmt"

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
