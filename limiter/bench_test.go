package limiter_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// One acquire and release with a latency sample. The floor is what no limiter can
// go below: an atomic add and a monotonic clock reading at each end.
//
//	go test -run '^$' -bench AcquireRelease -count 10 ./limiter
func BenchmarkAcquireRelease(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		var inFlight atomic.Int64
		var total atomic.Int64
		base := time.Now()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				inFlight.Add(1)
				start := time.Since(base)
				total.Add(int64(time.Since(base) - start))
				inFlight.Add(-1)
			}
		})
	})
	b.Run("fixed", func(b *testing.B) {
		l := fixed(b, 1<<20, limiter.Config{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, err := l.Acquire(b.Context(), limiter.Primary)
				if err != nil {
					b.Error(err)
					return
				}
				p.Release(permit.Success)
			}
		})
	})
	b.Run("gradient", func(b *testing.B) {
		l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, err := l.Acquire(b.Context(), limiter.Primary)
				if err != nil {
					b.Error(err)
					return
				}
				p.Release(permit.Success)
			}
		})
	})
}

func BenchmarkRefusal(b *testing.B) {
	l := fixed(b, 1, limiter.Config{})
	p, _ := l.TryAcquire(limiter.Primary)
	defer p.Release(permit.Success)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Acquire(b.Context(), limiter.Primary)
	}
}
