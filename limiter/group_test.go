package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

func group(t testing.TB, max int) *limiter.Group {
	t.Helper()
	g, err := limiter.NewGroup(limiter.GroupConfig{Max: max, Config: func(key string) limiter.Config {
		if key == "bad" {
			return limiter.Config{MaxWaiting: -7}
		}
		a, err := gradient.NewFixed(1)
		if err != nil {
			t.Error(err)
		}
		return limiter.Config{Algorithm: a, MaxWaiting: 5}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func keys(g *limiter.Group) (keys []string) {
	for _, s := range g.Stats().Limiters {
		keys = append(keys, s.Key)
	}
	return keys
}

func TestGroupDropsTheIdleOneUsedLeastLately(t *testing.T) {
	g := group(t, 3)
	a, b := g.Get("a"), g.Get("b")
	if a == b || a != g.Get("a") || a.Name() != "a" {
		t.Error("keys do not have each its limiter")
	}
	g.Get("c")
	p, _ := b.TryAcquire(limiter.Primary)
	g.Get("d") // in the place of a: b is busy
	g.Get("a") // of c
	g.Get("e") // of d
	if got := keys(g); !slices.Equal(got, []string{"e", "a", "b"}) {
		t.Errorf("kept %v", got)
	}
	p.Release(permit.Success)
	if s := g.Stats(); s.Dropped != 3 || s.Overflowed != 0 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

func TestGroupFullOfBusyOnesShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, 2)
		p, _ := g.Get("a").TryAcquire(limiter.Primary)
		q, _ := g.Get("b").TryAcquire(limiter.Primary)
		waiting := make(chan error)
		go func() {
			waiting <- g.Get("a").Do(t.Context(), func(context.Context) error { return nil })
		}()
		synctest.Wait()
		shared := g.Get("c")
		if shared != g.Get("d") || shared == g.Get("a") || shared == g.Get("b") {
			t.Error("newcomers do not share")
		}
		if s := g.Stats(); s.Overflowed != 2 || s.Dropped != 0 || len(s.Limiters) != 2 || s.Limiters[1].Ledger.Waiting+s.Limiters[0].Ledger.Waiting != 1 {
			t.Errorf("%+v", s)
		}
		p.Release(permit.Success)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		if g.Get("c") == shared {
			t.Error("an idle limiter was not dropped")
		}
		q.Release(permit.Success)
		if g.Get("bad") != shared {
			t.Error("a key without a limiter does not share")
		}
		if s := g.Stats(); s.Failed != 1 || s.Err == nil || !strings.Contains(s.Err.Error(), `"bad"`) || !strings.Contains(s.Err.Error(), "MaxWaiting -7") {
			t.Errorf("%+v", s)
		}
	})
}

// Who has got a limiter that was dropped before it was used has still the one limiter of
// the key; when nobody holds it any more, it is forgotten.
func TestGroupHasOneLimiterOfAKey(t *testing.T) {
	g := group(t, 1)
	a := g.Get("a")
	g.Get("b")
	if got := keys(g); !slices.Equal(got, []string{"b"}) {
		t.Fatalf("kept %v", got)
	}
	if g.Get("a") != a {
		t.Error("a second limiter of a key of which the first is held")
	}
	p, _ := a.TryAcquire(limiter.Primary)
	q, _ := g.Get("b").TryAcquire(limiter.Primary)
	r, ok := g.Get("a").TryAcquire(limiter.Primary)
	if ok {
		t.Error("two permits under a limit of 1")
	}
	p.Release(permit.Success)
	q.Release(permit.Success)
	r.Release(permit.Success)
	for i := range 100 {
		g.Get(fmt.Sprint(i))
	}
	runtime.KeepAlive(a)
	if n := len(g.Stats().Limiters); n != 1 {
		t.Errorf("%d limiters", n)
	}
}

// From many goroutines: no key has ever more out than its limit, and busy ones stay.
func TestGroupUnderChurn(t *testing.T) {
	g := group(t, 4)
	var out [32]atomic.Int64
	var wg sync.WaitGroup
	overflow := make(chan *limiter.Limiter, 1)
	for i := range 16 {
		wg.Go(func() {
			for n := range 2000 {
				k := (i*7 + n*13) % len(out)
				l := g.Get(fmt.Sprint(k))
				p, ok := l.TryAcquire(limiter.Primary)
				if !ok {
					continue
				}
				if l.Name() == "" {
					select {
					case overflow <- l:
					default:
					}
				} else if out[k].Add(1) != 1 {
					t.Errorf("key %d has two permits out", k)
				}
				runtime.Gosched()
				if l.Name() != "" {
					out[k].Add(-1)
				}
				p.Release(permit.Success)
			}
		})
	}
	wg.Wait()
	s := g.Stats()
	if len(s.Limiters) > 4 {
		t.Errorf("%d limiters, Max is 4", len(s.Limiters))
	}
	for _, l := range s.Limiters {
		if l.Ledger.InFlight != 0 {
			t.Errorf("%+v", l)
		}
	}
	t.Logf("%d dropped, %d overflowed", s.Dropped, s.Overflowed)
}

// More busy ones than are looked at do not hide an idle one for ever.
func TestGroupFindsTheIdleOneBehindManyBusyOnes(t *testing.T) {
	const n = 200
	g := group(t, n)
	var held []limiter.Permit
	for i := range n {
		if l := g.Get(fmt.Sprint(i)); i != n-1 {
			p, _ := l.TryAcquire(limiter.Primary)
			held = append(held, p)
		}
	}
	found := false
	for range n {
		found = found || g.Get("new").Name() == "new"
	}
	if !found {
		t.Error("the idle limiter is never dropped")
	}
	for _, p := range held {
		p.Release(permit.Success)
	}
}

func TestGroupClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, 1)
		a := g.Get("a")
		g.Get("b")
		p, _ := a.TryAcquire(limiter.Primary) // it has left the map
		time.AfterFunc(time.Minute, func() { p.Release(permit.Success) })
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close for a second: %v", err)
		}
		start := time.Now()
		if err := g.Close(t.Context()); err != nil || time.Since(start) != 59*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		for _, key := range []string{"a", "b", "c"} {
			if err := g.Get(key).Do(t.Context(), func(context.Context) error { return nil }); err != limiter.ErrClosed { //nolint:errorlint // bare
				t.Errorf("%s after Close: %v", key, err)
			}
		}
	})
}

func TestBadGroupConfig(t *testing.T) {
	if g, err := limiter.NewGroup(limiter.GroupConfig{Max: -1}); g != nil || err == nil || !strings.Contains(err.Error(), "Max -1") {
		t.Errorf("%v, %v", g, err)
	}
	if g, err := limiter.NewGroup(limiter.GroupConfig{Config: func(string) limiter.Config { return limiter.Config{MaxWait: 1} }}); g != nil || err == nil {
		t.Errorf("%v, %v", g, err)
	}
	g, err := limiter.NewGroup(limiter.GroupConfig{})
	if err != nil || g.Get("x").Limit() != 20 {
		t.Errorf("the zero GroupConfig: %v", err)
	}
}
