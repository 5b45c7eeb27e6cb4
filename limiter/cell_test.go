package limiter_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Refusals that come seldom have each its time, and each finds a window due; those that
// come quickly are all counted, and the next that comes seldom has its time again.
func TestSeldomRefusalsReadTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 1, MinLength: time.Second}}
		l := limitedBy(t, s, limiter.Config{})
		refuse := func() {
			t.Helper()
			if _, ok := l.TryAcquire(limiter.Primary); ok {
				t.Fatal("a permit")
			}
		}
		p, _ := l.TryAcquire(limiter.Primary)
		for i := range 20 {
			time.Sleep(100 * time.Millisecond)
			refuse()
			if d := time.Since(l.LastPressure()); d != 0 || len(s.windows) != (i+1)/10 {
				t.Fatalf("refusal %d: last pressure %v ago, %d windows", i, d, len(s.windows))
			}
		}
		const burst = 1000
		for range burst {
			refuse()
		}
		p.Release(permit.Success)
		time.Sleep(time.Second)
		p, _ = l.TryAcquire(limiter.Primary)
		refuse() // the first after a grant
		if d := time.Since(l.LastPressure()); d != 0 {
			t.Errorf("last pressure %v ago", d)
		}
		n := s.windows[len(s.windows)-1].Refused
		if n != burst+1 || l.Stats().Rejected.Limit != burst+21 {
			t.Errorf("refused in the window: %d, want %d; %+v", n, burst+1, l.Stats().Rejected)
		}
		// A service that stands still after a burst: one refusal in so many at the latest.
		for range burst {
			refuse()
		}
		windows := len(s.windows)
		for i := 0; len(s.windows) == windows; i++ {
			if i > 64 {
				t.Fatal("no refusal finds the window due")
			}
			time.Sleep(time.Second)
			refuse()
		}
		p.Release(permit.Success)
		probe(t, l)
	})
}

// What happens while the algorithm decides is in the next window, unless a new epoch
// begins with the decision: then it is in none.
func TestNewEpochForgetsWhatCameWhileItWasDecided(t *testing.T) {
	for _, newEpoch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{first: gradient.Decision{Limit: 9, MinLength: time.Second}}
			l := limitedBy(t, s, limiter.Config{})
			run := func() {
				p, _ := l.TryAcquire(limiter.Primary)
				p.Release(permit.Success)
			}
			s.next = func(gradient.Window) gradient.Decision {
				if len(s.windows) == 1 {
					run()
				}
				return gradient.Decision{Limit: 9, NewEpoch: newEpoch, MinLength: time.Second}
			}
			time.Sleep(time.Second)
			run()
			time.Sleep(time.Second)
			run()
			want := 2
			if newEpoch {
				want = 1
			}
			if len(s.windows) != 2 || s.windows[1].Admitted != want || s.windows[1].Completed != want || s.counts[1] != want {
				t.Errorf("new epoch %v: %+v, %v latencies, want %d", newEpoch, s.windows, s.counts, want)
			}
		})
	}
}

// A burst of drops ends a window that is young, and even one that settles: with the
// fifth, whichever goroutines they are entered on.
func TestBurstOfDropsEndsTheWindow(t *testing.T) {
	for _, settle := range []time.Duration{0, time.Minute} {
		for _, o := range []permit.Outcome{permit.Overload, permit.Expired} {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{first: gradient.Decision{Limit: 9, Settle: settle, MinLength: 2 * time.Millisecond, MinSamples: 1000}}
				l := limitedBy(t, s, limiter.Config{})
				for i := range 5 {
					if len(s.windows) != 0 {
						t.Errorf("settle %v: a window after %d drops", settle, i)
					}
					var all sync.WaitGroup
					all.Go(func() {
						p, _ := l.TryAcquire(limiter.Primary)
						time.Sleep(time.Millisecond)
						p.Release(o)
					})
					all.Wait()
				}
				if len(s.windows) != 1 || s.windows[0].Drops != 5 {
					t.Errorf("settle %v, %v: %+v", settle, o, s.windows)
				}
			})
		}
	}
}
