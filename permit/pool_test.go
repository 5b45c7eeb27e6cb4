package permit_test

import (
	"context"
	"errors"
	"math"
	"sync"
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
