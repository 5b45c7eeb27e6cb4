package main

import (
	"testing"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// rivalSize is the fixed size that all rivals have.
const rivalSize = 64

func newPool(b *testing.B, size int) *permit.Pool {
	b.Helper()
	p, err := permit.NewPool(permit.Config{Limit: size})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func newFixedLimiter(b *testing.B, size int) *limiter.Limiter {
	b.Helper()
	a, err := gradient.NewFixed(size)
	if err != nil {
		b.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: a})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// newFailsafeLimiter is adaptive, between two limits that are the same.
func newFailsafeLimiter(size uint) adaptivelimiter.AdaptiveLimiter[any] {
	return adaptivelimiter.NewBuilder[any]().WithLimits(size, size, size).Build()
}

// BenchmarkAcquireRelease takes and returns one permit of many, with nobody else
// about. The limiter does more than the rivals without one: it measures the latency.
func BenchmarkAcquireRelease(b *testing.B) {
	b.Run("permit", func(b *testing.B) {
		pool := newPool(b, rivalSize)
		b.ReportAllocs()
		for b.Loop() {
			p, err := pool.Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			p.Release(permit.Success)
		}
	})
	b.Run("limiter", func(b *testing.B) {
		l := newFixedLimiter(b, rivalSize)
		b.ReportAllocs()
		for b.Loop() {
			p, err := l.Acquire(b.Context(), limiter.Primary)
			if err != nil {
				b.Fatal(err)
			}
			p.Release(permit.Success)
		}
	})
	b.Run("failsafe-limiter", func(b *testing.B) {
		l := newFailsafeLimiter(rivalSize)
		b.ReportAllocs()
		for b.Loop() {
			p, err := l.AcquirePermit(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			p.Record()
		}
	})
	b.Run("failsafe-bulkhead", func(b *testing.B) {
		h := bulkhead.New[any](rivalSize)
		b.ReportAllocs()
		for b.Loop() {
			if err := h.AcquirePermit(b.Context()); err != nil {
				b.Fatal(err)
			}
			h.ReleasePermit()
		}
	})
	b.Run("semaphore", func(b *testing.B) {
		s := semaphore.NewWeighted(rivalSize)
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Acquire(b.Context(), 1); err != nil {
				b.Fatal(err)
			}
			s.Release(1)
		}
	})
	b.Run("channel", func(b *testing.B) {
		slots := make(chan struct{}, rivalSize)
		b.ReportAllocs()
		for b.Loop() {
			select {
			case slots <- struct{}{}:
			case <-b.Context().Done():
			}
			<-slots
		}
	})
}

// BenchmarkRefusal asks for a permit when there is none.
func BenchmarkRefusal(b *testing.B) {
	b.Run("permit", func(b *testing.B) {
		pool := newPool(b, 1)
		p, _ := pool.TryAcquire()
		defer p.Release(permit.Success)
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := pool.TryAcquire(); ok {
				b.Fatal("a second permit was granted")
			}
		}
	})
	b.Run("limiter", func(b *testing.B) {
		l := newFixedLimiter(b, 1)
		p, _ := l.TryAcquire(limiter.Primary)
		defer p.Release(permit.Success)
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := l.TryAcquire(limiter.Primary); ok {
				b.Fatal("a second permit was granted")
			}
		}
	})
	b.Run("failsafe-limiter", func(b *testing.B) {
		l := newFailsafeLimiter(1)
		p, _ := l.TryAcquirePermit()
		defer p.Record()
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := l.TryAcquirePermit(); ok {
				b.Fatal("a second permit was granted")
			}
		}
	})
	b.Run("failsafe-bulkhead", func(b *testing.B) {
		h := bulkhead.New[any](1)
		h.TryAcquirePermit()
		b.ReportAllocs()
		for b.Loop() {
			if h.TryAcquirePermit() {
				b.Fatal("a second permit was granted")
			}
		}
	})
	b.Run("semaphore", func(b *testing.B) {
		s := semaphore.NewWeighted(1)
		s.TryAcquire(1)
		b.ReportAllocs()
		for b.Loop() {
			if s.TryAcquire(1) {
				b.Fatal("a second permit was granted")
			}
		}
	})
	b.Run("channel", func(b *testing.B) {
		slots := make(chan struct{}, 1)
		slots <- struct{}{}
		b.ReportAllocs()
		for b.Loop() {
			select {
			case slots <- struct{}{}:
				b.Fatal("a second permit was granted")
			default:
			}
		}
	})
}
