package limiter_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// crowd lets so many workers call the dependency under the limiter, each again and again,
// until the function that it returns is called.
func crowd(t *testing.T, l *limiter.Limiter, d *dependency, workers int) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				p, err := l.Acquire(ctx, limiter.Primary)
				if err != nil {
					return
				}
				_ = d.call(ctx, 0)
				p.Release(permit.Success)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func newWaiting(t *testing.T) *limiter.Limiter {
	l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// In a pool of workers nobody is refused: all wait. So waiting must count as demand that
// the limit does not meet, or the limit is never compared with a lower one. And where each
// call takes exactly as long as the last, they come and go in step, and the noise that
// tells limits apart is missing.
func TestWidthOfAPoolFollowsCapacity(t *testing.T) {
	const service = 10 * time.Millisecond
	for name, sigma := range map[string]float64{"all the same": 0, "nearly": 0.01, "as ever": 0.3} {
		synctest.Test(t, func(t *testing.T) {
			l, d := newWaiting(t), newDependency(20, service, sigma)
			stop := crowd(t, l, d, 64)
			time.Sleep(20 * time.Second)
			if n := meanLimit(l); n < 14 || n > 40 {
				t.Errorf("%s: mean limit %.1f for 20 places", name, n)
			}
			d.change(5, service)
			time.Sleep(5 * time.Second)
			if n := meanLimit(l); n < 4 || n > 12 {
				t.Errorf("%s: mean limit %.1f for 5 places, from 5 s after the drop on", name, n)
			}
			// And back, from a limit as low as it gets.
			d.change(1, service)
			time.Sleep(20 * time.Second)
			d.change(20, service)
			time.Sleep(20 * time.Second)
			if n := meanLimit(l); n < 14 || n > 40 {
				t.Errorf("%s: mean limit %.1f for 20 places, after there was one", name, n)
			}
			stop()
		})
	}
}

// meanLimit is the mean limit of the next five seconds: a limit that tries what is around it
// is now and then far from where it is most of the time.
func meanLimit(l *limiter.Limiter) float64 {
	sum := 0
	for range 50 {
		time.Sleep(100 * time.Millisecond)
		sum += l.Limit()
	}
	return float64(sum) / 50
}

// A service may become slower and larger at once, or faster, and no caller is ever refused.
func TestPoolIsAsBusyAsItsDependencyAllows(t *testing.T) {
	type step struct {
		places  int
		service time.Duration
	}
	const ms = time.Millisecond
	for name, story := range map[string][]step{
		"larger and slower":      {{5, 10 * ms}, {20, 20 * ms}},
		"much larger and slower": {{4, 29 * ms}, {45, 53 * ms}},
		"slower for a while":     {{20, 10 * ms}, {20, 40 * ms}, {20, 10 * ms}},
		"smaller for a while":    {{3, 50 * ms}, {1, 50 * ms}, {3, 50 * ms}, {20, 10 * ms}},
		"faster":                 {{20, 100 * ms}, {20, 10 * ms}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, d := newWaiting(t), newDependency(story[0].places, story[0].service, 0.3)
			stop := crowd(t, l, d, 150)
			for i, s := range story {
				d.change(s.places, s.service)
				time.Sleep(90 * time.Second)
				d.forget()
				time.Sleep(30 * time.Second)
				busy := float64(d.forget()) / 30 * s.service.Seconds() / float64(s.places)
				// With few places a queue is most of what is in flight.
				if n := l.Limit(); busy < 0.9 || float64(n) > 2*float64(s.places)+4 {
					t.Errorf("%s, step %d, %d places: %.2f busy, limit %d", name, i, s.places, busy, n)
				}
			}
			stop()
		})
	}
}

func TestPoolEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newWaiting(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := process(ctx, l, make(chan int), func(context.Context, int) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) || l.Stats().Ledger.InFlight != 0 {
			t.Errorf("%v, and %d in flight", err, l.Stats().Ledger.InFlight)
		}
	})
}

func TestWindowCountsPrimariesThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 1, MinLength: time.Second}}
		l := limitedBy(t, s, limiter.Config{MaxWaiting: limiter.Unbounded, Reserve: limiter.NoReserve})
		first, _ := l.TryAcquire(limiter.Primary)
		var waiters sync.WaitGroup
		for _, kind := range []limiter.Kind{limiter.Primary, limiter.Retry, limiter.Bypass} {
			waiters.Go(func() {
				p, err := l.Acquire(t.Context(), kind)
				if err != nil {
					t.Errorf("%v: %v", kind, err)
					return
				}
				p.Release(permit.Success)
			})
		}
		synctest.Wait()
		time.Sleep(time.Second / 2)
		first.Release(permit.Success)
		waiters.Wait()
		time.Sleep(time.Second)
		p, _ := l.TryAcquire(limiter.Primary)
		p.Release(permit.Success)
		if len(s.windows) != 1 || s.windows[0].Waited != 2 || s.windows[0].Refused != 0 {
			t.Errorf("windows %+v, want one in which a primary and a retry have waited", s.windows)
		}
	})
}
