package gradient

import (
	"testing"
)

func settled() baseline {
	return baseline{q: 0.008, m: 0.010, weight: 1000, spread: 4e-6, cv2: 0.1, trusted: true}
}

func TestBaselineJumpsBeyondNoiseAndAveragesWithinIt(t *testing.T) {
	for name, c := range map[string]struct {
		s      sample
		up     float64
		jumped bool
		q      float64
	}{
		"much faster":              {sample{q: 0.004, t: 0.005, samples: 100, x: 1000}, 1, true, 0.004},
		"much slower, believed":    {sample{q: 0.016, t: 0.020, samples: 100, x: 1000}, 10, true, 0.016},
		"much slower, not at all":  {sample{q: 0.016, t: 0.020, samples: 100, x: 1000}, 1, false, 0.008},
		"a tenth is a window's":    {sample{q: 0.016, t: 0.020, samples: 1000, x: 1000}, cleanRise, true, 0.0088},
		"noise is averaged in":     {sample{q: 0.0079, t: 0.010, samples: 1000, x: 1000}, 1, false, 0.00795},
		"two samples are no proof": {sample{q: 0.0045, t: 0.005, samples: 2, x: 1000}, 1, false, 0.007993},
	} {
		b := settled()
		if got := b.learn(c.s, c.up); got != c.jumped || !near(b.q, c.q, 1e-4) {
			t.Errorf("%s: jumped %v, q %v; want %v, %v", name, got, b.q, c.jumped, c.q)
		}
		if c.up == 1 && b.m > 0.010 {
			t.Errorf("%s: the mean rose to %v", name, b.m)
		}
	}
}

// The past weighs no more than five seconds of traffic.
func TestBaselineForgets(t *testing.T) {
	for x, want := range map[float64]float64{1: minWeight, 100: 500, 1e6: maxWeight} {
		b := settled()
		for range 1000 {
			b.learn(sample{q: 0.008, t: 0.010, samples: 100, x: x}, 1)
		}
		if b.weight != want {
			t.Errorf("%v/s: weight %v, want %v", x, b.weight, want)
		}
	}
}

func TestBaselineRisesOverHalfAMinuteWhereTheLimitIsNotNeeded(t *testing.T) {
	b := settled()
	for range 10 * riseSeconds {
		b.rise(sample{q: 0.016, t: 0.020, samples: 100, elapsed: 0.1})
	}
	if want := 0.008 + 0.008*(1-0.3679); !near(b.q, want, 0.01) {
		t.Errorf("q %v, want %v", b.q, want)
	}
}

func learner(limit float64, b baseline) *Gradient {
	return &Gradient{bounds: bounds{1, 1, 1000}, limit: limit, base: b, ref: reference{best: 1000, smooth: 1000}, knee: knee{gain: 1, backoff: firstKneeBackoff}}
}

// A first window that took a second may have seen a queue build up.
func TestFirstBaselineIsOfCallsThatMetNoQueue(t *testing.T) {
	s := sample{q: 0.3, t: 0.7, fast: 0.05, samples: 30, elapsed: 1.1}
	var b baseline
	if b.first(s); b.q != 0.05 || b.m != 0.05 {
		t.Errorf("%+v of a window of a second", b)
	}
	s.elapsed = 0.1
	if b.first(s); b.q != 0.3 || b.m != 0.7 {
		t.Errorf("%+v of a short window", b)
	}
}

