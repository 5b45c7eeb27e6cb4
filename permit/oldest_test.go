package permit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

func newTimedPool(t testing.TB, limit int) *permit.Pool {
	t.Helper()
	pool, err := permit.NewPool(permit.Config{Limit: limit, Base: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// Work that is stuck shows in Stats, whatever comes and goes beside it.
func TestOldestPermitShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTimedPool(t, 100)
		want := func(age time.Duration) {
			t.Helper()
			if got := pool.Stats().Oldest; got < age || got > age+time.Millisecond {
				t.Fatalf("the oldest permit is out for %v, Stats says %v", age, got)
			}
		}
		want(0)
		time.Sleep(time.Hour)
		want(0)
		stuck, _ := pool.TryAcquire()
		var others []permit.Permit
		for range 30 {
			time.Sleep(time.Second)
			p, _ := pool.TryAcquire()
			others = append(others, p)
		}
		want(30 * time.Second)
		stuck.Abandon() // still out
		want(30 * time.Second)
		for i, p := range others {
			p.Release(permit.Success)
			want(30 * time.Second)
			if i%2 == 0 { // short work in the records of the released ones
				q, _ := pool.TryAcquire()
				q.Release(permit.Success)
			}
		}
		last, _ := pool.TryAcquire()
		time.Sleep(time.Minute)
		stuck.Release(permit.Success)
		want(time.Minute)
		last.Release(permit.Success)
		want(0)
		probe(t, pool)
	})
}

// A pool without Base reads no clock, and says so by zeros.
func TestPoolWithoutBaseKnowsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		time.Sleep(time.Second)
		p, _ := pool.TryAcquire()
		time.Sleep(time.Second)
		if s := pool.Stats(); s.Oldest != 0 || p.Grant().At != 0 {
			t.Errorf("Oldest %v, At %v", s.Oldest, p.Grant().At)
		}
	})
}

// A grant is of the time at which its holder could start: waiting is not work (L12).
func TestGrantIsOfTheTimeAtWhichWorkMayStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTimedPool(t, 1)
		time.Sleep(3 * time.Second)
		p, _ := pool.TryAcquire()
		if at := p.Grant().At; at != 3*time.Second {
			t.Errorf("granted at %v", at)
		}
		done := make(chan permit.Permit)
		go func() {
			q, err := pool.Acquire(context.Background())
			if err != nil {
				t.Error(err)
			}
			done <- q
		}()
		time.Sleep(5 * time.Second)
		p.Release(permit.Success)
		q := <-done
		if g := q.Grant(); g.At != 8*time.Second || !g.Waited {
			t.Errorf("handed over as %+v", g)
		}
		if g := p.Grant(); g.At != 3*time.Second || g.InFlight != 1 || g.Limit != 1 {
			t.Errorf("after the release: %+v", g)
		}
		q.Release(permit.Success)
		probe(t, pool)
	})
}

// Base in the future, or a clock that stands still, spoils no more than the times.
func TestOddBaseSpoilsOnlyTheTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, err := permit.NewPool(permit.Config{Limit: 2, Base: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			p, _ := pool.TryAcquire()
			q, _ := pool.TryAcquire()
			if age := pool.Stats().Oldest; age < 0 || age > time.Millisecond {
				t.Errorf("Oldest %v", age)
			}
			p.Release(permit.Success)
			q.Release(permit.Success)
			time.Sleep(time.Second)
		}
		probe(t, pool)
	})
}
