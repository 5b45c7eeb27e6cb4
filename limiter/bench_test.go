package limiter_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// One acquire and release with a latency sample, by 1, 16 and 256 goroutines. The floor
// is what no limiter can go below: an atomic add and a monotonic clock reading at each
// end. The permit is the ledger by itself, with the same two readings.
//
//	go test -run '^$' -bench AcquireRelease -count 10 ./limiter
func BenchmarkAcquireRelease(b *testing.B) {
	for _, goroutines := range []int{1, 16, 256} {
		run := func(name string, pair func()) {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				if goroutines == 1 {
					for b.Loop() {
						pair()
					}
					return
				}
				parallel(b, goroutines, pair)
			})
		}
		base := time.Now()
		var inFlight, total atomic.Int64
		run("floor", func() {
			inFlight.Add(1)
			start := time.Since(base)
			total.Store(int64(time.Since(base) - start))
			inFlight.Add(-1)
		})
		pool, err := permit.NewPool(permit.Config{Limit: 1 << 20, Base: base})
		if err != nil {
			b.Fatal(err)
		}
		run("permit", func() {
			p, err := pool.Acquire(b.Context())
			if err != nil {
				b.Error(err)
			}
			if time.Since(base) < p.Grant().At {
				b.Error("the clock fell")
			}
			p.Release(permit.Success)
		})
		pair := func(l *limiter.Limiter) func() {
			return func() {
				p, err := l.Acquire(b.Context(), limiter.Primary)
				if err != nil {
					b.Error(err)
				}
				p.Release(permit.Success)
			}
		}
		run("fixed", pair(fixed(b, 1<<20, limiter.Config{})))
		l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
		if err != nil {
			b.Fatal(err)
		}
		run("gradient", pair(l))
	}
}

// parallel runs body b.N times, in so many goroutines.
func parallel(b *testing.B, goroutines int, body func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	const batch = 64 // so that the count is not what is measured
	done := make(chan struct{})
	b.ResetTimer()
	for range goroutines {
		go func() {
			defer func() { done <- struct{}{} }()
			for left.Add(-batch) > -batch {
				for range batch {
					body()
				}
			}
		}()
	}
	for range goroutines {
		<-done
	}
}

// BenchmarkRefusal is what a call costs that finds no room, and what that costs in the
// ledger alone.
func BenchmarkRefusal(b *testing.B) {
	b.Run("permit", func(b *testing.B) {
		pool, err := permit.NewPool(permit.Config{Limit: 1, Base: time.Now()})
		if err != nil {
			b.Fatal(err)
		}
		p, _ := pool.TryAcquire()
		defer p.Release(permit.Success)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = pool.AcquireWithin(b.Context(), 0)
		}
	})
	b.Run("limiter", func(b *testing.B) {
		l := fixed(b, 1, limiter.Config{})
		p, _ := l.TryAcquire(limiter.Primary)
		defer p.Release(permit.Success)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.Acquire(b.Context(), limiter.Primary)
		}
	})
}

// BenchmarkWindow is a pair that also closes a window, which holds the latencies of that
// pair alone.
func BenchmarkWindow(b *testing.B) {
	l := limitedBy(b, &between{limits: []int{9}}, limiter.Config{})
	b.ReportAllocs()
	for b.Loop() {
		p, _ := l.TryAcquire(limiter.Primary)
		p.Release(permit.Success)
	}
}
