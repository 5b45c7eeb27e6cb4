package main

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// BenchmarkHedgedCall is a call whose hedge does not fire, from one goroutine for each
// core and from sixteen. The row of this module has a limit, a budget, the gates and a
// learnt delay; the executor written by hand has nothing of these, and that of failsafe-go
// a fixed delay, and in a row of its own its adaptive limiter.
//
//	go test -run '^$' -bench HedgedCall -count 12 ./bench
func BenchmarkHedgedCall(b *testing.B) {
	for _, row := range []struct {
		name string
		make func(*testing.B) func(context.Context) error
	}{
		{"holdfast", hedgedCall}, {"by-hand", callByHand}, {"failsafe", failsafeCall}, {"failsafe-limiter", failsafeLimitedCall},
	} {
		for _, goroutines := range []int{1, 16} {
			b.Run(row.name+"/goroutines="+strconv.Itoa(goroutines), func(b *testing.B) {
				call := row.make(b)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				b.ReportAllocs()
				if goroutines == 1 {
					for b.Loop() {
						if err := call(ctx); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.SetParallelism(goroutines / 2) // two cores
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := call(ctx); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

func work(context.Context) (int, error) { return 1, nil }

func hedgedCall(b *testing.B) func(context.Context) error {
	h, err := hedgedlimit.New(hedgedlimit.Config{
		Limiter: newFixedLimiter(b, 1<<20),
		Delay:   hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: time.Hour}),
	})
	if err != nil {
		b.Fatal(err)
	}
	fn := func(ctx context.Context, _ hedgedlimit.Attempt) (int, error) { return work(ctx) }
	call := func(ctx context.Context) error {
		_, err := hedgedlimit.Do(ctx, h, fn)
		return err
	}
	for range 200 { // without a known delay there would be no timer
		if err := call(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	if !h.Stats().DelayKnown {
		b.Fatal("the delay is not known")
	}
	return call
}

func callByHand(*testing.B) func(context.Context) error {
	return func(parent context.Context) error {
		ctx, cancel := context.WithCancel(parent)
		defer cancel()
		type result struct {
			v   int
			err error
		}
		results := make(chan result, 2)
		run := func() {
			v, err := work(ctx)
			results <- result{v, err}
		}
		go run()
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		select {
		case r := <-results:
			return r.err
		case <-timer.C:
			go run()
		case <-ctx.Done():
			return ctx.Err()
		}
		return (<-results).err
	}
}

func failsafeCall(*testing.B) func(context.Context) error {
	executor := failsafe.With[int](hedgepolicy.NewWithDelay[int](time.Hour))
	return func(ctx context.Context) error {
		_, err := executor.WithContext(ctx).GetWithExecution(func(exec failsafe.Execution[int]) (int, error) { return work(exec.Context()) })
		return err
	}
}

func failsafeLimitedCall(*testing.B) func(context.Context) error {
	limiter := adaptivelimiter.NewBuilder[int]().WithLimits(200, 200, 200).Build()
	executor := failsafe.With[int](hedgepolicy.NewWithDelay[int](time.Hour), limiter)
	return func(ctx context.Context) error {
		_, err := executor.WithContext(ctx).GetWithExecution(func(exec failsafe.Execution[int]) (int, error) { return work(exec.Context()) })
		return err
	}
}
