package gradient

import (
	"math"
	"testing"
)

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

// The figures that the comment on the constants gives.
func TestTarget(t *testing.T) {
	for busy, want := range map[float64]float64{3: 1.64, 5: 2.07, 20: 4, 200: 12.3} {
		if got := target(busy, 1); !near(got, want, 0.02) {
			t.Errorf("%v busy: %v, want %v", busy, got, want)
		}
		if full, free := target(busy, 1), target(busy, 0); !near(free, (1+criticalGain)*full, 1e-9) {
			t.Errorf("%v busy: %v with nobody refused, and %v with all", busy, free, full)
		}
	}
	if target(20, criticalShare) != target(20, 1) {
		t.Error("more than one in five refused is more than critical")
	}
	before := math.Inf(1)
	for refused := 0.0; refused <= 0.3; refused += 0.01 {
		got := target(20, refused)
		if got > before {
			t.Errorf("%v refused: the target rises from %v to %v", refused, before, got)
		}
		before = got
	}
}

func TestQueueIsThroughputTimesTheShiftOfTheQuartile(t *testing.T) {
	b := baseline{q: 0.008, m: 0.010, cv2: 0.1}
	for name, c := range map[string]struct {
		s      sample
		q25, q float64
	}{
		"none":               {sample{x: 1000, n: 10, q: 0.008}, 0, 0},
		"ten":                {sample{x: 1000, n: 20, q: 0.018}, 10, 10},
		"faster than before": {sample{x: 1000, n: 8, q: 0.005}, 0, 0},
		// The mean says 13 where the quartile says 10: within noise, so the middle.
		"both know": {sample{x: 1000, n: 23, q: 0.018}, 10, 11.5},
		// The mean says 40: it sees what the quartile does not, or is shifted by a mix.
		// A wrong queue would cost more than one that is not seen.
		"they differ": {sample{x: 1000, n: 50, q: 0.018}, 10, 10},
		// Nothing is seen of most calls.
		"blind": {sample{x: 1000, n: 25, q: 1e-6}, 15, 15},
	} {
		if e := b.queue(c.s, 4); !near(e.quartile, c.q25, 1e-9) || !near(e.queue, c.q, 1e-9) {
			t.Errorf("%s: %+v; want %v, %v", name, e, c.q25, c.q)
		}
	}
	heavy := b
	heavy.cv2 = 10 // the mean of a heavy tail is noise
	if e := heavy.queue(sample{x: 1000, n: 23, q: 0.018}, 4); !near(e.queue, 10, 1e-9) {
		t.Errorf("heavy tail: %v, want what the quartile says", e.queue)
	}
}
