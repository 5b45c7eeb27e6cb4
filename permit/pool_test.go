package permit_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

func newPool(t testing.TB, limit int) *permit.Pool {
	t.Helper()
	p, err := permit.NewPool(permit.Config{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// probe ends a test: nothing is in flight, and exactly Limit permits are to be had.
func probe(t testing.TB, pool *permit.Pool) {
	t.Helper()
	if err := pool.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	if s := pool.Stats(); s.InFlight != 0 || s.Waiting != 0 || s.Overhang != 0 {
		t.Fatalf("not at rest: %+v", s)
	}
	var got []permit.Permit
	for {
		p, ok := pool.TryAcquire()
		if !ok {
			break
		}
		got = append(got, p)
	}
	if len(got) != pool.Limit() {
		t.Fatalf("%d permits are to be had, the limit is %d", len(got), pool.Limit())
	}
	for _, p := range got {
		p.Release(permit.Ignored)
	}
}

func TestLimitBelowOneIsRefused(t *testing.T) {
	for _, limit := range []int{0, -1, math.MinInt} {
		if p, err := permit.NewPool(permit.Config{Limit: limit}); err == nil || p != nil {
			t.Errorf("NewPool(%d) = %v, %v", limit, p, err)
		}
		pool := newPool(t, 3)
		if err := pool.Resize(limit); err == nil || pool.Limit() != 3 {
			t.Errorf("Resize(%d): %v, limit now %d", limit, err, pool.Limit())
		}
	}
}

// Field case B11: only the first of many releases counts.
func TestReleaseFromManyGoroutinesCountsOnce(t *testing.T) {
	pool := newPool(t, 10)
	var held [10]permit.Permit
	for i := range held {
		held[i], _ = pool.TryAcquire()
	}
	var counted atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, p := range held { // copies, each of them
				if p.Release(permit.Success) {
					counted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if counted.Load() != 10 {
		t.Errorf("%d releases counted, want 10", counted.Load())
	}
	probe(t, pool)

	// The value beside an error, and the zero value, are nobody's permit.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := pool.Acquire(ctx)
	if !errors.Is(err, context.Canceled) || p.Release(permit.Success) || (permit.Permit{}).Release(permit.Success) {
		t.Errorf("a permit that was never granted could be released (error %v)", err)
	}
	probe(t, pool)
}

// A handle must not speak for a later permit that reuses its place in the ledger.
func TestOldHandleDoesNotReleaseNewPermit(t *testing.T) {
	pool := newPool(t, 1)
	old, _ := pool.TryAcquire()
	old.Release(permit.Success)
	young, ok := pool.TryAcquire()
	if !ok || old.Release(permit.Success) || old.Held() || !young.Held() {
		t.Fatal("the old handle reached the new permit")
	}
	old.Abandon()
	if pool.Stats().Overhang != 0 {
		t.Fatal("the old handle abandoned the new permit")
	}
	young.Release(permit.Success)
	probe(t, pool)
}

// Field case B12: the check and the grant are one decision.
func TestNoOvershootUnderContention(t *testing.T) {
	pool := newPool(t, 10)
	var running, peak atomic.Int64
	work := func(p permit.Permit) {
		n := running.Add(1)
		for {
			old := peak.Load()
			if n <= old || peak.CompareAndSwap(old, n) {
				break
			}
		}
		if g := p.Grant(); g.InFlight > g.Limit || g.InFlight < 1 {
			t.Errorf("granted at %+v", g)
		}
		running.Add(-1)
		p.Release(permit.Success)
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 200 {
		wg.Go(func() {
			<-start
			for range 50 {
				if i%2 == 0 {
					if p, ok := pool.TryAcquire(); ok {
						work(p)
					}
				} else if p, err := pool.Acquire(t.Context()); err == nil {
					work(p)
				}
			}
		})
	}
	wg.Go(func() {
		<-start
		for i := range 2000 {
			_ = pool.Resize(8 + 2*(i%2))
		}
	})
	close(start)
	wg.Wait()
	_ = pool.Resize(10)
	if peak.Load() > 10 {
		t.Errorf("%d ran at once, the limit was never above 10", peak.Load())
	}
	probe(t, pool)
}

// Field case B13: work whose caller has gone does not start.
func TestDoneContextGetsNoPermit(t *testing.T) {
	pool := newPool(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		if _, err := pool.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("Acquire with a done context: %v", err)
		}
	}
	if n := pool.Stats().Granted; n != 0 {
		t.Errorf("%d permits were granted", n)
	}
	probe(t, pool)
}

// Field case B14: with the queue asleep below a lowered limit, raising it and the
// head's leaving in one step must wake the next, in both orders.
func TestHeadThatLeavesDoesNotKeepTheQueueAsleep(t *testing.T) {
	for _, cancelFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			pool := newPool(t, 3)
			var held []permit.Permit
			for range 3 {
				p, _ := pool.TryAcquire()
				held = append(held, p)
			}
			ctx, cancel := context.WithCancel(t.Context())
			granted := make(chan string, 3)
			wait := func(ctx context.Context, name string) {
				go func() {
					if p, err := pool.Acquire(ctx); err == nil {
						granted <- name
						defer p.Release(permit.Success)
						<-t.Context().Done()
					}
				}()
				synctest.Wait()
			}
			wait(ctx, "A")
			wait(t.Context(), "B")
			wait(t.Context(), "C")
			_ = pool.Resize(1)
			held[0].Release(permit.Success)
			held[1].Release(permit.Success)
			synctest.Wait()
			if len(granted) != 0 {
				t.Fatal("granted above the limit")
			}
			if cancelFirst {
				cancel()
				_ = pool.Resize(2)
			} else {
				_ = pool.Resize(2)
				cancel()
			}
			synctest.Wait()
			name := <-granted
			if cancelFirst && name != "B" {
				t.Errorf("granted %s, want B", name)
			}
			if s := pool.Stats(); s.InFlight != 2 {
				t.Errorf("in flight %d with limit 2 and callers waiting", s.InFlight)
			}
			held[2].Release(permit.Success)
		})
	}
}

// Field case B18: raising the limit wakes all who fit, and no more.
func TestRaiseWakesAllWhoFit(t *testing.T) {
	for limit, want := range map[int]int{6: 5, 3: 2, 1: 0, 100: 5} {
		synctest.Test(t, func(t *testing.T) {
			pool := newPool(t, 1)
			first, _ := pool.TryAcquire()
			var woken atomic.Int64
			for range 5 {
				go func() {
					p, err := pool.Acquire(t.Context())
					if err != nil {
						return
					}
					woken.Add(1)
					<-t.Context().Done()
					p.Release(permit.Success)
				}()
			}
			synctest.Wait()
			_ = pool.Resize(limit)
			synctest.Wait()
			if int(woken.Load()) != want {
				t.Errorf("limit 1 → %d with 5 waiting: %d woken, want %d", limit, woken.Load(), want)
			}
			first.Release(permit.Success)
			_ = pool.Resize(10)
		})
	}
}

// Field case B19: with hand-off in order, a caller who waits is served before all
// who come later, however often those come back.
func TestWaiterIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		first, _ := pool.TryAcquire()
		grants := 0 // guarded by the permit
		served := -1
		go func() {
			p, err := pool.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			served = grants
			p.Release(permit.Success)
		}()
		synctest.Wait() // it is in the queue now
		for range 8 {
			go func() {
				for range 100 {
					p, err := pool.Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					grants++
					time.Sleep(200 * time.Microsecond)
					p.Release(permit.Success)
				}
			}()
		}
		synctest.Wait()
		first.Release(permit.Success)
		time.Sleep(time.Second)
		synctest.Wait()
		if served != 0 || grants != 800 {
			t.Errorf("served after %d others, %d grants in all", served, grants)
		}
		probe(t, pool)
	})
}

