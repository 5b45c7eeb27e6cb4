package limiter_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// What is granted or refused at once allocates nothing, whatever the configuration, and
// neither does the end of an attempt, also where it closes a window.
func TestNothingIsAllocatedWithoutWaiting(t *testing.T) {
	algorithm := func() gradient.Algorithm {
		a, err := gradient.New(gradient.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	far, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	queue := limiter.Config{MaxWaiting: 5, MaxWait: time.Second, LIFOAfter: limiter.HalfMaxWait}
	for name, l := range map[string]*limiter.Limiter{
		"zero":                limitedBy(t, algorithm(), limiter.Config{}),
		"with a queue":        limitedBy(t, algorithm(), queue),
		"closes windows":      limitedBy(t, hasty{algorithm()}, limiter.Config{}),
		"another library's":   limitedBy(t, external(t, &lossy{limit: 20}), limiter.Config{}),
		"with a shadow":       limitedBy(t, algorithm(), limiter.Config{Shadow: true}),
		"outside of a shadow": fixed(t, 1, limiter.Config{Shadow: true, Reserve: 2}),
	} {
		inside, _ := l.TryAcquire(limiter.Bypass) // so that a limit of 1 is reached
		for what, f := range map[string]func(){
			"TryAcquire":    func() { p, _ := l.TryAcquire(limiter.Primary); p.Release(permit.Success) },
			"a hedge":       func() { p, _ := l.TryAcquire(limiter.Hedge); p.Release(permit.Canceled) },
			"Acquire":       func() { p, _ := l.Acquire(t.Context(), limiter.Retry); p.Release(permit.Expired) },
			"with deadline": func() { p, _ := l.Acquire(far, limiter.Primary); p.ReleaseAfter(permit.Success, time.Second) },
			"Do":            func() { _ = l.Do(far, nothing) },
		} {
			if n := testing.AllocsPerRun(200, f); n != 0 {
				t.Errorf("%s: %s allocates %v times", name, what, n)
			}
		}
		inside.Release(permit.Success)
		if n := l.InFlight(); n != 0 {
			t.Errorf("%s: %d in flight at rest", name, n)
		}
	}
}

// The path of a refusal is what runs most when there is least to spare.
func TestRefusalDoesNotAllocate(t *testing.T) {
	for name, config := range map[string]limiter.Config{"zero": {}, "full queue": {MaxWaiting: 1}, "with MaxWait": {MaxWaiting: 1, MaxWait: time.Hour}} {
		ctx, cancel := context.WithCancel(t.Context())
		l := fixed(t, 1, config)
		p, _ := l.TryAcquire(limiter.Primary)
		left := make(chan error)
		go func() { // stands in the queue, where there is one
			_, err := l.Acquire(ctx, limiter.Bypass)
			left <- err
		}()
		if config.MaxWaiting == 0 {
			<-left
		}
		for l.Stats().Ledger.Waiting < config.MaxWaiting {
			time.Sleep(0)
		}
		for what, f := range map[string]func(){
			"TryAcquire": func() { l.TryAcquire(limiter.Primary) },
			"a hedge":    func() { _, _ = l.Acquire(t.Context(), limiter.Hedge) },
			"Acquire":    func() { _, _ = l.Acquire(t.Context(), limiter.Primary) },
		} {
			if n := testing.AllocsPerRun(200, f); n != 0 {
				t.Errorf("%s: %s allocates %v times when it is refused", name, what, n)
			}
		}
		if s := l.Stats(); s.Ledger.Refused != s.Rejected.Limit+s.Rejected.QueueFull {
			t.Errorf("%s: the ledger has refused %d, the limiter %+v", name, s.Ledger.Refused, s.Rejected)
		}
		cancel()
		p.Release(permit.Success)
		if config.MaxWaiting > 0 {
			<-left
		}
		probe(t, l)
	}
}
