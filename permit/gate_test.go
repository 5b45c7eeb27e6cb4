package permit_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// The tests in this file look for what goes wrong only if goroutines meet within a few
// instructions. They bring them together again and again, each time a little shifted,
// for meetTime each. On a single processor they show next to nothing.
const meetTime = 100 * time.Millisecond

// barrier is passed by n goroutines at a time.
type barrier struct {
	n              int64
	arrived, phase atomic.Int64
}

// pass returns when all have come. The last one runs last before.
func (b *barrier) pass(last func()) {
	phase := b.phase.Load()
	if b.arrived.Add(1) == b.n {
		last()
		b.arrived.Store(0)
		b.phase.Add(1)
		return
	}
	// Spinning keeps them together; who spins for long keeps others from running.
	for i := 0; b.phase.Load() == phase; i++ {
		if i > 1000 {
			runtime.Gosched()
		}
	}
}

// meet runs all of f at the same time, each on a goroutine of its own, in rounds. Before
// each round it runs before, alone, and ends when that reports false or the time is up.
func meet(before func() bool, f ...func()) {
	b := barrier{n: int64(len(f))}
	end := time.Now().Add(meetTime)
	goOn := true
	var wg sync.WaitGroup
	for i, f1 := range f {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for {
				b.pass(func() { goOn = time.Now().Before(end) && before() })
				if !goOn {
					return
				}
				for range random.IntN(100) { // shifts them against each other
					_ = b.phase.Load()
				}
				f1()
				b.pass(func() {})
			}
		})
	}
	wg.Wait()
}

// swarm runs all of f again and again, each on a goroutine of its own, until the time
// is up or one of them reports false.
func swarm(f ...func() bool) {
	end := time.Now().Add(meetTime)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for _, f1 := range f {
		wg.Go(func() {
			for !stop.Load() {
				for range 100 {
					if !f1() {
						stop.Store(true)
						return
					}
				}
				if !time.Now().Before(end) {
					stop.Store(true)
				}
			}
		})
	}
	wg.Wait()
}

