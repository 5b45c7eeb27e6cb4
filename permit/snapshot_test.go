package permit_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/permit"
)

// observer checks that one snapshot after the other could be of one instant.
type observer struct {
	pool *permit.Pool
	last permit.Stats
	// granted and ended count permits, each behind the step that it tells of; asked and
	// ending each before it.
	asked, granted, ending, ended atomic.Uint64
}

// look takes a snapshot. It reports false if something is wrong with it.
func (o *observer) look(t *testing.T) bool {
	granted, ended := o.granted.Load(), o.ended.Load()
	s := o.pool.Stats()
	asked, ending := o.asked.Load(), o.ending.Load()
	back := sum(s)
	switch {
	case s.Granted != uint64(s.InFlight)+back, s.InFlight < 0, s.Overhang < 0, s.Overhang > s.InFlight:
		t.Errorf("the ledger does not add up: %+v", s)
	case s.InFlight > s.Limit:
		t.Errorf("granted above the limit: %+v", s)
	case s.Granted < granted, s.Granted > asked:
		t.Errorf("at least %d and at most %d were granted: %+v", granted, asked, s)
	case back < ended, back > ending:
		t.Errorf("at least %d and at most %d came back: %+v", ended, ending, s)
	case s.Granted < o.last.Granted, s.Refused < o.last.Refused:
		t.Errorf("a count has fallen: %+v\nafter %+v", s, o.last)
	case s.Released[permit.Success] != 0:
		t.Errorf("nothing was released as a success: %+v", s)
	}
	for i, n := range s.Released {
		if n < o.last.Released[i] {
			t.Errorf("a count has fallen: %+v\nafter %+v", s, o.last)
		}
	}
	o.last = s
	return !t.Failed()
}

// use asks for n permits and gives them back. It never does so as a success, which is
// what the ledger counts by what it is not.
func (o *observer) use(random *rand.Rand, n int, acquire func() (permit.Permit, bool)) {
	o.asked.Add(uint64(n))
	p, ok := acquire()
	if !ok {
		return
	}
	o.granted.Add(uint64(n))
	if random.IntN(2) == 0 {
		p.Abandon()
	}
	outcomes := []permit.Outcome{permit.Ignored, permit.Overload, permit.Expired, permit.Canceled}
	o.ending.Add(uint64(n))
	p.Release(outcomes[random.IntN(len(outcomes))])
	o.ended.Add(uint64(n))
}

// Every snapshot is of one instant, whatever goes on meanwhile. In particular each
// count is at least what was surely counted before it and at most what may have been
// counted after.
func TestSnapshotIsOfOneInstant(t *testing.T) {
	for name, limit := range map[string]int{"one": 1, "few": 3, "plenty": 100} {
		t.Run(name, func(t *testing.T) {
			o := &observer{pool: newPool(t, limit)}
			var users []func() bool
			for i := range 4 {
				random := rand.New(rand.NewPCG(uint64(i), 3))
				users = append(users, func() bool {
					switch random.IntN(6) {
					case 0:
						o.use(random, 2, func() (permit.Permit, bool) {
							p, err := o.pool.AcquireN(context.Background(), 2)
							return p, err == nil
						})
					case 1, 2:
						o.use(random, 1, func() (permit.Permit, bool) {
							p, err := o.pool.Acquire(context.Background())
							return p, err == nil
						})
					default:
						o.use(random, 1, o.pool.TryAcquire)
					}
					return true
				})
			}
			swarm(append(users, func() bool { return o.look(t) })...)
			o.look(t)
			if s := o.pool.Stats(); s.Granted != o.granted.Load() || sum(s) != o.ended.Load() {
				t.Errorf("%d permits were granted, %d came back: %+v", o.granted.Load(), o.ended.Load(), s)
			}
			probe(t, o.pool)
		})
	}
}

// The same where the callers do nothing but take and give back, and so are nearly always
// amid one or the other.
func TestSnapshotAmidGrantsAndReleases(t *testing.T) {
	o := &observer{pool: newPool(t, 3)}
	o.asked.Store(math.MaxUint64)
	o.ending.Store(math.MaxUint64)
	use := func() bool {
		for range 8 {
			p, _ := o.pool.TryAcquire()
			p.Release(permit.Canceled)
		}
		return true
	}
	swarm(use, use, use, func() bool { return o.look(t) })
	probe(t, o.pool)
}

// A snapshot holds up the callers for an instant; it turns nobody away.
func TestSnapshotTurnsNobodyAway(t *testing.T) {
	pool := newPool(t, 10)
	use := func() bool {
		p, ok := pool.TryAcquireLeaving(1)
		if !ok {
			t.Errorf("refused, with at most 2 of 10 in flight")
		}
		return ok && p.Release(permit.Success)
	}
	swarm(use, use, func() bool { pool.Stats(); return true })
	probe(t, pool)
}
