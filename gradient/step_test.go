package gradient

import (
	"testing"
)

// atCapacity is a window of a server that does 2000/s with 20 busy, and as many more in
// its queue as given.
func atCapacity(queued float64) sample {
	n := 20 + queued
	return sample{
		x: 2000, n: n, q: 0.008 + queued/2000, t: n / 2000, limit: n, peak: int(n), elapsed: 0.1,
		completed: 200, samples: 200, unmet: 0.3, saturated: true,
	}
}

// stepOf is a step with the estimate of its window.
func stepOf(g *Gradient, at float64, s sample) (Reason, move) {
	return g.step(at, s, g.base.queue(s, g.target(s.x)))
}

func stepper(limit float64) *Gradient {
	g := learner(limit, settled())
	g.ref.rejected = 1
	return g
}

func TestStepHoldsTheQueueAtItsTarget(t *testing.T) {
	// The target of 20 busy is 4.
	for queued, c := range map[float64]struct {
		reason Reason
		want   float64
	}{
		0:  {ReasonGrow, 22}, // half of what is missing
		2:  {ReasonGrow, 23},
		6:  {ReasonQueue, 25}, // half of the excess
		20: {ReasonQueue, 24}, // all of it: on 20 + 4 in one window
	} {
		g := stepper(20 + queued)
		reason, m := stepOf(g, 100, atCapacity(queued))
		if reason != c.reason || !near(m.to, c.want, 0.02) {
			t.Errorf("%v queue: %s to %v; want %s to %v", queued, reason, m.to, c.reason, c.want)
		}
	}
}

func TestOneWindowCostsAtMostSevenTenths(t *testing.T) {
	g := stepper(100)
	if _, m := stepOf(g, 100, atCapacity(10_000)); m.to != 30 {
		t.Errorf("from 100 to %v", m.to)
	}
}

func TestGrowthIsFastUntilAQueueIsMet(t *testing.T) {
	g := stepper(20)
	g.slowStart = true
	if _, m := stepOf(g, 100, atCapacity(0)); m.to != 30 {
		t.Errorf("in the slow start from 20 to %v", m.to)
	}
	stepOf(g, 101, atCapacity(10))
	if g.slowStart {
		t.Error("still in the slow start with a queue")
	}
	// Throughput that did not follow ends it too.
	g = stepper(30)
	g.slowStart = true
	g.prev = atCapacity(0)
	s := atCapacity(4)
	s.q = 0.008 // a queue that the quartile does not see
	stepOf(g, 100, s)
	if g.slowStart {
		t.Error("still in the slow start, and a fifth more in flight brought nothing")
	}
}

func TestGrowthIsFastBelowTheLimitBeforeDrops(t *testing.T) {
	g := stepper(40)
	s := atCapacity(0)
	s.drops, s.dropShare = 100, 1
	_, m := stepOf(g, 100, s)
	if g.threshold != 36 {
		t.Fatalf("threshold %v, want 0.9 of 40", g.threshold)
	}
	g.limit = 12
	if _, m = stepOf(g, 101, atCapacity(0)); m.to != 18 {
		t.Errorf("below the threshold from 12 to %v, want half as much again", m.to)
	}
	g.limit = 35
	if _, m = stepOf(g, 101, atCapacity(0)); m.to > 37.1 {
		t.Errorf("at the threshold from 35 to %v", m.to)
	}
}

func TestNoGrowthBeforeTrustWhereAWrongStepCostsSeconds(t *testing.T) {
	g := stepper(20)
	g.base.trusted = false
	s := atCapacity(0)
	s.t = 0.3
	if _, m := stepOf(g, 100, s); m.to != 20 {
		t.Errorf("grown to %v", m.to)
	}
}

// The last permit was taken for a moment, and that is all.
func TestChanceBurstIsNoNeed(t *testing.T) {
	g := stepper(40)
	s := atCapacity(0)
	s.unmet, s.n = 0, 20
	if reason, m := stepOf(g, 100, s); reason != ReasonHold || m.to != 40 {
		t.Errorf("%s to %v", reason, m.to)
	}
	s.n = 35
	if reason, _ := stepOf(g, 100, s); reason != ReasonGrow {
		t.Errorf("%s, and it is nearly all in use", reason)
	}
}

func TestHoldWithoutNeed(t *testing.T) {
	g := stepper(40)
	s := atCapacity(0)
	s.saturated = false
	if reason, m := stepOf(g, 100, s); reason != ReasonHold || m.to != 40 {
		t.Errorf("%s to %v", reason, m.to)
	}
	// Not needed, and yet there is twice the queue: it is cut.
	s = atCapacity(20)
	s.saturated = false
	if reason, _ := stepOf(g, 100, s); reason != ReasonQueue {
		t.Errorf("a queue of 20 without need: %s", reason)
	}
}

func TestDropsCutByTheirShareAndLeaveWhatIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		limit            float64
		dropped, expired float64
		saturated        bool
		trusted          bool
		want             float64
	}{
		"all, and nothing known":  {100, 1, 1, true, false, 30},
		"half":                    {100, 0.5, 0.5, true, false, 65},
		"few cut a tenth":         {100, 0.05, 0.05, true, false, 89.5},
		"the floor":               {30, 1, 0, true, true, 24}, // 20 busy + 4
		"less what expired":       {100, 1, 0.5, true, true, 30},
		"a floor above the limit": {18, 0.5, 0, true, true, 20}, // as fast as without drops
		"not if it is not needed": {18, 0.5, 0, false, true, 18},
	} {
		g := stepper(c.limit)
		g.base.trusted = c.trusted
		s := atCapacity(0)
		s.drops, s.dropShare, s.expiredShare, s.saturated = 100, c.dropped, c.expired, c.saturated
		reason, m := stepOf(g, 100, s)
		if reason != ReasonDrops || !near(m.to, c.want, 0.01) {
			t.Errorf("%s: %s to %v, want %v", name, reason, m.to, c.want)
		}
	}
}
