package gradient

import (
	"math"
	"testing"
)

func TestProbesGetRarerUnlessOneLearns(t *testing.T) {
	sc := schedule{backoff: minBackoff}
	at := 1000.0
	for i, want := range []float64{16, 32, 64, maxBackoff, maxBackoff} {
		sc.plan(at, at+0.5, false)
		if sc.backoff != want {
			t.Errorf("probe %d: backoff %v, want %v", i, sc.backoff, want)
		}
		if gap := sc.next - sc.ended; gap < 0.75*sc.backoff*0.5 || gap > 2*sc.backoff*0.5 {
			t.Errorf("probe %d: the next one after %v s", i, gap)
		}
		at = sc.next
	}
	if sc.plan(at, at+0.5, true); sc.backoff != minBackoff {
		t.Errorf("backoff %v after one that learnt", sc.backoff)
	}
}

// Clients that end a probe at different times begin the next one together.
func TestProbesMeetOnTheGrid(t *testing.T) {
	next := map[float64]int{}
	for i := range 100 {
		sc := schedule{backoff: maxBackoff}
		end := 1024 + 0.01*float64(i)
		sc.plan(end-0.5, end, false)
		next[sc.next]++
	}
	if len(next) > 2 {
		t.Errorf("100 clients that end within a second begin at %d times: %v", len(next), next)
	}
}

func TestPlanTakesAnyTime(t *testing.T) {
	for _, began := range []float64{0, 5, -1e12, 1e12} {
		sc := schedule{backoff: minBackoff}
		sc.plan(began, 1, false)
		if math.IsNaN(sc.next) || math.IsInf(sc.next, 0) || sc.next <= 1 {
			t.Errorf("began %v, ended 1: next %v", began, sc.next)
		}
	}
}

func TestWhenAProbeIsDue(t *testing.T) {
	busy := sample{x: 1000, n: 20, unmet: 0.3, saturated: true}
	for name, c := range map[string]struct {
		change func(*Gradient, *sample)
		want   bool
	}{
		"on its time":        {func(*Gradient, *sample) {}, true},
		"before it":          {func(g *Gradient, _ *sample) { g.schedule.next = 200 }, false},
		"throughput missing": {func(g *Gradient, _ *sample) { g.schedule.next, g.ref.smooth = 200, 700 }, true},
		"congested":          {func(g *Gradient, _ *sample) { g.schedule.next, g.congested = 200, 3 }, true},
		"congested, and tired": {func(g *Gradient, _ *sample) {
			g.schedule.next, g.congested, g.schedule.duration = 200, 3, 10
		}, false},
		"a slide":              {func(g *Gradient, _ *sample) { g.schedule.next, g.schedule.highest = 200, 50 }, true},
		"in the slow start":    {func(g *Gradient, _ *sample) { g.slowStart = true }, false},
		"untrusted slow start": {func(g *Gradient, _ *sample) { g.slowStart, g.base.trusted = true, false }, true},
		"nobody would gain":    {func(_ *Gradient, s *sample) { s.unmet = 0 }, false},
	} {
		g := learner(20, settled())
		g.ref.probed = 1000
		g.schedule = schedule{next: 100, ended: 90, duration: 0.5, backoff: minBackoff}
		s := busy
		c.change(g, &s)
		if got := g.mayProbe(100, s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
