package gradient

import (
	"testing"
)

// hits is a window of a server that does 2000/s with 20 busy, beside which twice as many
// calls as needed are hits of a cache: the quartile is theirs. So many queue.
func hits(queued float64) sample {
	n := 22 + queued
	return sample{
		x: 4000, n: n, q: 0.001, t: n / 4000, limit: n, peak: int(n), elapsed: 0.1,
		completed: 400, samples: 400, unmet: 0.3, saturated: true, cv2: 0.5,
	}
}

// beside has a baseline of such traffic without a queue.
func beside(limit float64) *Gradient {
	b := settled()
	b.q, b.m, b.cv2 = 0.001, 0.0055, 0.5
	g := learner(limit, b)
	g.ref.rejected, g.ref.smooth, g.ref.best = 0.3, 4000, 4000
	return g
}

// window shows g a window outside probes, as Next does.
func (g *Gradient) window(at float64, s sample) (Reason, move) {
	e := g.readQueue(s)
	reason, m := g.step(at, s, e)
	g.prev2, g.prev = g.prev, s
	return reason, m
}

func TestMeanIsBelievedWhereThroughputStandsStill(t *testing.T) {
	g := beside(40)
	queued := 20.0
	for i := range 20 {
		reason, m := g.window(100+float64(i), hits(queued))
		if g.mean.binding {
			if reason != ReasonQueue || m.to > 30 {
				t.Errorf("binding, and it goes to %v (%s)", m.to, reason)
			}
			if g.schedule.next > 101+float64(i) {
				t.Error("no probe is to confirm it")
			}
			return
		}
		// It grows to find out, and more in flight only queue.
		if reason == ReasonGrow {
			queued += m.to - g.limit
		}
		g.limit = m.to
	}
	t.Errorf("never: %+v", g.mean)
}

func TestMeanIsNotBelievedWhereThroughputFollows(t *testing.T) {
	g := beside(40)
	// Another mix: calls are half as long again, and nothing queues.
	mix := func(n float64) sample {
		s := hits(0)
		s.n, s.x = n, n/0.0100
		s.t, s.completed = 0.0100, int(s.x/10)
		return s
	}
	n := 40.0
	for i := range 20 {
		g.window(100+float64(i), mix(n))
		if g.mean.binding {
			t.Fatalf("window %d: believed, and the throughput follows", i)
		}
		if near(g.base.m, 0.0100, 0.01) {
			return // the new mean
		}
		n *= 1.2
	}
	t.Errorf("M is %v, and no queue explains it", g.base.m)
}

func TestMeanStopsToBindByEvidence(t *testing.T) {
	g := beside(40)
	g.mean.binding = true
	for i, n := range []float64{22, 30, 40, 52, 70} {
		s := hits(0)
		s.n, s.x, s.completed = n, n/0.0070, int(n/0.07)
		s.t = 0.0070
		g.window(100+float64(i), s)
	}
	if g.mean.binding || !near(g.base.m, 0.0070, 0.01) {
		t.Errorf("binding %v, M %v: all that was more in flight came through", g.mean.binding, g.base.m)
	}
}

func TestCutsAreNoEvidenceForAQueueOfTheMean(t *testing.T) {
	var m meanQueue
	e := estimate{target: 4, mean: 20}
	m.weigh(hits(5), hits(20), e, 0.5)
	if m.odds != 0 {
		t.Errorf("odds %v from fewer in flight", m.odds)
	}
	m.weigh(hits(20), hits(5), e, 0.5)
	if m.odds >= 0 {
		t.Errorf("odds %v from more in flight and the same throughput", m.odds)
	}
	free := hits(20)
	free.unmet = 0
	before := m.odds
	m.weigh(free, hits(5), e, 0.5)
	if m.odds != before {
		t.Error("evidence from a window in which nobody was refused")
	}
}

// A stall of one of several replicas holds long calls up: more are in flight, and no more
// is done. That is no queue at a limit of theirs.
func TestMeanHasNoSayUnderAHeavyTail(t *testing.T) {
	g := beside(40)
	g.base.cv2 = 1.3
	queued := 20.0
	for i := range 20 {
		reason, m := g.window(100+float64(i), hits(queued))
		if reason == ReasonGrow {
			queued += m.to - g.limit
		}
		g.limit = m.to
	}
	if g.mean.binding {
		t.Error("believed")
	}
}

func TestOneNoisyMeanDoesNotCut(t *testing.T) {
	m := meanQueue{binding: true}
	e := estimate{target: 4, mean: 40, queue: 1}
	m.apply(&e, sample{saturated: true})
	if e.queue > 20 {
		t.Errorf("queue %v after one window", e.queue)
	}
	m.apply(&e, sample{})
	if m.smooth != 0 {
		t.Error("a window without need is remembered")
	}
}
