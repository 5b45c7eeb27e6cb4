package permit_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/permit"
)

func ExamplePool() {
	pool, err := permit.NewPool(permit.Config{Limit: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := pool.Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, free := pool.TryAcquire()
	fmt.Println("a second permit is free:", free)

	q := p // the same permit
	fmt.Println("released:", p.Release(permit.Success))
	fmt.Println("released again through a copy:", q.Release(permit.Success))
	fmt.Println("in flight:", pool.InFlight())
	// Output:
	// a second permit is free: false
	// released: true
	// released again through a copy: false
	// in flight: 0
}

// Work that weighs more takes more permits at once.
func ExamplePool_AcquireN() {
	pool, err := permit.NewPool(permit.Config{Limit: 10})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	large, err := pool.AcquireN(ctx, 8)
	if err != nil {
		panic(err)
	}
	small, err := pool.Acquire(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(pool.InFlight(), "of", pool.Limit())

	_, err = pool.AcquireN(ctx, 11)
	fmt.Println(err)

	large.Release(permit.Success)
	small.Release(permit.Success)
	fmt.Println(pool.InFlight(), "of", pool.Limit())
	// Output:
	// 9 of 10
	// permit: more permits wanted at once than the limit
	// 0 of 10
}
