package permit_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/permit"
)

// The rivals stand in the same run, so that a ratio can be read off whatever the
// machine: semaphore.Weighted for a fixed size, and floor, the least that any
// limiter pays for a latency sample (one atomic add and two readings of the
// monotonic clock).
//
//	go test -run '^$' -bench . -count 10 ./permit | tee new.txt; benchstat -col /impl new.txt

// parallel runs op in n goroutines until the benchmark is over.
func parallel(b *testing.B, n int, op func()) {
	b.Helper()
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
}

var crowds = []int{1, 2, 16, 256, 4096}

// BenchmarkFixed takes and releases a permit at a fixed size that is never
// reached, without looking at the time.
func BenchmarkFixed(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprintf("goroutines=%d/impl=holdfast", n), func(b *testing.B) {
			pool := newPool(b, 1<<20)
			ctx := b.Context()
			parallel(b, n, func() {
				p, err := pool.Acquire(ctx)
				if err != nil {
					panic(err)
				}
				p.Release(permit.Success)
			})
		})
		b.Run(fmt.Sprintf("goroutines=%d/impl=semaphore", n), func(b *testing.B) {
			s := semaphore.NewWeighted(1 << 20)
			ctx := b.Context()
			parallel(b, n, func() {
				if err := s.Acquire(ctx, 1); err != nil {
					panic(err)
				}
				s.Release(1)
			})
		})
	}
}

// BenchmarkHeld is BenchmarkFixed while others hold many permits for long, so that most
// records are out and the lock of a cell is needed.
func BenchmarkHeld(b *testing.B) {
	for _, n := range []int{1, 16} {
		for _, held := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("goroutines=%d/held=%d/impl=holdfast", n, held), func(b *testing.B) {
				pool := newPool(b, 1<<20)
				ctx := b.Context()
				keep := make([]permit.Permit, held)
				for i := range keep {
					keep[i], _ = pool.TryAcquire()
				}
				parallel(b, n, func() {
					p, err := pool.Acquire(ctx)
					if err != nil {
						panic(err)
					}
					p.Release(permit.Success)
				})
				for _, p := range keep {
					p.Release(permit.Success)
				}
			})
			b.Run(fmt.Sprintf("goroutines=%d/held=%d/impl=semaphore", n, held), func(b *testing.B) {
				s := semaphore.NewWeighted(1 << 20)
				ctx := b.Context()
				_ = s.Acquire(ctx, int64(held))
				parallel(b, n, func() {
					if err := s.Acquire(ctx, 1); err != nil {
						panic(err)
					}
					s.Release(1)
				})
			})
		}
	}
}

// BenchmarkSampled also learns how long each permit was held.
func BenchmarkSampled(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprintf("goroutines=%d/impl=holdfast", n), func(b *testing.B) {
			base := time.Now()
			pool, err := permit.NewPool(permit.Config{Limit: 1 << 20, Base: base})
			if err != nil {
				b.Fatal(err)
			}
			ctx := b.Context()
			parallel(b, n, func() {
				p, err := pool.Acquire(ctx)
				if err != nil {
					panic(err)
				}
				if time.Since(base)-p.Grant().At < 0 {
					panic("the clock went back")
				}
				p.Release(permit.Success)
			})
		})
		b.Run(fmt.Sprintf("goroutines=%d/impl=floor", n), func(b *testing.B) {
			var inFlight struct {
				_ [64]byte
				n atomic.Int64
				_ [64]byte
			}
			base := time.Now()
			parallel(b, n, func() {
				inFlight.n.Add(1)
				start := time.Since(base)
				if time.Since(base)-start < 0 {
					panic("the clock went back")
				}
			})
		})
	}
}

// BenchmarkRefusal asks for a permit when none is free.
func BenchmarkRefusal(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprintf("goroutines=%d/impl=holdfast", n), func(b *testing.B) {
			pool := newPool(b, 1)
			p, _ := pool.TryAcquire()
			defer p.Release(permit.Success)
			parallel(b, n, func() { pool.TryAcquire() })
		})
		b.Run(fmt.Sprintf("goroutines=%d/impl=semaphore", n), func(b *testing.B) {
			s := semaphore.NewWeighted(1)
			s.TryAcquire(1)
			parallel(b, n, func() { s.TryAcquire(1) })
		})
	}
}

