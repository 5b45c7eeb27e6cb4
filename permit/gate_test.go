package permit_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// The tests in this file look for what goes wrong only if goroutines meet within a few
// instructions. More of them than processors do little else than meet, for swarmTime.
const swarmTime = 150 * time.Millisecond

// swarm runs all of f again and again, each on a goroutine of its own, until the time
// is up or one of them reports false.
func swarm(f ...func() bool) {
	end := time.Now().Add(swarmTime)
	var stop atomic.Bool
	var all sync.WaitGroup
	for _, f1 := range f {
		all.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if !f1() || i%64 == 0 && !time.Now().Before(end) {
					stop.Store(true)
				}
			}
		})
	}
	all.Wait()
}

// workbench counts those who work under one pool, and so knows what the limit must bound.
type workbench struct {
	t    *testing.T
	room int64 // how many may work at once
	hold int   // for how long each works, in steps
	busy atomic.Int64
}

// work does some as n. It reports false if more work than may.
func (b *workbench) work(n int64, p permit.Permit) bool {
	busy := b.busy.Add(n)
	for range b.hold {
		b.busy.Load()
	}
	if busy > b.room {
		b.t.Errorf("%d work at once, there is room for %d; granted as %+v", busy, b.room, p.Grant())
	}
	b.busy.Add(-n)
	if !p.Release(permit.Success) {
		b.t.Error("a permit could not be released")
		return false
	}
	return busy <= b.room
}

// L4 and L5: the word that admits is the word that was looked at, whichever way one asks,
// and whoever else asks or reads at the same time.
func TestNewcomersMeetAtTheLastPermit(t *testing.T) {
	type ask = func(*permit.Pool) (permit.Permit, bool)
	try := (*permit.Pool).TryAcquire
	within := func(p *permit.Pool) (permit.Permit, bool) {
		x, err := p.AcquireWithin(context.Background(), 0)
		return x, err == nil
	}
	leaving := func(p *permit.Pool) (permit.Permit, bool) { return p.TryAcquireLeaving(1) }
	reading := func(p *permit.Pool) (permit.Permit, bool) {
		x, ok := p.TryAcquireLeaving(1)
		p.Stats()
		return x, ok
	}
	for name, c := range map[string]struct {
		limit int
		room  int64
		hold  int
		ask   []ask
	}{
		"no reserve":         {1, 1, 500, []ask{try, within, try, within}},
		"reserve":            {2, 1, 500, []ask{leaving, leaving, leaving, leaving}},
		"reserve, snapshots": {2, 1, 5000, []ask{leaving, reading, leaving, reading}}, // longer than a snapshot
	} {
		t.Run(name, func(t *testing.T) {
			pool := newPool(t, c.limit)
			b := &workbench{t: t, room: c.room, hold: c.hold}
			var f []func() bool
			for _, ask := range c.ask {
				f = append(f, func() bool {
					p, ok := ask(pool)
					return !ok || b.work(1, p)
				})
			}
			swarm(f...)
			probe(t, pool)
		})
	}
}

// L6: whoever decides to wait in the instant of a release is woken by it, and a newcomer
// who comes in the instant of a hand-over leaves nobody asleep.
func TestNobodyIsLeftAsleep(t *testing.T) {
	for _, hurry := range []bool{false, true} { // to come between the two, or to have them meet
		pool := newPool(t, 1)
		b := &workbench{t: t, room: 1, hold: 500}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		wait := func() bool {
			p, err := pool.Acquire(ctx)
			if err != nil {
				t.Errorf("who waits is not served: %v", err)
			}
			return err == nil && b.work(1, p)
		}
		looks := 0
		swarm(wait, wait, func() bool {
			if p, ok := pool.TryAcquire(); ok && !b.work(1, p) {
				return false
			}
			if !hurry {
				runtime.Gosched()
			}
			if looks++; looks%16 > 0 {
				return true
			}
			// If both of the others wait, and the third is here, nobody is on the way to wake
			// them.
			if s := pool.Stats(); s.Waiting == 2 && s.InFlight == 0 {
				t.Errorf("a permit is free, and all sleep: %+v", s)
				cancel()
				return false
			}
			return true
		})
		probe(t, pool)
		cancel()
	}
}

