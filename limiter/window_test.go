package limiter_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// scripted is an algorithm that notes the windows it is shown and answers with
// what the test has laid down.
type scripted struct {
	first   gradient.Decision
	next    func(gradient.Window) gradient.Decision
	windows []gradient.Window
	median  []time.Duration
	counts  []int
}

func (s *scripted) Start(time.Time) gradient.Decision { return s.first }

func (s *scripted) Next(_ time.Time, w *gradient.Window) gradient.Decision {
	s.windows = append(s.windows, *w)
	m, _ := w.Latency.Quantile(0.5)
	s.median = append(s.median, m)
	s.counts = append(s.counts, w.Latency.Count())
	if s.next != nil {
		return s.next(*w)
	}
	return s.first
}

// A window tells what went on in it: in flight by Little's integral, throughput
// by every end, latency and saturation by primaries alone.
func TestWindowTellsWhatWentOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 4, MinLength: time.Second, MinSamples: 1}}
		l := limitedBy(t, s, limiter.Config{Reserve: limiter.NoReserve})
		// For one second: a primary in flight all the time, ended by a deadline;
		// a hedge for the first half; a bypass of a quarter; a refused overload.
		primary, _ := l.TryAcquire(limiter.Primary)
		hedge, _ := l.TryAcquire(limiter.Hedge)
		bypass, _ := l.TryAcquire(limiter.Bypass)
		time.Sleep(250 * time.Millisecond)
		bypass.Release(permit.Success)
		time.Sleep(250 * time.Millisecond)
		hedge.Release(permit.Success)
		drop, _ := l.TryAcquire(limiter.Primary)
		drop.Release(permit.Overload)
		time.Sleep(500 * time.Millisecond)
		primary.Release(permit.Expired)

		if len(s.windows) != 1 {
			t.Fatalf("%d windows were closed", len(s.windows))
		}
		w := s.windows[0]
		if math.Abs(w.InFlight-1.75) > 1e-9 || w.MaxInFlight != 3 {
			t.Errorf("in flight %v, at most %d; want 1.75 and 3", w.InFlight, w.MaxInFlight)
		}
		if w.Elapsed != time.Second || w.Limit != 4 {
			t.Errorf("elapsed %v, limit %d", w.Elapsed, w.Limit)
		}
		if w.Admitted != 2 || w.Refused != 0 || w.Completed != 3 || w.Drops != 2 || w.Saturated {
			t.Errorf("window %+v", w)
		}
		if s.counts[0] != 1 {
			t.Errorf("%d latencies, want the primary's alone", s.counts[0])
		}
	})
}

// A limit that grew because hedges filled it would admit more of them: only
// primaries and retries can saturate.
func TestOnlyPrimariesSaturate(t *testing.T) {
	for name, c := range map[string]struct {
		first, second limiter.Kind
		want          bool
	}{
		"primary takes the last permit":                 {limiter.Hedge, limiter.Primary, true},
		"hedge takes the last permit":                   {limiter.Primary, limiter.Hedge, false},
		"bypass takes the last permit":                  {limiter.Primary, limiter.Bypass, false},
		"retry takes the last permit, as a primary may": {limiter.Bypass, limiter.Retry, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{first: gradient.Decision{Limit: 2, MinLength: time.Second}}
			l := limitedBy(t, s, limiter.Config{Reserve: limiter.NoReserve})
			p, _ := l.TryAcquire(c.first)
			q, _ := l.TryAcquire(c.second)
			if _, ok := l.TryAcquire(limiter.Hedge); ok {
				t.Fatal("a third permit")
			}
			time.Sleep(time.Second)
			p.Release(permit.Success)
			q.Release(permit.Success)
			if len(s.windows) == 0 || s.windows[0].Saturated != c.want {
				t.Errorf("%s: windows %+v", name, s.windows)
			}
		})
	}
}

func TestRefusedPrimaryClosesWindowOfAServiceThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 1, MinLength: time.Second}}
		l := limitedBy(t, s, limiter.Config{})
		p, _ := l.TryAcquire(limiter.Primary)
		time.Sleep(2 * time.Second)
		l.TryAcquire(limiter.Hedge)
		if len(s.windows) != 0 {
			t.Error("a skipped hedge closed a window")
		}
		l.TryAcquire(limiter.Primary)
		if len(s.windows) != 1 || s.windows[0].Refused != 1 || !s.windows[0].Saturated || s.windows[0].Completed != 0 {
			t.Errorf("windows %+v", s.windows)
		}
		p.Release(permit.Success)
		probe(t, l)
	})
}

