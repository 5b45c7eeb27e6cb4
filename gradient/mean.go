package gradient

import "math"

// meanQueue decides whether the mean latency tells of a queue that the lower quartile does
// not see. It does where calls pass the bottleneck by, such as hits of a cache: a fourth of
// them, and the quartile is theirs. It does not where the mean has moved by itself, with
// another mix of calls or under a heavy tail.
//
// Which of the two it is, throughput tells: with a queue it stands still when more are in
// flight, and without one it moves with them. So the windows on either side of a move of
// the limit are an experiment, and their log-likelihood ratio is added up:
//
//	          odds < −3: it is a queue
//	silent ───────────────────────────────▶ binding: Q is at least the mean's
//	   │ ▲                                     │
//	   │ └─────────────────────────────────────┘
//	   │     odds > 3, a knee test or a probe: it is none, M is what the mean is now
//	   └── odds > 3: M is what the mean is now
//
// Before it is binding, only growth is evidence for a queue: under a cut throughput may
// stand still for other reasons. Once it is, any move is evidence against it.
type meanQueue struct {
	binding bool
	smooth  float64 // the mean's queue over saturated windows
	odds    float64 // log-likelihood ratio: above 0 for no queue, below it for one
}

const (
	// Odds of e³, twenty to one, decide.
	decisiveOdds, mostOdds = 3, 4
	// Windows are compared if what is in flight differs by this much, in logarithms: less
	// would be noise of the throughput. A fifteenth of traffic must be refused in both, or
	// the demand and not the limit has set it.
	comparedMove, comparedRefused = 0.14, 0.05
	// Where the latency varies as much as that, which is the cv² of an exponential law, a few
	// long calls are most of the mean, and a stall that holds them up looks like a queue: more
	// in flight, and no more done. So the mean has no say there. Without this, replicas
	// that freeze for 250 ms every 5 s at 30 % of their load, with calls of 10 to 100 ms, cost
	// 2.4 % of the calls where they may wait; with it none.
	steadyCV2 = 1
	// The mean is doubted if it claims so much more than the target allows.
	doubtedShare = 1.5
	// While it is in doubt the limit grows by this share at least, so that there is a move
	// to learn from.
	doubtGrowth = 0.25
)

// doubted reports whether the mean claims a queue that nothing else confirms.
func (m *meanQueue) doubted(e estimate, slowStart bool) bool {
	return !m.binding && e.mean > doubtedShare*e.target && (m.smooth > doubtedShare*e.target || slowStart)
}

// apply takes the mean's claim into the estimate.
func (m *meanQueue) apply(e *estimate, s sample) {
	if s.saturated {
		m.smooth += 0.5 * (e.mean - m.smooth)
	} else {
		m.smooth = 0
	}
	if m.binding {
		// The lesser of now and of before, since the mean of a window is noisy.
		e.queue = max(e.queue, min(e.mean, m.smooth))
	}
}

// weigh adds the evidence of a window and the one before it.
func (m *meanQueue) weigh(s, before sample, e estimate, cv2 float64) {
	if !comparable(s, before) {
		return
	}
	grown := math.Log(s.n / before.n)
	if math.Abs(grown) <= comparedMove {
		return
	}
	if !m.binding && !(e.mean > doubtedShare*e.target && e.queue <= e.target && grown > 0) {
		return
	}
	followed := math.Log(s.x / before.x)
	// The noise of a count of calls, greater where the latency is a heavy tail.
	variance := max(1, cv2) * (1/float64(max(s.completed, 1)) + 1/float64(max(before.completed, 1)))
	llr := (followed*followed - (followed-grown)*(followed-grown)) / (2 * variance)
	m.odds = min(max(m.odds+llr, -mostOdds), mostOdds)
}

// comparable reports whether the limit has set what was in flight in both windows.
func comparable(s, before sample) bool {
	return s.saturated && before.saturated && s.unmet > comparedRefused && before.unmet > comparedRefused &&
		s.x > 0 && before.x > 0 && s.n > 0 && before.n > 0
}

// release stops it from being binding: there is no queue in the mean.
func (m *meanQueue) release() { m.binding, m.odds = false, 0 }

// readQueue is the estimate for a window outside probes, with the mean's part in it.
func (g *Gradient) readQueue(s sample) estimate {
	e := g.base.queue(s, g.target(s.x))
	g.mean.apply(&e, s)
	if g.base.trusted {
		g.mean.weigh(s, g.prev, e, g.base.cv2)
	}
	if g.mean.binding && g.mean.odds > decisiveOdds {
		g.mean.release()
		g.base.m = s.t
		e.mean, e.queue = 0, e.quartile
	}
	return e
}

// judgeMean acts on the odds where the limit could grow. It returns true, with the limit
// to go to, if the mean has just become binding.
func (g *Gradient) judgeMean(at float64, s sample, e estimate) (float64, bool) {
	m := &g.mean
	if !m.doubted(e, g.slowStart) && !m.binding && e.mean < e.target {
		m.odds = 0 // nothing to decide
	}
	switch {
	case m.odds > decisiveOdds:
		g.base.m, m.odds = s.t, 0
	case m.odds < -decisiveOdds && !m.binding && g.base.cv2 < steadyCV2:
		m.binding, m.odds = true, 0
		g.slowStart = false
		g.schedule.next = min(g.schedule.next, at+1) // a probe confirms it, or not
		return max(cutFloor*g.limit, s.n-e.mean+e.target), true
	}
	return g.limit, false
}
