package limiter_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// seesaw is an algorithm that goes to and fro with every window.
type seesaw struct{ high bool }

func (s *seesaw) Start(time.Time) gradient.Decision { return gradient.Decision{Limit: 1000} }

func (s *seesaw) Next(time.Time, *gradient.Window) gradient.Decision {
	s.high = !s.high
	if s.high {
		return gradient.Decision{Limit: 20}
	}
	return gradient.Decision{Limit: 1000}
}

// L4: the reserve is that of the limit under which the hedge is granted, also if
// the limit changes while it is asked for.
func TestReserveIsOfTheLimitOfTheGrant(t *testing.T) {
	l, err := limiter.New(limiter.Config{Algorithm: &seesaw{}})
	if err != nil {
		t.Fatal(err)
	}
	for range 950 {
		l.TryAcquire(limiter.Bypass) // teaches nothing, so no window is closed
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if p, ok := l.TryAcquire(limiter.Primary); ok {
					p.Release(permit.Success)
				}
			}
		}
	})
	for range 20_000 {
		if p, ok := l.TryAcquire(limiter.Hedge); ok {
			if g := p.Grant(); g.Limit-g.InFlight < g.Limit/10 {
				t.Errorf("a hedge was granted at %+v", g)
			}
			p.Release(permit.Success)
		}
	}
	close(stop)
	wg.Wait()
}

// L10: not even a panic of OnPanic gets out of a release.
func TestPanicOfOnPanicEndsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 2, MinLength: time.Second}}
		s.next = func(gradient.Window) gradient.Decision { panic("algorithm") }
		l := limitedBy(t, s, limiter.Config{OnPanic: func(any, []byte) { panic("on panic") }})
		err := l.Do(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil })
		if err != nil || len(s.windows) != 1 {
			t.Errorf("Do: %v, %d windows", err, len(s.windows))
		}
		probe(t, l)
	})
}

func TestNilAlgorithmPointerIsRefused(t *testing.T) {
	var nothing *gradient.Gradient
	if _, err := limiter.New(limiter.Config{Algorithm: nothing}); err == nil || !strings.Contains(err.Error(), "Algorithm") {
		t.Errorf("New: %v", err)
	}
}
