package limiter_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// The rivals stand in the same run, so that a ratio can be read off whatever the
// machine. BENCHMARKS.md says what has come of it.
//
//	make bench-limiter

var crowds = []int{1, 16, 256}

func nothing(context.Context) error { return nil }

// run has op done by n goroutines until the benchmark is over.
func run(b *testing.B, n int, impl string, op func()) {
	b.Helper()
	b.Run(fmt.Sprintf("goroutines=%d/impl=%s", n, impl), func(b *testing.B) {
		b.ReportAllocs()
		if n == 1 {
			for b.Loop() {
				op()
			}
			return
		}
		b.SetParallelism(max(1, n/runtime.GOMAXPROCS(0)))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				op()
			}
		})
	})
}

// learning returns a limiter that learns as the zero Config does, and whose limit is so
// high that none of a crowd is ever refused.
func learning(b *testing.B, config limiter.Config) *limiter.Limiter {
	b.Helper()
	algorithm, err := gradient.New(gradient.Config{Initial: 512, Min: 512})
	if err != nil {
		b.Fatal(err)
	}
	return limitedBy(b, algorithm, config)
}

// BenchmarkAcquireRelease is one acquire and release. The floor is what nobody who learns
// latency can go below: an atomic add and a reading of the monotonic clock at each end.
// The permit is the ledger by itself with the same two readings, the semaphore is of a
// fixed size and learns nothing, and fixed learns for an algorithm that does not look.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, n := range crowds {
		base := time.Now()
		var inFlight struct {
			_ [64]byte
			n atomic.Int64
			_ [64]byte
		}
		run(b, n, "floor", func() {
			inFlight.n.Add(1)
			start := time.Since(base)
			if time.Since(base) < start {
				panic("the clock fell")
			}
			inFlight.n.Add(-1)
		})
		s := semaphore.NewWeighted(512)
		run(b, n, "semaphore", func() {
			if !s.TryAcquire(1) {
				panic("refused")
			}
			s.Release(1)
		})
		pool, err := permit.NewPool(permit.Config{Limit: 512, Base: base})
		if err != nil {
			b.Fatal(err)
		}
		run(b, n, "permit", func() {
			p, _ := pool.TryAcquire()
			if time.Since(base) < p.Grant().At {
				panic("the clock fell")
			}
			if !p.Release(permit.Success) {
				panic("refused")
			}
		})
		pair := func(l *limiter.Limiter) func() {
			return func() {
				p, _ := l.TryAcquire(limiter.Primary)
				if !p.Release(permit.Success) {
					panic("refused")
				}
			}
		}
		run(b, n, "fixed", pair(fixed(b, 512, limiter.Config{})))
		run(b, n, "gradient", pair(learning(b, limiter.Config{})))
		run(b, n, "do", func() func() {
			l, ctx := learning(b, limiter.Config{}), b.Context()
			return func() {
				if err := l.Do(ctx, nothing); err != nil {
					panic(err)
				}
			}
		}())
	}
}

// BenchmarkRefusal is what a call costs that finds no room, here and in the ledger alone,
// beside a semaphore that does not count it.
func BenchmarkRefusal(b *testing.B) {
	for _, n := range crowds {
		s := semaphore.NewWeighted(1)
		s.TryAcquire(1)
		run(b, n, "semaphore", func() { s.TryAcquire(1) })

		pool, err := permit.NewPool(permit.Config{Limit: 1, Base: time.Now()})
		if err != nil {
			b.Fatal(err)
		}
		p, _ := pool.TryAcquire()
		run(b, n, "permit", func() { pool.TryAcquire() })
		p.Release(permit.Success)

		algorithm, err := gradient.New(gradient.Config{Max: 1})
		if err != nil {
			b.Fatal(err)
		}
		l, ctx := limitedBy(b, algorithm, limiter.Config{}), b.Context()
		q, _ := l.TryAcquire(limiter.Primary)
		run(b, n, "try", func() { l.TryAcquire(limiter.Primary) })
		run(b, n, "acquire", func() { _, _ = l.Acquire(ctx, limiter.Primary) })
		q.Release(permit.Success)
	}
}

// hasty has every attempt that ends close a window.
type hasty struct{ gradient.Algorithm }

func (h hasty) Start(now time.Time) gradient.Decision {
	h.Algorithm.Start(now)
	return gradient.Decision{Limit: 512, MinSamples: 1}
}

func (h hasty) Next(now time.Time, w *gradient.Window) gradient.Decision {
	h.Algorithm.Next(now, w)
	return gradient.Decision{Limit: 512, MinSamples: 1}
}

// BenchmarkWindow is a pair that also closes a window, which holds the latency of that
// pair alone, and has Gradient decide on it.
func BenchmarkWindow(b *testing.B) {
	algorithm, err := gradient.New(gradient.Config{})
	if err != nil {
		b.Fatal(err)
	}
	l := limitedBy(b, hasty{algorithm}, limiter.Config{})
	run(b, 1, "gradient", func() {
		p, _ := l.TryAcquire(limiter.Primary)
		p.Release(permit.Success)
	})
	if l.Stats().Decisions < 2 {
		b.Error("no window was closed")
	}
}