func TestReserveIsNeverOverflowed(t *testing.T) {
	pool := newPool(t, 2)
	for _, reserve := range []int{2, 3, math.MaxInt} {
		if _, ok := pool.TryAcquireLeaving(reserve); ok {
			t.Errorf("a permit was taken with a reserve of %d and a limit of 2", reserve)
		}
	}
	p, ok := pool.TryAcquireLeaving(math.MinInt)
	if !ok {
		t.Error("a negative reserve does not count as 0")
	}
	p.Release(permit.Success)
	probe(t, pool)
}

func TestCloseWaitsForHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		p, _ := pool.TryAcquire()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := pool.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Close with a holder: %v", err)
		}
		time.AfterFunc(time.Minute, func() { p.Release(permit.Success) })
		start := time.Now()
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- pool.Close(t.Context()) }()
		}
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("Close returned after %v", d)
		}
		if _, err := pool.Acquire(t.Context()); !errors.Is(err, permit.ErrClosed) {
			t.Errorf("Acquire after Close: %v", err)
		}
		if _, ok := pool.TryAcquire(); ok {
			t.Error("TryAcquire after Close")
		}
	})
}

func TestReleaseHappensBeforeTheNextGrant(t *testing.T) {
	pool := newPool(t, 1)
	counter := 0 // guarded by the permit alone; the race detector looks on
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				p, err := pool.Acquire(t.Context())
				if err != nil {
					return
				}
				counter++
				p.Release(permit.Success)
			}
		})
	}
	wg.Wait()
	if counter != 1600 {
		t.Errorf("counter %d", counter)
	}
}

func TestOutcomeNames(t *testing.T) {
	for o, want := range map[permit.Outcome]string{
		permit.Ignored: "ignored", permit.Success: "success", permit.Overload: "overload",
		permit.Expired: "expired", permit.Canceled: "canceled", 99: "invalid",
	} {
		if o.String() != want {
			t.Errorf("Outcome(%d) = %q, want %q", o, o, want)
		}
	}
}

// The books grow with the most that was ever out at once, wherever it was acquired.
func TestBooksGrowWithThePeakOnly(t *testing.T) {
	const peak = 200
	pool := newPool(t, peak)
	for range 100 {
		done := make(chan struct{})
		go func() { // elsewhere in memory, and so in another cell
			defer close(done)
			var held []permit.Permit
			for range peak {
				p, _ := pool.TryAcquire()
				held = append(held, p)
			}
			for _, p := range held {
				p.Release(permit.Success)
			}
		}()
		<-done
	}
	if n, most := pool.Records(), peak+pool.FastRecords(); n > most {
		t.Errorf("%d records after never more than %d permits, want %d at most", n, peak, most)
	}
	probe(t, pool)
}
