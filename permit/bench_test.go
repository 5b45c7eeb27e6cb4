package permit_test

import (
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/permit"
)

// The rival of a pool with a fixed limit is semaphore.Weighted: run both with
//
//	go test -run '^$' -bench 'Acquire|Refusal' -count 10 ./permit
func BenchmarkAcquireRelease(b *testing.B) {
	b.Run("pool", func(b *testing.B) {
		pool := newPool(b, 1<<20)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, err := pool.Acquire(b.Context())
				if err != nil {
					b.Error(err)
					return
				}
				p.Release(permit.Success)
			}
		})
	})
	b.Run("semaphore", func(b *testing.B) {
		s := semaphore.NewWeighted(1 << 20)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := s.Acquire(b.Context(), 1); err != nil {
					b.Error(err)
					return
				}
				s.Release(1)
			}
		})
	})
}

func BenchmarkRefusal(b *testing.B) {
	b.Run("pool", func(b *testing.B) {
		pool := newPool(b, 1)
		p, _ := pool.TryAcquire()
		defer p.Release(permit.Success)
		b.ReportAllocs()
		for b.Loop() {
			pool.TryAcquire()
		}
	})
	b.Run("semaphore", func(b *testing.B) {
		s := semaphore.NewWeighted(1)
		s.TryAcquire(1)
		b.ReportAllocs()
		for b.Loop() {
			s.TryAcquire(1)
		}
	})
}
