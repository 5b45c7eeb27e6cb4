package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// sample is how one call went.
type sample struct {
	// latency runs from the instant in which the call was to start: what the
	// generator was late by is part of it, or slow answers would thin out the
	// very load that shows them.
	latency time.Duration
	// late is how much later the call started.
	late time.Duration
	// due is when that was, counted from the first instant.
	due time.Duration
	err error
}

// load makes calls at random times that do not depend on their answers (a Poisson
// process, open loop).
type load struct {
	rate float64 // calls a second
	seed uint64
	do   func(ctx context.Context, call uint64) error
}

// arrivals returns when the calls first … first+n−1 start, counted from the first
// instant. The same numbers give the same times.
func (l load) arrivals(first uint64, n int) []time.Duration {
	r := downstream.Rand(l.seed, arrivalStream, first)
	at := make([]time.Duration, n)
	var sum float64 // in seconds
	for i := range at {
		sum += r.ExpFloat64() / l.rate
		at[i] = time.Duration(sum * float64(time.Second))
	}
	return at
}

// arrivalStream and replicaStream keep the draws for different purposes apart,
// and both from those of the service.
const (
	arrivalStream = 1 << 62
	replicaStream = 1 << 61
)

// run makes n calls, the first with the given number, and returns when all have
// ended. It adds each ended call to done. If ctx ends it starts no more of them,
// ends those that run, and returns ctx.Err().
func (l load) run(ctx context.Context, first uint64, n int, done *atomic.Int64) ([]sample, error) {
	samples := make([]sample, n)
	var calls sync.WaitGroup
	defer calls.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin := time.Now()
	for i, at := range l.arrivals(first, n) {
		due := begin.Add(at)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		calls.Add(1)
		go func() {
			defer calls.Done()
			late := time.Since(due)
			err := l.do(ctx, first+uint64(i))
			// Each goroutine has an element of its own, read after Wait.
			samples[i] = sample{latency: time.Since(due), late: late, due: at, err: err}
			done.Add(1)
		}()
	}
	calls.Wait()
	return samples, ctx.Err()
}
