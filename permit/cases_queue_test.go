// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package permit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

func contains(err error, field string, value int) bool {
	return strings.Contains(err.Error(), field) && strings.Contains(err.Error(), fmt.Sprint(value))
}

// guest is one caller in the queue.
type guest struct {
	cancel context.CancelFunc
	permit permit.Permit
	err    error
	done   bool
}

// queueUp makes a caller wait, and returns when it does.
func queueUp(t *testing.T, pool *permit.Pool) *guest {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	g := &guest{cancel: cancel}
	before := pool.Stats().Waiting
	go func() {
		g.permit, g.err = pool.Acquire(ctx)
		g.done = true
	}()
	synctest.Wait()
	if n := pool.Stats().Waiting; n != before+1 {
		t.Fatalf("%d wait, want %d", n, before+1)
	}
	return g
}

// Field case B13, second half: a waiter whose context ends and whose turn comes before
// it is scheduled. The context that ended first counts always; otherwise either
// outcome is right, and the permit is not lost by any of them.
func TestContextThatEndsAsTheTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		for round := range 1000 {
			held := take(t, pool, 1)[0]
			g := queueUp(t, pool)
			cancelFirst := round%2 == 0
			if cancelFirst {
				g.cancel()
				held.Release(permit.Success)
			} else {
				held.Release(permit.Success)
				g.cancel()
			}
			synctest.Wait()
			switch {
			case !g.done:
				t.Fatal("the waiter sleeps on")
			case g.err == nil && !cancelFirst:
				g.permit.Release(permit.Success)
			case g.err != context.Canceled || g.permit.Held(): //nolint:errorlint // the bare error is the claim
				t.Fatalf("cancelled first %v: Acquire returned %v, held %v", cancelFirst, g.err, g.permit.Held())
			}
			if pool.InFlight() != 0 {
				t.Fatalf("in flight %d after both", pool.InFlight())
			}
		}
		probe(t, pool)
	})
}

// Field case B14: whatever makes room in the same step in which the head of the queue
// leaves, and in whichever order, the next is granted with no further release, and
// nobody sleeps while there is room.
func TestHeadThatLeavesPassesItsTurnOn(t *testing.T) {
	// The limit is 3 and then lowered to 1, two of three are released: one is out.
	lowered := func(t *testing.T, pool *permit.Pool, held []permit.Permit) {
		if err := pool.Resize(1); err != nil {
			t.Error(err)
		}
		held[1].Release(permit.Success)
		held[2].Release(permit.Success)
	}
	for name, c := range map[string]struct {
		before func(*testing.T, *permit.Pool, []permit.Permit)
		room   func(*permit.Pool, []permit.Permit)
		limit  int // afterwards
	}{
		"raise": {lowered, func(pool *permit.Pool, _ []permit.Permit) { _ = pool.Resize(2) }, 2},
		"release": {
			func(*testing.T, *permit.Pool, []permit.Permit) {},
			func(_ *permit.Pool, held []permit.Permit) { held[0].Release(permit.Success) }, 3,
		},
		"release below a lowered limit": {lowered, func(_ *permit.Pool, held []permit.Permit) { held[0].Release(permit.Success) }, 1},
	} {
		for _, cancelFirst := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", cancelled first ", cancelFirst), func(t *testing.T) {
				for range 100 {
					synctest.Test(t, func(t *testing.T) {
						pool := newPool(t, 3)
						held := take(t, pool, 3)
						a, b, c2 := queueUp(t, pool), queueUp(t, pool), queueUp(t, pool)
						c.before(t, pool, held)
						synctest.Wait()
						if s := pool.Stats(); s.Waiting != 3 || a.done || b.done || c2.done {
							t.Fatalf("granted above the limit: %+v", s)
						}
						if cancelFirst {
							a.cancel()
							c.room(pool, held)
						} else {
							c.room(pool, held)
							a.cancel()
						}
						synctest.Wait()
						if !a.done || cancelFirst && a.err == nil {
							t.Errorf("A: returned %v, with %v", a.done, a.err)
						}
						// If A was quicker than its cancellation, the place is A's.
						if want := a.err != nil; b.done != want || b.err != nil || c2.done {
							t.Errorf("A got %v; B returned %v with %v, C returned %v", a.err, b.done, b.err, c2.done)
						}
						if s := pool.Stats(); s.InFlight != c.limit || s.Limit != c.limit || s.Waiting == 0 {
							t.Errorf("there is room and callers wait: %+v", s)
						}
						for _, g := range []*guest{a, b, c2} {
							g.cancel()
							synctest.Wait()
							g.permit.Release(permit.Success)
						}
						for _, p := range held {
							p.Release(permit.Success)
						}
						probe(t, pool)
					})
				}
			})
		}
	}
}

