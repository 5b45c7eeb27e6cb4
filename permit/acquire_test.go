package permit_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// Field case B13, for every way to ask: work whose caller has gone does not start, also
// if a permit is free.
func TestCallerWhoHasGoneGetsNoPermit(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, acquire := range map[string]func(*permit.Pool) (permit.Permit, error){
		"Acquire":                  func(p *permit.Pool) (permit.Permit, error) { return p.Acquire(gone) },
		"AcquireWithin":            func(p *permit.Pool) (permit.Permit, error) { return p.AcquireWithin(gone, 5) },
		"AcquireWithin no waiting": func(p *permit.Pool) (permit.Permit, error) { return p.AcquireWithin(gone, 0) },
		"AcquireN":                 func(p *permit.Pool) (permit.Permit, error) { return p.AcquireN(gone, 2) },
		"AcquireN of 1":            func(p *permit.Pool) (permit.Permit, error) { return p.AcquireN(gone, 1) },
	} {
		pool := newPool(t, 3)
		x, err := acquire(pool)
		if !errors.Is(err, context.Canceled) || x != (permit.Permit{}) {
			t.Errorf("%s: %v, %v", name, x, err)
		}
		if s := pool.Stats(); s.Granted != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		probe(t, pool)
	}
}

// A permit that is granted, to a caller whose context has ended before the caller runs,
// goes to the next. The context does not tell by Done, so that it is the grant which
// wakes the caller, always.
func TestContextThatEndsUnseenGivesThePermitUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		held, _ := pool.TryAcquire()
		ended := false
		ctx := oddContext{Context: t.Context(), done: func() <-chan struct{} { return nil }, err: func() error {
			if ended {
				return context.DeadlineExceeded
			}
			return nil
		}}
		errs := make(chan error, 1)
		go func() {
			p, err := pool.Acquire(ctx)
			p.Release(permit.Success)
			errs <- err
		}()
		synctest.Wait()
		next := queueUp(t, pool)
		ended = true
		held.Release(permit.Success)
		synctest.Wait()
		if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v", err)
		}
		if s := pool.Stats(); !next.done || next.err != nil || s.Released[permit.Ignored] != 1 {
			t.Errorf("the next: returned %v, %v; %+v", next.done, next.err, s)
		}
		next.permit.Release(permit.Success)
		probe(t, pool)
	})
}

// L12: a permit counts from when its holder may start, however long ago it was woken.
func TestGrantIsOfTheReturnOfTheCallerWhoWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTimedPool(t, 1)
		held, _ := pool.TryAcquire()
		calls := 0
		ctx := oddContext{Context: t.Context(), err: func() error {
			if calls++; calls > 1 {
				time.Sleep(time.Minute) // between the wake-up and the return
			}
			return nil
		}}
		granted := make(chan permit.Permit)
		go func() {
			p, err := pool.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			granted <- p
		}()
		synctest.Wait()
		held.Release(permit.Success)
		p := <-granted
		if g := p.Grant(); g.At != time.Minute || !g.Waited {
			t.Errorf("granted as %+v", g)
		}
		p.Release(permit.Success)
		probe(t, pool)
	})
}

// A weight that is none is refused by name, and a pool is not made of nonsense.
func TestNonsenseIsRefusedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which a call that waits for ever is found out
		pool := newPool(t, 2)
		for _, n := range []int{0, -1, math.MinInt} {
			if x, err := pool.AcquireN(t.Context(), n); err == nil || !contains(err, "AcquireN", n) || x != (permit.Permit{}) {
				t.Errorf("AcquireN(%d): %v, %v", n, x, err)
			}
		}
		for _, n := range []int{3, permit.MaxLimit + 1, math.MaxInt} {
			if x, err := pool.AcquireN(t.Context(), n); !errors.Is(err, permit.ErrTooMany) || x != (permit.Permit{}) {
				t.Errorf("AcquireN(%d): %v, %v", n, x, err)
			}
		}
		probe(t, pool)
	})
	none, err := permit.NewPool(permit.Config{Limit: 1, StackEvery: -1})
	if none != nil || err == nil || !strings.Contains(err.Error(), "StackEvery -1") {
		t.Errorf("NewPool with StackEvery -1: %v, %v", none, err)
	}
}
