package limiter_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// lossy is a limit in the manner of Netflix's concurrency-limits, which learns from one
// call after the other: a tenth less for each that was dropped, one more for each that
// needed all of the limit.
type lossy struct {
	limit float64
	calls int
}

func (l *lossy) EstimatedLimit() int { return int(l.limit) }

func (l *lossy) OnSample(_, _ int64, inFlight int, dropped bool) {
	l.calls++
	switch {
	case dropped:
		l.limit *= 0.9
	case inFlight >= int(l.limit):
		l.limit++
	}
}

func external(t testing.TB, limit gradient.Limit) *gradient.External {
	t.Helper()
	e, err := gradient.FromLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A limit that learns from single calls finds, through the limiter, what a dependency can
// take that refuses what is too much, and no window decides without it.
func TestLimitOfAnotherLibraryLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity = 8
		netflix := &lossy{limit: 2}
		l := limitedBy(t, external(t, netflix), limiter.Config{MaxWaiting: limiter.Unbounded})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var wg sync.WaitGroup
		for range 30 { // workers
			wg.Go(func() {
				for {
					p, err := l.Acquire(ctx, limiter.Primary)
					if err != nil {
						return
					}
					outcome := permit.Success
					if l.InFlight() > capacity {
						outcome = permit.Overload
					}
					time.Sleep(10 * time.Millisecond)
					p.Release(outcome)
				}
			})
		}
		wg.Wait()
		if n := l.Limit(); n < capacity/2 || n > 2*capacity {
			t.Errorf("limit %d, the dependency can take %d", n, capacity)
		}
		s := l.Stats()
		if s.Reason != gradient.ReasonExternal || s.Decisions < 100 {
			t.Errorf("%d decisions in a minute, the last by %q", s.Decisions, s.Reason)
		}
		if taught := s.Ledger.Released[permit.Success] + s.Ledger.Released[permit.Overload]; uint64(netflix.calls) != taught {
			t.Errorf("told of %d calls, %d were to teach", netflix.calls, taught)
		}
		probe(t, l)
	})
}

// note is what a Sampler was told of a call, and how many windows it had seen.
type note struct {
	start, latency time.Duration
	inFlight       int
	dropped        bool
	windows        int
}

// sampling is a scripted algorithm that learns from single calls.
type sampling struct {
	scripted
	notes []note
}

func (s *sampling) Sample(start, latency time.Duration, inFlight int, dropped bool) {
	s.notes = append(s.notes, note{start, latency, inFlight, dropped, len(s.windows)})
}

// A Sampler is told of each primary and retry that the other side has answered, refused or
// let expire: of its latency and not of its wait, once, and before the window is shown.
// What was cancelled, ignored, a hedge, a bypass, or of another epoch is no sample.
func TestSamplerIsToldOfCallsThatTeach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sampling{}
		s.first = gradient.Decision{Limit: 3, MinLength: 9 * time.Second}
		s.next = func(gradient.Window) gradient.Decision {
			return gradient.Decision{Limit: 3, NewEpoch: true, MinLength: time.Hour}
		}
		l := limitedBy(t, s, limiter.Config{MaxWaiting: 1, Reserve: limiter.NoReserve})
		one := func(kind limiter.Kind, o permit.Outcome) {
			p, _ := l.TryAcquire(kind)
			time.Sleep(time.Second)
			p.Release(o)
			p.Release(permit.Success) // once is enough
		}
		one(limiter.Primary, permit.Success)
		one(limiter.Retry, permit.Overload)
		one(limiter.Primary, permit.Expired)
		one(limiter.Primary, permit.Canceled)
		one(limiter.Primary, permit.Ignored)
		one(limiter.Hedge, permit.Success)
		one(limiter.Bypass, permit.Overload)

		var held []limiter.Permit
		for range 3 {
			p, _ := l.TryAcquire(limiter.Bypass)
			held = append(held, p)
		}
		time.AfterFunc(time.Second, func() { held[0].Release(permit.Success) })
		waited, err := l.Acquire(t.Context(), limiter.Primary)
		if err != nil {
			t.Fatal(err)
		}
		held[1].Release(permit.Success)
		old, _ := l.TryAcquire(limiter.Primary)
		time.Sleep(time.Second)
		waited.ReleaseAfter(permit.Success, -time.Second) // closes the window
		old.Release(permit.Success)
		held[2].Release(permit.Success)
		synctest.Wait()

		want := []note{
			{0, time.Second, 1, false, 0},
			{time.Second, time.Second, 1, true, 0},
			{2 * time.Second, time.Second, 1, true, 0},
			{8 * time.Second, 0, 3, false, 0},
		}
		if !slices.Equal(s.notes, want) || len(s.windows) != 1 {
			t.Errorf("told %+v with %d windows, want %+v", s.notes, len(s.windows), want)
		}
		probe(t, l)
	})
}

// Who runs outside the limit of a shadow is no sample.
func TestSamplerIsNotToldOfShadows(t *testing.T) {
	s := &sampling{}
	s.first = gradient.Decision{Limit: 1, MinLength: time.Hour}
	l := limitedBy(t, s, limiter.Config{Shadow: true})
	inside, _ := l.TryAcquire(limiter.Primary)
	outside, _ := l.TryAcquire(limiter.Primary)
	outside.Release(permit.Success)
	inside.Release(permit.Success)
	if len(s.notes) != 1 || s.notes[0].inFlight != 1 {
		t.Errorf("told %+v", s.notes)
	}
}

// broken is a limit of another library that has a bug.
type broken struct{ told int }

func (*broken) EstimatedLimit() int { return 3 }

func (b *broken) OnSample(int64, int64, int, bool) {
	b.told++
	panic("index out of range")
}

// L10: a limit that panics over a call harms neither the call nor the next, and the window
// is decided all the same.
func TestPanicOfASamplerEndsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, told := &broken{}, 0
		l := limitedBy(t, external(t, bad), limiter.Config{OnPanic: func(v any, stack []byte) {
			if told++; v != "index out of range" || !strings.Contains(string(stack), "sample_test.go") {
				t.Errorf("OnPanic was told %v", v)
			}
		}})
		for range 10 {
			if err := l.Do(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if s := l.Stats(); told != 10 || bad.told != 10 || s.Decisions < 10 || s.Ledger.Released[permit.Success] != 10 {
			t.Errorf("OnPanic was told %d times of %d; %+v", told, bad.told, s)
		}
		probe(t, l)
	})
}

// Calls that end at the same time are told one after the other, so a limit that is not
// safe for concurrent use may be used. The race detector looks on.
func TestLimitOfAnotherLibraryNeedsNoLock(t *testing.T) {
	netflix := &lossy{limit: 50}
	l := limitedBy(t, external(t, netflix), limiter.Config{MaxWaiting: limiter.Unbounded})
	const goroutines, each = 8, 200
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if netflix.calls != goroutines*each {
		t.Errorf("told of %d calls, not of %d", netflix.calls, goroutines*each)
	}
}