// BenchmarkHandOff has a crowd of goroutines want few permits, so that every one is
// handed over in the queue. The crowd queues before the clock starts, and whoever gets
// a permit comes again.
func BenchmarkHandOff(b *testing.B) {
	crowd := func(b *testing.B, limit, n int, acquire func(context.Context) (permit.Permit, error), release func(permit.Permit)) {
		ctx, cancel := context.WithCancel(b.Context())
		held := make([]permit.Permit, limit)
		for i := range held {
			held[i], _ = acquire(ctx)
		}
		left := int64(b.N)
		var begun, served atomic.Int64
		done := make(chan struct{})
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				for begun.Add(1); ; {
					p, err := acquire(ctx)
					if err != nil {
						return // the end
					}
					if served.Add(1) == left {
						close(done)
					}
					release(p)
				}
			})
		}
		for begun.Load() < int64(n) {
			runtime.Gosched()
		}
		time.Sleep(10*time.Millisecond + time.Duration(n)*10*time.Microsecond) // the last ones queue
		b.ReportAllocs()
		b.ResetTimer()
		for _, p := range held {
			release(p)
		}
		<-done
		b.StopTimer()
		cancel()
		all.Wait()
	}
	for _, c := range []struct{ limit, crowd int }{{1, 64}, {8, 64}, {8, 100_000}} {
		b.Run(fmt.Sprintf("limit=%d/crowd=%d/impl=holdfast", c.limit, c.crowd), func(b *testing.B) {
			pool := newPool(b, c.limit)
			crowd(b, c.limit, c.crowd, pool.Acquire, func(p permit.Permit) { p.Release(permit.Success) })
		})
		b.Run(fmt.Sprintf("limit=%d/crowd=%d/impl=semaphore", c.limit, c.crowd), func(b *testing.B) {
			s := semaphore.NewWeighted(int64(c.limit))
			crowd(b, c.limit, c.crowd,
				func(ctx context.Context) (permit.Permit, error) { return permit.Permit{}, s.Acquire(ctx, 1) },
				func(permit.Permit) { s.Release(1) })
		})
	}
}

// BenchmarkGiveUp has a caller come to the end of a long queue and leave it again.
func BenchmarkGiveUp(b *testing.B) {
	for _, n := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			pool := newPool(b, 1)
			p, _ := pool.TryAcquire()
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for range n {
				all.Go(func() { _, _ = pool.Acquire(ctx) })
			}
			for pool.Stats().Waiting < n {
				runtime.Gosched()
			}
			b.ReportAllocs()
			for b.Loop() {
				gone, leave := context.WithCancel(ctx)
				done := make(chan error)
				go func() { _, err := pool.Acquire(gone); done <- err }()
				for pool.Stats().Waiting == n {
					runtime.Gosched()
				}
				leave()
				<-done
			}
			cancel()
			all.Wait()
			p.Release(permit.Success)
		})
	}
}

// BenchmarkStats takes snapshots of pools that hold more and more, at rest and while
// another goroutine acquires and releases.
func BenchmarkStats(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		for _, busy := range []bool{false, true} {
			b.Run(fmt.Sprintf("held=%d/busy=%v", n, busy), func(b *testing.B) {
				pool := newPool(b, 2*n)
				var held []permit.Permit
				for range n {
					p, _ := pool.TryAcquire()
					held = append(held, p)
				}
				var stop atomic.Bool
				var other sync.WaitGroup
				if busy {
					other.Go(func() {
						for !stop.Load() {
							p, _ := pool.Acquire(context.Background())
							p.Release(permit.Success)
						}
					})
				}
				b.ReportAllocs()
				for b.Loop() {
					pool.Stats()
				}
				stop.Store(true)
				other.Wait()
				for _, p := range held {
					p.Release(permit.Success)
				}
			})
		}
	}
}
