package permit_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// stressTime is how long stress tests run: HOLDFAST_STRESS, or a second.
func stressTime(t testing.TB) time.Duration {
	text := os.Getenv("HOLDFAST_STRESS")
	if text == "" {
		return time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HOLDFAST_STRESS: %v", err)
	}
	return d
}

// Real goroutines on real cores do what they like for a while. Nothing is lost,
// nothing is doubled, and no more is out than runs.
func TestStressLosesAndDoublesNothing(t *testing.T) { stress(t, permit.Config{Limit: 8}) }

// And so under a queue that turns round all the time.
func TestStressOfAQueueThatTurnsLosesNothing(t *testing.T) {
	stress(t, permit.Config{Limit: 8, LIFOAfter: time.Microsecond})
}

func stress(t *testing.T, config permit.Config) {
	pool, err := permit.NewPool(config)
	if err != nil {
		t.Fatal(err)
	}
	var running, granted, released, overrun atomic.Int64
	// The limit is 12 at most, so that no more than that may ever run, whatever became of
	// the limit since the grants; and what runs is in flight.
	const most = 12
	work := func(r *rand.Rand, p permit.Permit, n int) {
		granted.Add(1)
		if running.Add(int64(n)) > most {
			overrun.Add(1)
		}
		if g := p.Grant(); g.InFlight < n || g.InFlight > g.Limit || pool.InFlight() < n {
			overrun.Add(1)
		}
		if r.IntN(4) == 0 {
			p.Abandon()
		}
		for range r.IntN(100) {
			_ = r.Uint64() // some work
		}
		running.Add(-int64(n))
		copied := p
		first := copied.Release(permit.Outcome(r.IntN(permit.NumOutcomes)))
		if first {
			released.Add(1)
		}
		if p.Release(permit.Success) || !first {
			t.Error("a permit was released twice, or not at all")
		}
	}
	actions := []func(*rand.Rand){
		func(r *rand.Rand) {
			if p, ok := pool.TryAcquire(); ok {
				work(r, p, 1)
			}
		},
		func(r *rand.Rand) {
			if p, ok := pool.TryAcquireLeaving(r.IntN(4)); ok {
				work(r, p, 1)
			}
		},
		func(r *rand.Rand) {
			if p, err := pool.Acquire(context.Background()); err == nil {
				work(r, p, 1)
			}
		},
		func(r *rand.Rand) {
			if p, err := pool.AcquireWithin(context.Background(), r.IntN(32)); err == nil {
				work(r, p, 1)
			}
		},
		func(r *rand.Rand) {
			n := r.IntN(4)
			if p, ok := pool.TryAcquireN(n); ok {
				work(r, p, n)
			}
		},
		func(r *rand.Rand) {
			n := 2 + r.IntN(3)
			if p, err := pool.AcquireN(context.Background(), n); err == nil {
				work(r, p, n)
			}
		},
		func(r *rand.Rand) { // gives up, perhaps in the instant of its grant
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(50))*time.Microsecond)
			defer cancel()
			if p, err := pool.Acquire(ctx); err == nil {
				work(r, p, 1)
			}
		},
		func(r *rand.Rand) { _ = pool.Resize(1 + r.IntN(most)) },
		func(*rand.Rand) {
			s := pool.Stats()
			var back uint64
			for _, n := range s.Released {
				back += n
			}
			if s.Granted != uint64(s.InFlight)+back || s.Overhang > s.InFlight || s.InFlight < 0 {
				t.Errorf("the ledger does not add up: %+v", s)
			}
		},
	}
	end := time.Now().Add(stressTime(t))
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for time.Now().Before(end) {
				actions[r.IntN(len(actions))](r)
			}
		})
	}
	wg.Wait()
	_ = pool.Resize(8)
	if granted.Load() != released.Load() || running.Load() != 0 || overrun.Load() != 0 {
		t.Errorf("granted %d, released %d, running %d, above the limit %d", granted.Load(), released.Load(), running.Load(), overrun.Load())
	}
	t.Logf("%d permits", granted.Load())
	probe(t, pool)
}