// Field case B14, the least of it: a waiter who leaves from the middle or the end does
// not take the turn of the others along.
func TestWaiterThatLeavesFromAnywhereKeepsTheOrder(t *testing.T) {
	for leaves := range 5 {
		synctest.Test(t, func(t *testing.T) {
			pool := newPool(t, 1)
			held := take(t, pool, 1)[0]
			var guests []*guest
			for range 5 {
				guests = append(guests, queueUp(t, pool))
			}
			guests[leaves].cancel()
			synctest.Wait()
			if g := guests[leaves]; !g.done || !errors.Is(g.err, context.Canceled) {
				t.Fatalf("the caller who left: returned %v, %v", g.done, g.err)
			}
			for i, g := range guests {
				if i == leaves {
					continue
				}
				held.Release(permit.Success)
				synctest.Wait()
				for j, other := range guests {
					if j != leaves && other.done != (j <= i) {
						t.Fatalf("after the turn of %d, caller %d returned: %v", i, j, other.done)
					}
				}
				held = g.permit
			}
			held.Release(permit.Success)
			probe(t, pool)
		})
	}
}

// Field case B18: with one permit held by deaf work and five waiting, a new limit wakes
// in one step exactly those who fit, with no release; the rest sleep on, in order.
func TestNewLimitWakesExactlyThoseWhoFit(t *testing.T) {
	for limit, want := range map[int]int{6: 5, 3: 2, 1: 0, 2: 1, 1000: 5} {
		synctest.Test(t, func(t *testing.T) {
			pool := newPool(t, 1)
			deaf := take(t, pool, 1)[0]
			var guests []*guest
			for range 5 {
				guests = append(guests, queueUp(t, pool))
			}
			if err := pool.Resize(limit); err != nil {
				t.Error(err)
			}
			// The grants are made by Resize itself, before anybody is scheduled.
			if s := pool.Stats(); s.InFlight != 1+want || s.Waiting != 5-want || sum(s) != 0 {
				t.Errorf("limit %d: %+v, want %d woken", limit, s, want)
			}
			synctest.Wait()
			for i, g := range guests {
				if g.done != (i < want) || g.err != nil {
					t.Errorf("limit %d: caller %d returned %v, %v", limit, i, g.done, g.err)
				}
			}
			for _, g := range guests {
				g.cancel()
				synctest.Wait()
				g.permit.Release(permit.Success)
			}
			deaf.Release(permit.Success)
			probe(t, pool)
		})
	}
}

// Field case B19: eight callers who come back again and again do not overtake one who
// waits. The contest is stopped while that one takes its place in the middle of the
// queue, so that the grants after it can be counted: at most one for each who waited
// before.
func TestCallersThatComeBackDoNotOvertake(t *testing.T) {
	const rivals, before, bound = 8, 4, 64
	pool := newPool(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	var grants atomic.Int64
	var late sync.RWMutex // keeps half of the rivals out of the queue
	ended := make(chan struct{}, rivals)
	for i := range rivals {
		go func() {
			defer func() { ended <- struct{}{} }()
			for {
				if i >= before {
					late.RLock()
					late.RUnlock() //lint:ignore SA2001 a barrier
				}
				p, err := pool.Acquire(ctx)
				if err != nil {
					return
				}
				grants.Add(1)
				<-time.After(200 * time.Microsecond)
				p.Release(permit.Success)
			}
		}()
	}
	for range 20 {
		late.Lock()
		gate, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Those of the late ones who were in the queue already are served first.
		for pool.Stats().Waiting != before {
			gate.Release(permit.Success)
			if gate, err = pool.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(100 * time.Microsecond)
		}
		served := make(chan error, 1)
		go func() {
			deadline, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			w, err := pool.Acquire(deadline)
			n := grants.Load()
			w.Release(permit.Success)
			if n > before {
				t.Errorf("%d were served before the one who waited, of %d that waited before it (the bound is %d)", n, before, bound)
			}
			served <- err
		}()
		until(t, "W waits", func() bool { return pool.Stats().Waiting == before+1 })
		late.Unlock()
		until(t, "all wait", func() bool { return pool.Stats().Waiting == rivals+1 })
		grants.Store(0)
		gate.Release(permit.Success)
		if err := <-served; err != nil {
			t.Fatalf("W: %v", err)
		}
	}
	stop()
	for range rivals {
		<-ended
	}
	probe(t, pool)
}

// until waits, in real time, for what other goroutines bring about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Microsecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		}
	}
}