// L2: of many calls of Release in one instant one counts, also if the permit is abandoned
// in that instant.
func TestReleasesOfOnePermitMeet(t *testing.T) {
	pool := newPool(t, 1)
	var current atomic.Pointer[permit.Permit]
	renew := func() bool {
		p, ok := pool.TryAcquire()
		if !ok {
			t.Error("released, and not to be had")
		}
		current.Store(&p)
		return ok
	}
	release := func() bool { return !current.Load().Release(permit.Success) || renew() }
	renew()
	swarm(release, release, release, func() bool { current.Load().Abandon(); return true })
	if s := pool.Stats(); s.InFlight != 1 || !current.Load().Release(permit.Success) {
		t.Errorf("one permit is out: %+v", s)
	}
	probe(t, pool)
}

// L2: permits that are out at the same time have nothing in common.
func TestGrantsThatMeetAreDifferentPermits(t *testing.T) {
	pool := newPool(t, 100)
	b := &workbench{t: t, room: 100, hold: 5}
	var f []func() bool
	for range 4 {
		f = append(f, func() bool {
			var held [8]permit.Permit // more than one part of the books has ready
			for i := range held {
				held[i], _ = pool.TryAcquire()
			}
			for _, p := range held {
				if !b.work(1, p) {
					return false
				}
			}
			return true
		})
	}
	swarm(f...)
	probe(t, pool)
}

// L2: a weighted caller who is beaten to a place leaves no weight behind.
func TestWeightedCallerMeetsNewcomers(t *testing.T) {
	pool := newPool(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	b := &workbench{t: t, room: 2, hold: 500}
	// One after the other on the same goroutine: it is likely to find its own records
	// again.
	use := func() bool {
		p, err := pool.AcquireN(ctx, 2)
		if err != nil {
			t.Errorf("AcquireN: %v", err)
			return false
		}
		if !b.work(2, p) {
			return false
		}
		for range 4 {
			if p, ok := pool.TryAcquire(); ok && !b.work(1, p) {
				return false
			}
		}
		return true
	}
	swarm(use, use, use)
	probe(t, pool)
}

// L1: a new limit changes the limit and nothing else, whatever is granted and given back
// in that instant.
func TestNewLimitMeetsGrantsAndReleases(t *testing.T) {
	pool := newPool(t, 2)
	b := &workbench{t: t, room: 2, hold: 50}
	try := func() bool {
		p, ok := pool.TryAcquire()
		return !ok || b.work(1, p)
	}
	limit := 0
	swarm(try, try, try, func() bool {
		limit++
		return pool.Resize(1+limit%2) == nil && pool.Limit() == 1+limit%2
	})
	probe(t, pool)
}

// L7: of a grant and a Close that meet one comes first: the pool is closed and empty, or
// Close knows of the permit.
func TestCloseMeetsAGrant(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// Two go through many pools side by side.
	for end := time.Now().Add(swarmTime); time.Now().Before(end); {
		pools := make([]*permit.Pool, 64)
		for i := range pools {
			pools[i] = newPool(t, 1)
		}
		granted, closed := make([]permit.Permit, len(pools)), make([]error, len(pools))
		var at [2]atomic.Int64
		var both sync.WaitGroup
		step := func(me, i int) {
			at[me].Store(int64(i))
			for range 100 {
				if at[1-me].Load() >= int64(i) {
					break
				}
			}
		}
		both.Go(func() {
			for i, pool := range pools {
				step(0, i+1)
				granted[i], _ = pool.TryAcquire()
			}
		})
		both.Go(func() {
			for i, pool := range pools {
				step(1, i+1)
				closed[i] = pool.Close(ended)
			}
		})
		both.Wait()
		for i, pool := range pools {
			if got := granted[i].Held(); got == (closed[i] == nil) {
				t.Fatalf("granted %v, Close returned %v", got, closed[i])
			}
			granted[i].Release(permit.Success)
			shut(t, pool)
		}
	}
}

// Who claimed a record and was not admitted leaves it as it was.
func TestClaimInVainLeavesNothing(t *testing.T) {
	pool := newPool(t, 20)
	for range 20 { // as many as find a record without a lock, and more
		p, _ := pool.TryAcquire()
		defer p.Release(permit.Success)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = pool.Close(gone)
	before := pool.Stats()
	for n := range 4 {
		pool.ClaimInVain(n + 1)
		if err := pool.CheckInvariants(); err != nil {
			t.Fatalf("after %d in vain: %v", n+1, err)
		}
	}
	if after := pool.Stats(); after != before {
		t.Errorf("from %+v to %+v", before, after)
	}
}
