package permit_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// What is granted or refused at once allocates nothing, with and without a clock, and
// however many permits are out besides.
func TestNothingIsAllocatedWithoutWaiting(t *testing.T) {
	ctx := t.Context()
	for name, config := range map[string]permit.Config{
		"plain":          {Limit: 100},
		"with a clock":   {Limit: 100, Base: time.Now()},
		"leaks reported": {Limit: 100, OnLeak: func(permit.Leak) {}},
	} {
		for _, held := range []int{0, 50} {
			pool, err := permit.NewPool(config)
			if err != nil {
				t.Fatal(err)
			}
			keep := make([]permit.Permit, held)
			for i := range keep {
				keep[i], _ = pool.TryAcquire()
			}
			full := newPool(t, 1)
			last, _ := full.TryAcquire()
			for what, f := range map[string]func(){
				"TryAcquire":        func() { p, _ := pool.TryAcquire(); p.Release(permit.Success) },
				"TryAcquireLeaving": func() { p, _ := pool.TryAcquireLeaving(10); p.Release(permit.Expired) },
				"TryAcquireN":       func() { p, _ := pool.TryAcquireN(3); p.Release(permit.Success) },
				"Acquire":           func() { p, _ := pool.Acquire(ctx); p.Release(permit.Success) },
				"AcquireWithin":     func() { p, _ := pool.AcquireWithin(ctx, 0); p.Release(permit.Canceled) },
				"AcquireN":          func() { p, _ := pool.AcquireN(ctx, 3); p.Release(permit.Success) },
				"Abandon":           func() { p, _ := pool.TryAcquire(); p.Abandon(); _ = p.Held(); p.Release(permit.Success) },
				"a second Release":  func() { p, _ := pool.TryAcquire(); p.Release(permit.Success); p.Release(permit.Success) },
				"Stats":             func() { pool.Stats() },
				"a refusal":         func() { full.TryAcquire() },
				"a full queue":      func() { _, _ = full.AcquireWithin(ctx, 0) },
				"too many":          func() { _, _ = full.AcquireN(ctx, 2) },
			} {
				if n := testing.AllocsPerRun(100, f); n != 0 {
					t.Errorf("%s, %d held: %s allocates %v times", name, held, what, n)
				}
			}
			last.Release(permit.Success)
			for _, p := range keep {
				p.Release(permit.Success)
			}
			probe(t, pool)
		}
	}
}

// A wait costs one allocation, its channel. It cannot be used again: a channel that was
// made in a bubble of testing/synctest must not be touched outside, and a pool may live
// in both.
func TestWaitAllocatesItsChannelOnly(t *testing.T) {
	pool := newPool(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Two goroutines hand one permit to and fro, so that every Acquire of the second
	// waits for a release of the first, and the other way round.
	p, _ := pool.TryAcquire()
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range ready {
			q, err := pool.Acquire(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			q.Release(permit.Success)
		}
	}()
	n := testing.AllocsPerRun(200, func() {
		ready <- struct{}{}
		for pool.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		p.Release(permit.Success)
		for {
			var ok bool
			if p, ok = pool.TryAcquire(); ok {
				return
			}
			runtime.Gosched()
		}
	})
	close(ready)
	<-done
	if n > 1 {
		t.Errorf("a wait allocates %v times", n)
	}
	p.Release(permit.Success)
	probe(t, pool)
}

// One pool serves bubbles and the world outside, one after the other.
func TestPoolMayOutliveABubble(t *testing.T) {
	pool := newPool(t, 1)
	wait := func(t *testing.T) {
		p, _ := pool.TryAcquire()
		done := make(chan error)
		go func() {
			q, err := pool.Acquire(context.Background())
			q.Release(permit.Success)
			done <- err
		}()
		for pool.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		p.Release(permit.Success)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		synctest.Test(t, wait)
		wait(t)
	}
	probe(t, pool)
}
