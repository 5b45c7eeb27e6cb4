package gradient

import (
	"math"
	"testing"
)

func (r *reference) noteAll(x, seconds float64) {
	for range int(seconds * 10) {
		r.note(sample{x: x, elapsed: 0.1, saturated: true})
	}
}

func TestReferenceFollowsSaturatedThroughputInTwoSeconds(t *testing.T) {
	var r reference
	r.noteAll(1000, 0.1)
	if r.smooth != 1000 {
		t.Fatalf("smooth %v after the first window of 1000", r.smooth)
	}
	r.noteAll(500, referenceSeconds)
	if want := 500 + 500/math.E; !near(r.smooth, want, 0.01) {
		t.Errorf("smooth %v, want %v", r.smooth, want)
	}
	before := r.smooth
	r.note(sample{x: 10, elapsed: 1})
	if r.smooth != before {
		t.Error("a window that was not saturated counts as throughput")
	}
}

func TestReferenceSmoothsTheRefusedShare(t *testing.T) {
	for offered, seconds := range map[int]float64{1000: rejectedSeconds, 10: rejectedCalls / 100} {
		var r reference
		for range int(10 * seconds) {
			r.note(sample{elapsed: 0.1, unmet: 0.5, offered: offered})
		}
		if want := 0.5 * (1 - 1/math.E); !near(r.rejected, want, 1e-9) {
			t.Errorf("%d calls in each tenth of a second, after %v s: rejected %v, want %v", offered, seconds, r.rejected, want)
		}
	}
}

// Forgetting the throughput while the limit is not needed would have a slower service
// taken for a queue afterwards.
func TestReferenceOutlivesAPauseAndFades(t *testing.T) {
	r := reference{best: 1000, smooth: 1000, probed: 1000}
	for range 300 {
		r.notNeeded(sample{x: 10, elapsed: 0.1, completed: 1}, 0.1)
	}
	if want := 1000 / math.E; !near(r.best, want, 0.01) || r.smooth != 0 || r.probed != 0 {
		t.Errorf("after half a minute without need: %+v, want best %v", r, want)
	}
	for range 200 {
		r.notNeeded(sample{x: 2000, elapsed: 0.1, completed: 200}, 0.1)
	}
	if !near(r.best, 2000, 0.1) {
		t.Errorf("best %v, want about the 2000 of the last 20 s", r.best)
	}
}

func TestMissingAsksForMoreThanNoise(t *testing.T) {
	r := reference{smooth: 1000, probed: 1000}
	for smooth, want := range map[float64]bool{1000: false, 940: false, 900: true} {
		if r.smooth = smooth; r.missing(0.1) != want {
			t.Errorf("%v of 1000 are missing: %v", 1000-smooth, !want)
		}
	}
	r.smooth = 900
	if r.missing(10) {
		t.Error("a tenth less is noise for a heavy tail")
	}
	if (&reference{smooth: 1}).missing(0.1) {
		t.Error("missing, with nothing to compare with")
	}
}

func TestLostThroughputTellsHowMuchSlowerTheServiceIs(t *testing.T) {
	at := func(x float64) sample { return sample{x: x, completed: 10_000} }
	for name, c := range map[string]struct {
		r    reference
		x    float64
		want float64
	}{
		"as ever":         {reference{best: 1000, smooth: 1000}, 1000, 1},
		"a third less":    {reference{best: 1000, smooth: 666}, 666, 1.5},
		"only just now":   {reference{best: 1000, smooth: 950}, 500, 2},
		"a little less":   {reference{best: 1000, smooth: 900}, 900, 1},
		"not known":       {reference{smooth: 500}, 500, 1},
		"not known since": {reference{best: 1000}, 500, 1},
	} {
		if got := c.r.lost(at(c.x), at(c.x), 0.1); !near(got, c.want, 0.06) {
			t.Errorf("%s: slower by %v, want %v", name, got, c.want)
		}
	}
	r := reference{best: 1000, smooth: 1000}
	if few := (sample{x: 820, completed: 5}); r.lost(few, few, 0.1) > 1 {
		t.Error("ten calls are not enough to say so")
	}
	// A client that gets twenty calls a second through counts them over many seconds.
	r = reference{best: 24, smooth: 20}
	if few := (sample{x: 20, completed: 20}); r.lost(few, few, 0.1) > 1 {
		t.Error("a sixth less of twenty is noise")
	}
}

// The luckiest of many windows is not what the service is seen to reach.
func TestBestIsNotTheLuckiestWindow(t *testing.T) {
	var r reference
	for i := range 600 {
		x := 20 + 10*math.Sin(float64(i))
		r.notNeeded(sample{x: x, elapsed: 1, completed: int(x)}, 1)
	}
	if r.best > 21 {
		t.Errorf("best %v of windows of 20 and 10 more or less", r.best)
	}
}

func TestConfirm(t *testing.T) {
	for name, c := range map[string]struct {
		best           float64
		renewed, bound bool
		want           float64
	}{
		"the first":               {0, false, false, 500},
		"a new baseline":          {1000, true, false, 500},
		"as before":               {1000, false, false, 850},
		"wanted to raise further": {1000, false, true, 1050},
	} {
		r := reference{best: c.best, smooth: 500}
		r.confirm(c.renewed, c.bound)
		if !near(r.best, c.want, 1e-9) || r.probed != 500 {
			t.Errorf("%s: %+v, want best %v", name, r, c.want)
		}
	}
}
