package gradient

import (
	"math"
	"math/rand/v2"
	"testing"
)

// server answers to so many in flight with so much throughput.
type server func(n float64) float64

// compare lets g end one comparison against a server, with noise of the throughput, and
// returns the limit that it leaves.
func compare(t *testing.T, g *Gradient, x server, noise float64) float64 {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	window := func() sample {
		n := math.Floor(g.limit)
		s := sample{
			x: x(n) * (1 + noise*r.NormFloat64()), n: n, q: 0.0095, limit: g.limit, elapsed: 0.1,
			unmet: 0.3, saturated: true, cv2: 0.1, samples: 200,
		}
		s.completed, s.t = int(s.x/10), n/s.x
		return s
	}
	d := g.startKnee(100, window())
	for i := range kneeArms + 1 {
		if d.Reason == ReasonKneeEnd {
			return g.limit
		}
		if !d.NewEpoch || d.Probe {
			t.Fatalf("window %d: %+v", i, d)
		}
		var ok bool
		if d, ok = g.compared(101+float64(i)/10, window()); !ok {
			t.Fatalf("window %d: given up", i)
		}
	}
	t.Fatal("no end")
	return 0
}

func TestFewerInFlightWhereTheyDoMore(t *testing.T) {
	g := stepper(24)
	g.prev = atCapacity(4)
	to := compare(t, g, func(n float64) float64 { return 2000 * 20 / n }, 0.02)
	if g.knee.gain > 0.85 || to >= 24 {
		t.Errorf("gain %v, limit %v: all that is in flight slows the others down", g.knee.gain, to)
	}
	if g.prev.saturated {
		t.Error("growth would be judged against a window of another limit")
	}
	// And back, where that has passed.
	low := g.knee.gain
	for range 5 {
		compare(t, g, func(n float64) float64 { return 100 * n }, 0.02)
	}
	if g.knee.gain < math.Min(1, 1.3*low) {
		t.Errorf("gain %v after %v, and all that is more in flight is done", g.knee.gain, low)
	}
}

func TestNothingChangesWhereTheThroughputDoesNot(t *testing.T) {
	g := stepper(24)
	to := compare(t, g, func(float64) float64 { return 2000 }, 0.02)
	if g.knee.gain != 1 || to != 24 {
		t.Errorf("gain %v, limit %v", g.knee.gain, to)
	}
	if g.knee.backoff != 2*firstKneeBackoff || g.knee.next <= 101 {
		t.Errorf("backoff %v, next at %v", g.knee.backoff, g.knee.next)
	}
}

func TestLargePoolsMayQueueMoreIfItPays(t *testing.T) {
	g := stepper(200)
	if compare(t, g, func(n float64) float64 { return 100 * n }, 0.002); g.knee.gain <= 1 {
		t.Errorf("gain %v, and the throughput grows with the limit", g.knee.gain)
	}
	small := stepper(20)
	if compare(t, small, func(n float64) float64 { return 100 * n }, 0.002); small.knee.gain > 1 {
		t.Errorf("gain %v at a limit of 20: clients of a fleet would use it against each other", small.knee.gain)
	}
	// What was raised comes down where it brings nothing.
	raised := g.knee.gain
	if compare(t, g, func(float64) float64 { return 20_000 }, 0.002); g.knee.gain >= raised {
		t.Errorf("gain %v, and it brings nothing", g.knee.gain)
	}
}

func TestGainForgetsAVerdictThatDoesNotComeAgain(t *testing.T) {
	g := stepper(24)
	g.knee.gain = 0.5
	for range 10 {
		compare(t, g, func(float64) float64 { return 2000 }, 0.02)
	}
	if g.knee.gain < 0.8 || g.knee.gain > 1 {
		t.Errorf("gain %v after ten comparisons without one", g.knee.gain)
	}
}

func TestComparisonIsGivenUp(t *testing.T) {
	at := func(change func(*sample)) sample { s := atCapacity(4); change(&s); return s }
	for name, s := range map[string]sample{
		"nobody is refused": at(func(s *sample) { s.unmet = 0 }),
		"a long queue":      atCapacity(20),
	} {
		g := stepper(24)
		g.startKnee(100, atCapacity(4))
		if _, ok := g.compared(100.1, s); ok || g.knee.running || g.knee.next <= 100.1 {
			t.Errorf("%s: goes on %v, %+v", name, ok, g.knee)
		}
	}
	g := stepper(24)
	g.startKnee(100, atCapacity(4))
	g.compared(100.1, atCapacity(3))
	if _, ok := g.compared(100.2, at(func(s *sample) { s.q, s.n = 0.008, 20 })); ok {
		t.Error("no queue at the higher limit, and it goes on")
	}
	g = stepper(24)
	g.startKnee(100, atCapacity(4))
	before := g.limit
	d, ok := g.compared(100.1, at(func(s *sample) { s.drops, s.dropShare = 50, 0.2 }))
	if !ok || d.Reason != ReasonDrops || g.limit > before || g.knee.running {
		t.Errorf("drops: %+v, limit %v after %v", d, g.limit, before)
	}
}

func TestWhenAComparisonIsDue(t *testing.T) {
	e := estimate{target: 4, queue: 4}
	for name, c := range map[string]struct {
		change func(*knee, *sample, *estimate, *float64)
		want   bool
	}{
		"settled":     {func(*knee, *sample, *estimate, *float64) {}, true},
		"too early":   {func(k *knee, _ *sample, _ *estimate, _ *float64) { k.next = 101 }, false},
		"small limit": {func(_ *knee, _ *sample, _ *estimate, l *float64) { *l = 5 }, false},
		"few calls":   {func(_ *knee, s *sample, _ *estimate, _ *float64) { s.completed = 30 }, false},
		"none waits":  {func(_ *knee, s *sample, _ *estimate, _ *float64) { s.unmet = 0.01 }, false},
		"no queue":    {func(_ *knee, _ *sample, e *estimate, _ *float64) { e.queue = 0.5 }, false},
		"a long one":  {func(_ *knee, _ *sample, e *estimate, _ *float64) { e.queue = 9 }, false},
	} {
		k, s, e, limit := knee{gain: 1}, atCapacity(4), e, 24.0
		c.change(&k, &s, &e, &limit)
		if got := k.due(100, s, e, limit); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Clients of a server that compare in step would see each other's moves.
func TestComparisonsSpreadOut(t *testing.T) {
	seen := map[int]int{}
	for i := range 1000 {
		f := spreadOut(1.7e9+float64(i)*1e-3, 1)
		if f < 0 || f >= 1 {
			t.Fatalf("%v", f)
		}
		seen[int(10*f)]++
	}
	for tenth := range 10 {
		if n := seen[tenth]; n < 50 || n > 200 {
			t.Errorf("tenth %d: %d of 1000", tenth, n)
		}
	}
	if spreadOut(5, 3) != spreadOut(5, 3) {
		t.Error("not the same for the same")
	}
}