// One window without need is no proof: where many clients begin together, a queue is
// building up while none of them needs its limit.
func TestTwoWindowsThatAgreeAreTrusted(t *testing.T) {
	window := func(q float64) sample {
		return sample{x: 100, n: 5, q: q, t: q, fast: q, samples: 100, completed: 100, elapsed: 1, spread: 4e-6, clean: true}
	}
	for name, c := range map[string]struct {
		first, second sample
		want          bool
	}{
		"the same":      {window(0.010), window(0.0102), true},
		"a ramp":        {window(0.010), window(0.030), false},
		"after a queue": {sample{q: 0.010, samples: 100}, window(0.010), false},
	} {
		g := learner(20, baseline{})
		g.begin(c.first)
		if g.base.trusted {
			t.Errorf("%s: the first window is trusted", name)
		}
		g.prev = c.first
		if g.learnOutside(100, c.second); g.base.trusted != c.want {
			t.Errorf("%s: trusted %v", name, g.base.trusted)
		}
	}
}

// Half of all windows are faster than the baseline by chance.
func TestSaturatedNoiseDoesNotLowerTheBaseline(t *testing.T) {
	g := learner(20, settled())
	s := sample{x: 1000, n: 20, q: 0.0079, t: 0.020, samples: 100, elapsed: 0.1, saturated: true}
	for range 1000 {
		g.learnOutside(100, s)
	}
	if g.base.q != 0.008 {
		t.Errorf("baseline %v", g.base.q)
	}
}

// What is planned by the latency of a service that has become faster is too late.
func TestFasterServiceAsksForAProbe(t *testing.T) {
	for q, want := range map[float64]float64{0.0075: 500, 0.003: 101} {
		g := learner(20, settled())
		g.schedule.next = 500
		g.learnOutside(100, sample{x: 1000, n: 20, q: q, t: 0.020, samples: 100, elapsed: 0.1, saturated: true})
		if g.schedule.next != want {
			t.Errorf("quartile %v, baseline 0.008: next probe at %v, want %v", q, g.schedule.next, want)
		}
	}
}

// What a window outside probes may teach.
func TestLearnOutside(t *testing.T) {
	busy := sample{x: 1000, n: 20, q: 0.016, t: 0.020, samples: 100, elapsed: 0.1, saturated: true}
	change := func(f func(*sample)) sample { s := busy; f(&s); return s }
	for name, c := range map[string]struct {
		limit float64
		s     sample
		q     float64
	}{
		"a long overload is never normal": {20, busy, 0.008},
		"lower is taken up half":          {20, change(func(s *sample) { s.q = 0.006 }), 0.008 - 0.5*100./1100*0.0018},
		"not from drops":                  {20, change(func(s *sample) { s.q, s.drops, s.dropShare = 0.001, 50, 0.5 }), 0.008},
		"not needed, so it may rise":      {40, change(func(s *sample) { s.saturated, s.clean = false, true }), 0.0080267},
		"alone, and as much done":         {1, busy, 0.0080145},
		"alone, and less than half done":  {1, change(func(s *sample) { s.x = 400 }), 0.016},
	} {
		g := learner(c.limit, settled())
		g.learnOutside(100, c.s)
		if !near(g.base.q, c.q, 0.002) {
			t.Errorf("%s: q %v, want %v", name, g.base.q, c.q)
		}
	}
	g := learner(1, baseline{q: 1, m: 1})
	if g.learnOutside(100, busy); !g.base.trusted || g.base.q != busy.q {
		t.Errorf("a limit of 1 without a baseline could never be left: %+v", g.base)
	}
}

// A handful of calls in many seconds, such as health checks, is no baseline, and what it
// has left gives way to the first window of traffic.
func TestHandfulOfCallsIsNoBaseline(t *testing.T) {
	few := sample{x: 0.1, n: 0.0001, q: 0.0002, t: 0.0002, samples: 3, elapsed: 30, clean: true}
	g := learner(20, baseline{})
	g.begin(few)
	for range 1000 {
		g.learnOutside(100, few)
	}
	if !g.base.provisional() {
		t.Errorf("%+v after nothing but a handful", g.base)
	}
	g = learner(20, settled())
	for range 1000 {
		g.learnOutside(100, few)
	}
	if g.base.q != 0.008 || g.base.provisional() {
		t.Errorf("a handful has taken the place of a baseline: %+v", g.base)
	}
}
