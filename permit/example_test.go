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