// L6: whoever decides to wait in the very instant of a release is woken by it.
func TestReleaseMeetsOneWhoDecidesToWait(t *testing.T) {
	pool := newPool(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var held permit.Permit
	asleep := false
	meet(
		func() bool {
			var ok bool
			if held, ok = pool.TryAcquire(); !ok && !asleep {
				t.Error("no permit is free, and nobody has one")
			}
			return ok
		},
		func() {
			held.Release(permit.Success)
			// Nobody is on the way to wake anyone now.
			if s := pool.Stats(); s.InFlight == 0 && s.Waiting > 0 {
				asleep = true
				t.Error("a permit is free, and a caller sleeps")
				cancel()
			}
		},
		func() {
			p, err := pool.Acquire(ctx)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			p.Release(permit.Success)
		},
	)
	probe(t, pool)
}

// L6: while a permit goes from hand to hand no newcomer gets it, whichever way it comes.
func TestNewcomerMeetsAHandOver(t *testing.T) {
	for name, try := range map[string]func(*permit.Pool) (permit.Permit, bool){
		"TryAcquire": (*permit.Pool).TryAcquire,
		"AcquireWithin": func(p *permit.Pool) (permit.Permit, bool) {
			x, err := p.AcquireWithin(context.Background(), 0)
			return x, err == nil
		},
	} {
		pool := newPool(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var held permit.Permit
		var waits, served, overtaken atomic.Bool
		var busy atomic.Int32 // who may still give a permit back, other than the waiter
		// Whoever of them is the last can tell whether somebody was forgotten.
		last := func() {
			if busy.Add(-1) > 0 {
				return
			}
			if s := pool.Stats(); s.InFlight == 0 && s.Waiting > 0 {
				t.Errorf("%s: a permit is free, and a caller sleeps", name)
				overtaken.Store(true)
				cancel()
			}
		}
		meet(
			func() bool {
				waits.Store(false)
				served.Store(false)
				busy.Store(2)
				var ok bool
				held, ok = pool.TryAcquire()
				return ok && !overtaken.Load()
			},
			func() {
				p, err := pool.Acquire(ctx)
				if err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
				}
				served.Store(true)
				p.Release(permit.Success)
			},
			func() {
				for pool.Stats().Waiting == 0 {
					runtime.Gosched()
				}
				waits.Store(true)
				held.Release(permit.Success)
				last()
			},
			func() {
				for !waits.Load() {
					runtime.Gosched()
				}
				for range 50 {
					p, ok := try(pool)
					if ok && !served.Load() {
						t.Errorf("%s overtook a caller who waited", name)
						overtaken.Store(true)
					}
					p.Release(permit.Success)
				}
				last()
			},
		)
		probe(t, pool)
		cancel()
	}
}

// L5: the word that admits is the word that was looked at.
func TestNewcomersMeetAtTheLastPermit(t *testing.T) {
	pool := newPool(t, 1)
	var running atomic.Int32
	work := func(p permit.Permit) bool {
		n := running.Add(1)
		g := p.Grant()
		if n != 1 || g.InFlight != 1 {
			t.Errorf("%d run under a limit of 1, the last of them granted at %+v", n, g)
		}
		running.Add(-1)
		return p.Release(permit.Success) && n == 1
	}
	try := func() bool {
		if p, ok := pool.TryAcquire(); ok {
			return work(p)
		}
		return true
	}
	within := func() bool {
		if p, err := pool.AcquireWithin(t.Context(), 0); err == nil {
			return work(p)
		}
		return true
	}
	swarm(try, try)
	swarm(try, within)
	probe(t, pool)
}

// L4: that the reserve is free is part of the decision, also while Stats reads.
func TestReserveIsFreeInTheInstantOfTheGrant(t *testing.T) {
	for _, read := range []bool{false, true} {
		pool := newPool(t, 2)
		leaving := func() bool {
			p, ok := pool.TryAcquireLeaving(1)
			g := p.Grant()
			if ok && g.InFlight > 1 {
				t.Errorf("a permit that leaves one free was granted at %+v", g)
			}
			return p.Release(permit.Success) == ok && g.InFlight <= 1
		}
		f := []func() bool{leaving, leaving, leaving}
		if read {
			f = append(f, func() bool { pool.Stats(); return true })
		}
		swarm(f...)
		probe(t, pool)
	}
}

// L2: of two calls of Release in the same instant one counts, also if the permit is
// abandoned in that instant.
func TestReleasesOfOnePermitMeet(t *testing.T) {
	for _, abandon := range []bool{false, true} {
		pool := newPool(t, 1)
		var held permit.Permit
		var counted atomic.Int32
		var rounds int32
		release := func() {
			if held.Release(permit.Success) {
				counted.Add(1)
			}
		}
		f := []func(){release, release}
		if abandon {
			f = append(f, func() { held.Abandon() })
		}
		meet(func() bool {
			if counted.Load() != rounds || pool.InFlight() != 0 {
				t.Errorf("abandoned %v: of %d permits %d releases counted, in flight %d", abandon, rounds, counted.Load(), pool.InFlight())
				return false
			}
			rounds++
			held, _ = pool.TryAcquire()
			return true
		}, f...)
		probe(t, pool)
	}
}

// L2: permits that are out at the same time have nothing in common, however their
// grants meet.
func TestGrantsThatMeetAreDifferentPermits(t *testing.T) {
	pool := newPool(t, 100)
	var granted uint64
	var held [2][8]permit.Permit // more than one part of the books has ready
	grant := func(i int) func() {
		return func() {
			for j := range held[i] {
				held[i][j], _ = pool.TryAcquire()
			}
		}
	}
	back := func() bool {
		released := 0
		for i := range held {
			for j, p := range held[i] {
				if p.Release(permit.Success) {
					released++
				}
				held[i][j] = permit.Permit{}
			}
		}
		if s := pool.Stats(); s.Granted != granted || s.InFlight != 0 {
			t.Errorf("of 16 permits %d could be released: %+v", released, s)
			return false
		}
		granted += 16
		return true
	}
	meet(back, grant(0), grant(1))
	back()
	probe(t, pool)
}

// L2: a weighted caller who is beaten to a place leaves no weight behind.
func TestWeightedCallerMeetsNewcomers(t *testing.T) {
	pool := newPool(t, 2)
	try := func() bool {
		p, ok := pool.TryAcquire()
		return p.Release(permit.Success) == ok
	}
	swarm(try, try, func() bool {
		p, err := pool.AcquireN(t.Context(), 2)
		if g := p.Grant(); err != nil || g.InFlight != 2 {
			t.Errorf("AcquireN: %v, granted at %+v", err, g)
			return false
		}
		return p.Release(permit.Success)
	})
	probe(t, pool)
}

// L1: a new limit changes the limit and nothing else, whatever is granted and given back
// in that instant.
func TestNewLimitMeetsGrantsAndReleases(t *testing.T) {
	pool := newPool(t, 4)
	limit := 0
	swarm(
		func() bool {
			p, ok := pool.TryAcquire()
			return p.Release(permit.Success) == ok
		},
		func() bool {
			limit++
			return pool.Resize(3+limit%2) == nil && pool.Limit() == 3+limit%2
		},
	)
	probe(t, pool)
}

// L7: a Close that meets the last release, or a grant, returns, and not before.
func TestCloseMeetsTheLastRelease(t *testing.T) {
	var pool *permit.Pool
	var held permit.Permit
	meet(
		func() bool {
			pool = newPool(t, 2)
			held, _ = pool.TryAcquire()
			return !t.Failed()
		},
		func() {
			held.Release(permit.Success)
			p, _ := pool.TryAcquire()
			p.Release(permit.Success)
		},
		func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := pool.Close(ctx); err != nil || pool.InFlight() != 0 {
				t.Errorf("Close: %v, in flight %d", err, pool.InFlight())
			}
		},
	)
}
