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

// shut checks that a pool lets nobody in and is empty.
func shut(t testing.TB, pool *permit.Pool) {
	t.Helper()
	if s := pool.Stats(); !s.Closed || s.InFlight != 0 || s.Waiting != 0 || s.Overhang != 0 || s.Granted != sum(s) {
		t.Errorf("not closed and empty: %+v", s)
	}
	_, tried := pool.TryAcquire()
	_, left := pool.TryAcquireLeaving(0)
	_, err := pool.Acquire(context.Background())
	_, within := pool.AcquireWithin(context.Background(), 1)
	if tried || left || !errors.Is(err, permit.ErrClosed) || !errors.Is(within, permit.ErrClosed) {
		t.Errorf("a closed pool was entered: %v, %v, %v, %v", tried, left, err, within)
	}
}

func TestCloseWakesAllWhoWaitAndWaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 2)
		held := take(t, pool, 2)
		var guests []*guest
		for range 5 {
			guests = append(guests, queueUp(t, pool))
		}
		closed := false
		go func() {
			if err := pool.Close(t.Context()); err != nil {
				t.Error(err)
			}
			closed = true
		}()
		synctest.Wait()
		for i, g := range guests {
			if !g.done || g.err != permit.ErrClosed || g.permit.Held() { //nolint:errorlint // the bare sentinel is the claim
				t.Errorf("caller %d: returned %v, %v, held %v", i, g.done, g.err, g.permit.Held())
			}
		}
		// The work goes on as before: it can be abandoned and is counted.
		held[0].Abandon()
		if s := pool.Stats(); closed || s.InFlight != 2 || s.Overhang != 1 || s.Waiting != 0 || !held[0].Held() {
			t.Errorf("with work running: closed %v, %+v", closed, s)
		}
		time.Sleep(time.Hour)
		held[0].Release(permit.Canceled)
		synctest.Wait()
		if closed {
			t.Error("Close returned before the last release")
		}
		if !held[1].Release(permit.Success) || held[1].Release(permit.Success) {
			t.Error("a release after Close does not count once")
		}
		synctest.Wait()
		if !closed {
			t.Error("Close waits on after the last release")
		}
		shut(t, pool)
	})
}

// A Close whose context has ended closes all the same, and a later one goes on.
func TestCloseWithAnEndedContextCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		idle := newPool(t, 1)
		if err := idle.Close(ended); err != nil {
			t.Errorf("Close of an idle pool: %v", err)
		}
		shut(t, idle)

		pool := newPool(t, 1)
		held := take(t, pool, 1)[0]
		g := queueUp(t, pool)
		if err := pool.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Close with work running: %v", err)
		}
		synctest.Wait()
		if !errors.Is(g.err, permit.ErrClosed) || !pool.Stats().Closed || pool.InFlight() != 1 {
			t.Errorf("the caller who waited: %v; %+v", g.err, pool.Stats())
		}
		if _, ok := pool.TryAcquire(); ok {
			t.Error("the pool is open")
		}
		time.AfterFunc(time.Minute, func() { held.Release(permit.Success) })
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := pool.Close(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Close for a second: %v after %v", err, time.Since(start))
		}
		if err := pool.Close(t.Context()); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Close at last: %v after %v", err, time.Since(start))
		}
		if err := pool.Close(ended); err != nil {
			t.Errorf("Close once more: %v", err)
		}
		shut(t, pool)
	})
}

// Work outlives the Close that gave up on it; its release is counted and frees nothing
// for others.
func TestReleaseAfterCloseLetsNobodyIn(t *testing.T) {
	pool := newPool(t, 1)
	held := take(t, pool, 1)[0]
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pool.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	if err := pool.Resize(100); err != nil { // an algorithm may still move the limit
		t.Errorf("Resize: %v", err)
	}
	if _, err := pool.Acquire(t.Context()); !errors.Is(err, permit.ErrClosed) {
		t.Errorf("Acquire below the limit of a closed pool: %v", err)
	}
	if !held.Release(permit.Success) || held.Release(permit.Success) || held.Held() {
		t.Error("the release after Close does not count once")
	}
	if err := pool.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	shut(t, pool)
}

// Close races with callers of every kind, with Resize and with itself. Every caller
// has a permit or an error, every Close returns when all permits are back, and none is
// granted afterwards.
func TestCloseRacesWithAcquireAndResize(t *testing.T) {
	for range 40 {
		pool := newPool(t, 3)
		start := make(chan struct{})
		var all, closers sync.WaitGroup
		var running, afterClose atomic.Int64
		var isClosed atomic.Bool
		use := func(p permit.Permit) {
			if isClosed.Load() {
				afterClose.Add(1)
			}
			running.Add(1)
			p.Abandon()
			running.Add(-1)
			if !p.Release(permit.Success) {
				t.Error("a permit was lost")
			}
		}
		for i := range 30 {
			all.Go(func() {
				<-start
				for {
					var p permit.Permit
					var err error
					if i%3 == 0 {
						var ok bool
						if p, ok = pool.TryAcquire(); !ok {
							if pool.Stats().Closed {
								return
							}
							continue
						}
					} else if p, err = pool.Acquire(context.Background()); err != nil {
						if err != permit.ErrClosed { //nolint:errorlint // the bare sentinel is the claim
							t.Errorf("Acquire: %v", err)
						}
						return
					}
					use(p)
				}
			})
		}
		all.Go(func() {
			<-start
			for i := range 100 {
				_ = pool.Resize(1 + i%5)
			}
		})
		for range 3 {
			closers.Go(func() {
				<-start
				if err := pool.Close(context.Background()); err != nil {
					t.Errorf("Close: %v", err)
				}
				if n := running.Load(); n != 0 {
					t.Errorf("Close returned while %d ran", n)
				}
				isClosed.Store(true)
			})
		}
		close(start)
		closers.Wait()
		all.Wait()
		if afterClose.Load() != 0 {
			t.Errorf("%d permits were granted after Close had returned", afterClose.Load())
		}
		shut(t, pool)
	}
}
