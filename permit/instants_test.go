package permit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// A permit that was handed over is as old as the hand-over.
func TestHandedOverPermitIsAsOldAsTheHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTimedPool(t, 1)
		first, _ := pool.TryAcquire()
		got := make(chan permit.Permit)
		go func() { p, _ := pool.Acquire(context.Background()); got <- p }()
		time.Sleep(time.Hour)
		first.Release(permit.Success)
		second := <-got
		time.Sleep(time.Second)
		if age := pool.Stats().Oldest; age < time.Second || age > time.Second+time.Millisecond {
			t.Errorf("a second after the hand-over the oldest permit is %v old", age)
		}
		second.Release(permit.Success)
		probe(t, pool)
	})
}

// A grant says that it was waited for, whichever way the place came free.
func TestGrantTellsThatItWasWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		first, _ := pool.TryAcquire()
		got := make(chan permit.Permit)
		for range 3 {
			go func() { p, _ := pool.Acquire(context.Background()); got <- p }()
		}
		synctest.Wait()
		_ = pool.Resize(2) // wakes one
		second := <-got
		first.Release(permit.Success) // hands its permit over
		third := <-got
		_ = pool.Resize(1)
		second.Release(permit.Success) // makes no room
		third.Release(permit.Success)
		last := <-got
		for i, p := range []permit.Permit{second, third, last} {
			if g := p.Grant(); !g.Waited || g.InFlight > g.Limit {
				t.Errorf("waiter %d was granted %+v", i, g)
			}
		}
		last.Release(permit.Success)
		if p, _ := pool.TryAcquire(); p.Grant().Waited {
			t.Errorf("granted at once: %+v", p.Grant())
		} else {
			p.Release(permit.Success)
		}
		probe(t, pool)
	})
}

// Close succeeds if the last release comes in the same instant as the end of its
// context.
func TestCloseThatEndsWithItsContextSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 { // select chooses at random
			pool := newPool(t, 1)
			held, _ := pool.TryAcquire()
			ended := make(chan struct{})
			close(ended)
			ctx := oddContext{Context: t.Context(), done: func() <-chan struct{} {
				held.Release(permit.Success) // Close waits already, and looks next
				return ended
			}}
			if err := pool.Close(ctx); err != nil {
				t.Fatalf("Close: %v", err)
			}
		}
	})
}

// A Close that gave up leaves nothing behind: what belongs to a bubble of
// testing/synctest must not be touched outside.
func TestCloseThatGaveUpLeavesNothing(t *testing.T) {
	pool := newPool(t, 2)
	p, _ := pool.TryAcquire()
	q, _ := pool.TryAcquire()
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				go func() { _ = pool.Close(ctx) }()
			}
		})
	}
	p.Release(permit.Success)
	done := make(chan error)
	go func() { done <- pool.Close(context.Background()) }()
	q.Release(permit.Success)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A context that ends for no reason ends Close with Canceled, and one that panics leaves
// the pool in order.
func TestOddContextOfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		p, _ := pool.TryAcquire()
		ended := make(chan struct{})
		close(ended)
		odd := oddContext{Context: t.Context(), err: func() error { return nil }, done: func() <-chan struct{} { return ended }}
		if err := pool.Close(odd); !errors.Is(err, context.Canceled) {
			t.Errorf("Close: %v", err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = pool.Close(oddContext{Context: t.Context(), done: func() <-chan struct{} { panic("done") }})
		}()
		p.Release(permit.Success)
		if err := pool.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// Counters never fall from one snapshot to the next, and nothing comes back that was not
// granted, while others acquire and release as fast as they can: a snapshot that took a
// release half done would show it.
func TestSnapshotsBesideRunningCallsNeverGoBack(t *testing.T) {
	pool := newTimedPool(t, 6)
	var stop atomic.Bool
	var others sync.WaitGroup
	for i := range 6 {
		others.Go(func() {
			o := permit.Outcome(i % permit.NumOutcomes)
			for n := 0; !stop.Load(); n++ {
				p, err := pool.AcquireN(context.Background(), 1+(n+i)%3/2)
				if err != nil {
					t.Error(err)
					return
				}
				p.Release(o)
			}
		})
	}
	var before permit.Stats
	for range 20_000 {
		s := pool.Stats()
		var back uint64
		for o, n := range s.Released {
			back += n
			if n < before.Released[o] {
				t.Errorf("released fell from %+v to %+v", before, s)
			}
		}
		if s.Granted < before.Granted || back > s.Granted || s.Granted != back+uint64(s.InFlight) ||
			s.InFlight < 0 || s.InFlight > 6 || s.Overhang != 0 || s.Oldest > time.Minute {
			t.Errorf("after %+v came %+v", before, s)
		}
		if before = s; t.Failed() {
			break
		}
	}
	stop.Store(true)
	others.Wait()
	probe(t, pool)
}