// Field case B26: an attempt that began under another limit does not teach the
// present one's latency, and nothing teaches while the service settles.
func TestLatencyIsOfThePresentEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 9, MinLength: time.Second, MinSamples: 1}}
		s.next = func(gradient.Window) gradient.Decision {
			return gradient.Decision{Limit: 9, NewEpoch: true, Settle: time.Second, MinLength: time.Second, MinSamples: 1}
		}
		l := limitedBy(t, s, limiter.Config{})
		run := func(d time.Duration) {
			p, _ := l.TryAcquire(limiter.Primary)
			time.AfterFunc(d, func() { p.Release(permit.Success) })
		}
		run(time.Second)             // closes the first window at 1 s
		run(2500 * time.Millisecond) // begins in epoch 1, ends in epoch 2
		time.Sleep(1100 * time.Millisecond)
		run(200 * time.Millisecond) // ends while settling
		time.Sleep(1200 * time.Millisecond)
		run(800 * time.Millisecond) // the only one that teaches, ends at 3.1 s
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.windows) != 2 || s.counts[1] != 1 {
			t.Fatalf("windows %+v, samples %v", s.windows, s.counts)
		}
		if m := s.median[1]; m < 700*time.Millisecond || m > 900*time.Millisecond {
			t.Errorf("the median is %v, want about 800ms", m)
		}
		if s.windows[1].Completed != 2 {
			t.Errorf("completed %d: throughput counts every end of the window, whatever its epoch", s.windows[1].Completed)
		}
	})
}

// L12: waiting for a permit and holding one after the answer are not latency.
func TestLatencyRunsFromGrantToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 1, MinLength: time.Second, MinSamples: 2}}
		l := limitedBy(t, s, limiter.Config{MaxWaiting: 1})
		p, _ := l.TryAcquire(limiter.Primary)
		time.AfterFunc(10*time.Second, func() { p.ReleaseAfter(permit.Success, 50*time.Millisecond) })
		q, err := l.Acquire(t.Context(), limiter.Primary)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		q.Release(permit.Success)
		if len(s.windows) != 1 || s.counts[0] != 2 {
			t.Fatalf("windows %+v", s.windows)
		}
		if m := s.median[0]; m < 45*time.Millisecond || m > 55*time.Millisecond {
			t.Errorf("median %v, want about 50ms", m)
		}
	})
}

func TestLimitChangeIsAnnouncedAfterItIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 1, MinLength: time.Second}}
		s.next = func(gradient.Window) gradient.Decision {
			return gradient.Decision{Limit: 3, Reason: "because", MinLength: time.Hour}
		}
		var l *limiter.Limiter
		var got []limiter.Change
		l = limitedBy(t, s, limiter.Config{MaxWaiting: limiter.Unbounded, OnLimitChange: func(c limiter.Change) {
			got = append(got, c)
			if l.Limit() != c.New { // and no lock is held: this would hang
				t.Errorf("announced %+v, in force %d", c, l.Limit())
			}
		}})
		var granted atomic.Int64
		p, _ := l.TryAcquire(limiter.Primary)
		for range 5 {
			go func() {
				if p, err := l.Acquire(t.Context(), limiter.Primary); err == nil {
					granted.Add(1)
					<-t.Context().Done()
					p.Release(permit.Success)
				}
			}()
		}
		time.Sleep(2 * time.Second)
		p.Release(permit.Success)
		synctest.Wait()
		if len(got) != 1 || got[0] != (limiter.Change{Old: 1, New: 3, Reason: "because"}) {
			t.Errorf("announced %+v", got)
		}
		if granted.Load() != 3 {
			t.Errorf("%d waiters were granted, want 3", granted.Load())
		}
	})
}

// Changes that follow closely may be told at the same time and in any order, but each
// is told once and none is missing: the New of one is the Old of the next.
func TestChangesFormAChain(t *testing.T) {
	b := &between{limits: []int{2, 7, 3, 5, 11}}
	var mu sync.Mutex
	ends := map[int]int{} // how often a limit was Old less how often it was New
	changes := 0
	l := limitedBy(t, b, limiter.Config{MaxWaiting: limiter.Unbounded, OnLimitChange: func(c limiter.Change) {
		mu.Lock()
		defer mu.Unlock()
		changes++
		ends[c.Old]++
		ends[c.New]--
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				_ = l.Do(t.Context(), func(context.Context) error { return nil })
			}
		})
	}
	wg.Wait()
	ends[2]--         // where it began
	ends[l.Limit()]++ // and where it has come to
	for limit, n := range ends {
		if n != 0 {
			t.Errorf("%d changes: limit %d was the old one %d times more than the new one", changes, limit, n)
		}
	}
	if changes == 0 {
		t.Error("nothing was told")
	}
}

// L10 and L14: an algorithm that panics, or asks for nonsense, harms nobody.
func TestBadAlgorithmHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []int{0, -5, math.MinInt} {
			s := &scripted{first: gradient.Decision{Limit: limit, MinLength: time.Second}}
			l := limitedBy(t, s, limiter.Config{})
			p, _ := l.TryAcquire(limiter.Primary)
			time.Sleep(time.Second)
			p.Release(permit.Success)
			if l.Limit() != 1 || len(s.windows) != 1 {
				t.Errorf("asked for %d: limit %d", limit, l.Limit())
			}
			probe(t, l)
		}
		var told []any
		s := &scripted{first: gradient.Decision{Limit: 2, MinLength: time.Second}}
		s.next = func(gradient.Window) gradient.Decision { panic("algorithm") }
		l := limitedBy(t, s, limiter.Config{OnPanic: func(v any, stack []byte) {
			if len(stack) == 0 {
				t.Error("no stack")
			}
			told = append(told, v)
		}})
		for range 3 {
			err := l.Do(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil })
			if err != nil {
				t.Error(err)
			}
		}
		if len(told) != 3 || told[0] != "algorithm" || l.Limit() != 2 {
			t.Errorf("told %v, limit %d", told, l.Limit())
		}
		probe(t, l)
	})
}
