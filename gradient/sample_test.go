package gradient

import (
	"math"
	"testing"
	"time"
)

func filled(n int, latency time.Duration) *Histogram {
	h := new(Histogram)
	for range n {
		h.Add(latency)
	}
	return h
}

func TestSample(t *testing.T) {
	w := &Window{
		Elapsed: 2 * time.Second, InFlight: 10, MaxInFlight: 15, Admitted: 149, Refused: 50, Waited: 10,
		Completed: 200, Latency: filled(100, 40*time.Millisecond),
	}
	s, ok := newSample(w, 20)
	if !ok {
		t.Fatal("not readable")
	}
	for name, c := range map[string][2]float64{
		"throughput": {s.x, 100}, "time in flight": {s.t, 0.1}, "quartile": {s.q, 0.040},
		"unmet": {s.unmet, 0.3}, "elapsed": {s.elapsed, 2}, "peak": {float64(s.peak), 15},
	} {
		if !near(c[0], c[1], 0.02) {
			t.Errorf("%s %v, want %v", name, c[0], c[1])
		}
	}
	if !s.clean || s.bad() {
		t.Errorf("clean %v, bad %v", s.clean, s.bad())
	}
}

func TestWhatTeachesNothing(t *testing.T) {
	good := Window{Elapsed: time.Second, InFlight: 10, Completed: 100, Latency: filled(100, time.Millisecond)}
	for name, change := range map[string]func(*Window){
		"nothing completed": func(w *Window) { w.Completed = 0 },
		"no time":           func(w *Window) { w.Elapsed = 0 },
		"time backwards":    func(w *Window) { w.Elapsed = -time.Second },
		"nothing in flight": func(w *Window) { w.InFlight = 0 },
		"no number":         func(w *Window) { w.InFlight = math.NaN() },
		"endless":           func(w *Window) { w.InFlight = math.Inf(1) },
		"no latency":        func(w *Window) { w.Latency = new(Histogram) },
		"cut short": func(w *Window) {
			w.Latency = filled(10, time.Millisecond)
			for range 90 {
				w.Latency.AddCensored(time.Second)
			}
		},
	} {
		w := good
		change(&w)
		if _, ok := newSample(&w, 20); ok {
			t.Errorf("%s: readable", name)
		}
	}
	if _, ok := newSample(&good, 20); !ok {
		t.Error("a good window is not readable")
	}
}

// Clean means that there was no queue that the limit could shorten.
func TestCleanNeedsRoom(t *testing.T) {
	w := Window{Elapsed: time.Second, InFlight: 14, Completed: 100, Latency: filled(100, time.Millisecond)}
	for name, c := range map[string]struct {
		change func(*Window)
		want   bool
	}{
		"room":       {func(*Window) {}, true},
		"saturated":  {func(w *Window) { w.Saturated = true }, false},
		"one drop":   {func(w *Window) { w.Drops = 1 }, false},
		"close, 75%": {func(w *Window) { w.InFlight = 15 }, false},
	} {
		w := w
		c.change(&w)
		if s, _ := newSample(&w, 20); s.clean != c.want {
			t.Errorf("%s: clean %v", name, s.clean)
		}
	}
}

// Calls that the other side refused are not among the samples, and expired ones are.
func TestDropShares(t *testing.T) {
	for name, c := range map[string]struct {
		full, cut, drops int
		dropped, expired float64
	}{
		"none":           {100, 0, 0, 0, 0},
		"refused":        {50, 0, 50, 0.5, 0},
		"expired":        {50, 50, 50, 0.5, 0.5},
		"cancelled":      {50, 50, 0, 0, 0},
		"both":           {50, 25, 50, 0.5, 1. / 3},
		"nothing but":    {0, 0, 10, 1, 0},
		"nothing at all": {0, 0, 0, 0, 0},
	} {
		h := filled(c.full, time.Millisecond)
		for range c.cut {
			h.AddCensored(time.Second)
		}
		dropped, expired := dropShares(&Window{Drops: c.drops, Latency: h})
		if !near(dropped, c.dropped, 1e-9) || !near(expired, c.expired, 1e-9) {
			t.Errorf("%s: %v dropped, %v expired; want %v, %v", name, dropped, expired, c.dropped, c.expired)
		}
	}
}

func TestOneFailureIsNoOverload(t *testing.T) {
	for _, c := range []struct {
		drops int
		share float64
		want  bool
	}{{0, 0, false}, {1, 1, false}, {2, 0.02, false}, {2, 0.021, true}, {100, 1, true}} {
		if got := (sample{drops: c.drops, dropShare: c.share}).bad(); got != c.want {
			t.Errorf("%d drops, a share of %v: %v", c.drops, c.share, got)
		}
	}
}

// The noise of the quartile, from the distance of two quantiles around it: for a
// uniform law from 0 to 1 s the density is 1, so it is q(1−q).
func TestSpread(t *testing.T) {
	h := new(Histogram)
	for i := range 10_000 {
		h.Add(time.Duration(i) * 100 * time.Microsecond)
	}
	s, _ := newSample(&Window{Elapsed: time.Second, InFlight: 10, Completed: 100, Latency: h}, 20)
	if !near(s.spread, 0.25*0.75, 0.03) {
		t.Errorf("spread %v, want %v", s.spread, 0.25*0.75)
	}
}

// Where a tenth was given up the 90th percentile lies beyond all that was seen.
func TestLateLatencyIsNoMean(t *testing.T) {
	h := filled(80, 10*time.Millisecond)
	for range 20 {
		h.AddCensored(time.Second)
	}
	if late := lateLatency(&Window{Latency: h}); late < 960*time.Millisecond {
		t.Errorf("%v, and one in five had waited for a second", late)
	}
	for range 1000 {
		h.Add(10 * time.Millisecond)
	}
	if late := lateLatency(&Window{Latency: h}); late > 11*time.Millisecond {
		t.Errorf("%v, and 98 %% took 10 ms", late)
	}
}
