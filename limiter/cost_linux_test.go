//go:build linux

package limiter_test

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// cpu is the processor time of this process so far.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Field case B18: a thousand callers who wait for two seconds cost no processor time
// and no goroutine beside their own, with and without a bound on the wait.
func TestWaitingCostsNothing(t *testing.T) {
	patient := fixed(t, 1, limiter.Config{MaxWaiting: limiter.Unbounded})
	bounded := fixed(t, 1, limiter.Config{MaxWaiting: 1000, MaxWait: time.Minute})
	before := runtime.NumGoroutine()
	const callers = 500 // of each
	var all sync.WaitGroup
	var held []limiter.Permit
	for _, l := range []*limiter.Limiter{patient, bounded} {
		p, ok := l.TryAcquire(limiter.Primary)
		if !ok {
			t.Fatal("no permit")
		}
		held = append(held, p)
		for range callers {
			all.Go(func() {
				if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		for l.Stats().Ledger.Waiting != callers {
			runtime.Gosched()
		}
	}
	runtime.GC() // what the start has left is not the cost of waiting
	start := cpu(t)
	<-time.After(2 * time.Second)
	if used := cpu(t) - start; used >= 100*time.Millisecond {
		t.Errorf("%d callers who waited for 2 s cost %v of processor time", 2*callers, used)
	}
	if n := runtime.NumGoroutine() - before; n > 2*callers+2 {
		t.Errorf("%d goroutines for %d callers", n, 2*callers)
	}
	for _, p := range held {
		p.Release(permit.Success)
	}
	all.Wait()
	probe(t, patient)
	probe(t, bounded)
}
