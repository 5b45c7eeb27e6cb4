package limiter_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// places serve calls, one each, first come, first served.
type places struct {
	mu        sync.Mutex
	busyUntil []time.Time
}

func (p *places) resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busyUntil = append(p.busyUntil[:min(n, len(p.busyUntil))], make([]time.Time, max(0, n-len(p.busyUntil)))...)
}

func (p *places) call(took time.Duration) {
	p.mu.Lock()
	now, place := time.Now(), 0
	for i, t := range p.busyUntil {
		if t.Before(p.busyUntil[place]) {
			place = i
		}
	}
	begin := p.busyUntil[place]
	if begin.Before(now) {
		begin = now
	}
	end := begin.Add(took)
	p.busyUntil[place] = end
	p.mu.Unlock()
	time.Sleep(time.Until(end))
}

// In a pool of workers nobody is refused: all wait. So waiting must count as demand that
// the limit does not meet, or the limit is never compared with a lower one. And where each
// call takes exactly as long as the last, they come and go in step, and the noise that
// tells limits apart is missing.
func TestWidthOfAPoolFollowsCapacity(t *testing.T) {
	for name, noise := range map[string]float64{"all the same": 0, "two in a hundred": 0.02, "a half": 0.5} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			dependency := &places{busyUntil: make([]time.Time, 20)}
			ctx, stop := context.WithCancel(context.Background())
			var workers sync.WaitGroup
			for range 64 {
				workers.Go(func() {
					for {
						p, err := l.Acquire(ctx, limiter.Primary)
						if err != nil {
							return
						}
						dependency.mu.Lock()
						took := time.Duration(10e6 * (1 + noise*(r.Float64()-0.5)))
						dependency.mu.Unlock()
						dependency.call(took)
						p.Release(permit.Success)
					}
				})
			}
			time.Sleep(20 * time.Second)
			if n := l.Limit(); n < 14 || n > 40 {
				t.Errorf("%s: limit %d for 20 places", name, n)
			}
			dependency.resize(5)
			time.Sleep(5 * time.Second)
			sum := 0
			for range 50 {
				time.Sleep(100 * time.Millisecond)
				sum += l.Limit()
			}
			if mean := float64(sum) / 50; mean < 4 || mean > 12 {
				t.Errorf("%s: mean limit %.1f for 5 places, from 5 s after the drop on", name, mean)
			}
			// And back, from a limit as low as it gets.
			dependency.resize(1)
			time.Sleep(20 * time.Second)
			dependency.resize(20)
			time.Sleep(20 * time.Second)
			if n := l.Limit(); n < 14 || n > 40 {
				t.Errorf("%s: limit %d for 20 places, after there was one", name, n)
			}
			stop()
			workers.Wait()
		})
	}
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
			l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			dependency := new(places)
			var service time.Duration
			done := 0
			ctx, stop := context.WithCancel(context.Background())
			var workers sync.WaitGroup
			call := func() {
				dependency.mu.Lock()
				took := time.Duration(float64(service) * math.Exp(0.3*r.NormFloat64()-0.045))
				dependency.mu.Unlock()
				dependency.call(took)
				dependency.mu.Lock()
				done++
				dependency.mu.Unlock()
			}
			dependency.resize(story[0].places)
			for range 150 {
				workers.Go(func() {
					for {
						p, err := l.Acquire(ctx, limiter.Primary)
						if err != nil {
							return
						}
						call()
						p.Release(permit.Success)
					}
				})
			}
			for i, s := range story {
				dependency.resize(s.places)
				dependency.mu.Lock()
				service = s.service
				dependency.mu.Unlock()
				time.Sleep(90 * time.Second)
				dependency.mu.Lock()
				before := done
				dependency.mu.Unlock()
				time.Sleep(30 * time.Second)
				dependency.mu.Lock()
				share := float64(done-before) / 30 * s.service.Seconds() / float64(s.places)
				dependency.mu.Unlock()
				// With few places a queue is most of what is in flight.
				if n := l.Limit(); share < 0.9 || float64(n) > 2*float64(s.places)+4 {
					t.Errorf("%s, step %d, %d places: %.2f busy, limit %d", name, i, s.places, share, n)
				}
			}
			stop()
			workers.Wait()
		})
	}
}

func TestPoolEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = process(ctx, l, make(chan int), func(context.Context, int) error { return nil })
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
