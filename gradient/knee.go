package gradient

import "math"

// knee looks for a limit that is better than the queue alone says. On some servers calls do
// not queue but slow each other down: they share a lock, a disk or the memory of a machine. Those
// do most with fewer in flight than would just begin to queue, and nothing in the
// latency says so. Only the throughput at two limits does.
//
// So where all is settled, now and then, the limit goes a little below and above itself by
// turns, for one window each, in the order low high high low, which cancels a trend:
//
//	           settled and due              16 windows, or beyond doubt
//	waiting ──────────────────▶ comparing ──────────────────────────────▶ waiting
//	                               │ drops, nobody refused, a long queue
//	                               └──▶ waiting, and the window counts as any other
//
// If more gets done at the lower limit, the target shrinks, and it recovers when more gets
// done at the higher one. Where many calls are in flight a small error of the baseline
// outweighs the target; if the throughput clearly grows with the limit there, the target
// is raised above what the square root says.
type knee struct {
	gain float64 // of the target

	running   bool
	centre    float64 // the limit to compare around
	arms      int     // windows that have ended
	low, high sample  // the last ones
	began     float64
	next      float64 // when it is due
	backoff   float64 // from one to the next, in durations
	tests     int     // that have ended

	// Sums over pairs of a low and a high window, in logarithms.
	pairs                  float64
	moved, squares, change float64 // of the throughput, its square, and of what is in flight
}

const (
	// 8 % to either side costs less than 0.3 % of the throughput, and 1 at least, or small
	// limits would not move.
	kneeShare, kneeLeast = 0.08, 1
	kneeArms, kneePairs  = 16, 4 // at most, and at least
	// A deviation from chance that decides before all windows are through.
	kneeDecisive = 3
	// Below this there is no room for a smaller target.
	kneeLimit = 6
	// A window must count this many calls, or sixteen of them say nothing.
	kneeCalls = 60
	// The queue must be about what it should be.
	kneeQueueLow, kneeQueueHigh = 0.3, 2
	// A comparison is given up at a queue of so many targets, or if there is next to none
	// at the higher limit: then the server has changed, and there is no time to lose.
	kneeQueueMost, kneeQueueGone = 3, 0.1

	minKneeBackoff, maxKneeBackoff = 2, 100
	firstKneeBackoff               = 4
	kneeRest                       = 2 // seconds after one that was given up

	leastGain, mostGain = 0.2, 2
	kneeForgets         = 0.2
	// mostSlack bounds a raised target to a share of the limit. It insures against a biased
	// baseline where the limit is high. Clients of a fleet have small ones, and must not
	// use it against each other.
	mostSlack = 0.15
)

// due reports whether a comparison may begin after a window with such a queue.
func (k *knee) due(at float64, s sample, e estimate, limit float64) bool {
	return at >= k.next && limit >= kneeLimit && s.completed >= kneeCalls && s.unmet > comparedRefused &&
		e.queue > kneeQueueLow*e.target && e.queue < kneeQueueHigh*e.target
}

// arm returns the limit of the next window of the comparison.
func (k *knee) arm() float64 {
	d := max(kneeShare*k.centre, kneeLeast)
	if k.lowArm() {
		return k.centre - d
	}
	return k.centre + d
}

func (k *knee) lowArm() bool { return k.arms%4 == 0 || k.arms%4 == 3 }

// startKnee begins a comparison.
func (g *Gradient) startKnee(at float64, s sample) Decision {
	k := &g.knee
	k.running, k.arms, k.began = true, 0, at
	k.centre = min(g.limit, s.n+1)
	return g.decide(ReasonKnee, move{to: k.arm(), force: true})
}

// compared goes on with a comparison after a window of it. It returns false if that has
// been given up, and the window is one like any other.
func (g *Gradient) compared(at float64, s sample) (Decision, bool) {
	k := &g.knee
	e := g.base.queue(s, g.target(s.x))
	gone := !k.lowArm() && e.queue < kneeQueueGone*e.target
	if s.bad() {
		// Drops cut, and raise nothing, not even back to the middle.
		k.stop(at)
		g.prev.saturated = false // it was under another limit
		m := g.cut(s)
		m.to = min(m.to, g.limit)
		return g.decide(ReasonDrops, m), true
	}
	if s.unmet < 0.02 || g.ceiling.exceeded(s) || gone || e.quartile > kneeQueueMost*e.target {
		k.stop(at)
		return Decision{}, false
	}
	if k.lowArm() {
		k.low = s
	} else {
		k.high = s
	}
	k.arms++
	if k.arms%2 != 0 {
		return g.decide(ReasonKnee, move{to: k.arm(), force: true}), true
	}
	followed := math.Log(k.high.x / k.low.x)
	k.pairs++
	k.moved += followed
	k.squares += followed * followed
	k.change += math.Log(k.high.n / k.low.n)
	z, elasticity := k.verdict(g.base.cv2)
	if k.arms < kneeArms && !(k.pairs >= kneePairs && math.Abs(z) > kneeDecisive) {
		return g.decide(ReasonKnee, move{to: k.arm(), force: true}), true
	}
	return g.endKnee(at, s, z, elasticity), true
}

// verdict returns by how many deviations the throughput at the higher limit differs, and
// the elasticity: which part of the change in flight it follows.
func (k *knee) verdict(cv2 float64) (z, elasticity float64) {
	if k.pairs < 2 {
		return 0, 0
	}
	calls := max(1, 0.5*float64(k.low.completed+k.high.completed))
	spread := math.Sqrt(max(0, (k.squares-k.moved*k.moved/k.pairs)/(k.pairs-1)/k.pairs))
	// Few pairs may agree by luck, so the noise is what the count explains at least.
	spread = max(spread, math.Sqrt(max(leastCV2, cv2)*2/(calls*k.pairs)))
	elasticity = k.moved / k.change
	if math.IsNaN(elasticity) || math.IsInf(elasticity, 0) {
		return 0, 0 // nothing moved
	}
	return k.moved / k.pairs / spread, elasticity
}

// endKnee draws the conclusion.
func (g *Gradient) endKnee(at float64, s sample, z, e float64) Decision {
	k := &g.knee
	target := g.target(s.x)
	if g.mean.binding && e > 0.8 && z > 2.5 {
		g.mean.release() // more in flight brought more, so nothing queued
		g.base.m = max(g.base.m, s.t)
	}
	if !(e < 0 && z < -1) {
		k.backoff = min(maxKneeBackoff, 2*k.backoff)
	}
	old := k.gain
	highest := min(mostGain, mostSlack*k.centre/max(target/k.gain, 1e-9))
	switch {
	case e < 0 && z < -2:
		// The stronger the contention the faster: it costs goodput now.
		k.gain = max(leastGain, k.gain*min(max(1+1.2*e, 0.5), 0.85))
		k.backoff = minKneeBackoff
	case e > 0.5 && z > 3 && k.gain >= 1 && k.gain < highest:
		k.gain = min(highest, 1.4*k.gain)
		k.backoff = firstKneeBackoff
	case k.gain > 1 && e < 0.3:
		k.gain = max(1, 0.8*k.gain)
	case k.gain < 1 && e > 0.1 && z > 2.3:
		k.gain = min(1, 1.3*k.gain)
		k.backoff = 2 * firstKneeBackoff
	case k.gain < 1 && z > -1:
		// A verdict may have been luck, or its reason gone. What is true comes again.
		k.gain += kneeForgets * (1 - k.gain)
	}
	// Evidence that has been used is spent; what was too weak adds up with the next, less
	// and less.
	keep := 0.5
	if k.gain != old || math.Abs(z) > 2.5 {
		keep = 0
	}
	k.pairs, k.moved, k.squares, k.change = keep*k.pairs, keep*k.moved, keep*k.squares, keep*k.change
	duration := min(at-k.began, kneeArms*mostSeconds)
	k.stop(at)
	k.tests++
	// The clients of a server must not compare in step, unlike probes: each would see the
	// others' moves for the effect of its own.
	k.next = at + max(0.5, k.backoff*duration)*(0.75+0.5*spreadOut(at, k.tests))
	g.prev.saturated = false // it was under another limit
	to := k.centre
	if k.gain < old {
		to -= (1 - k.gain/old) * target
	}
	return g.decide(ReasonKneeEnd, move{to: to, force: true})
}

func (k *knee) stop(at float64) {
	k.running = false
	k.next = at + kneeRest
}

// spreadOut is a number between 0 and 1, as good as random for clients that differ by a
// microsecond, and the same for one that is shown the same.
func spreadOut(at float64, n int) float64 {
	const golden = 0.6180339887498949
	_, second := math.Modf(math.Abs(at)) // with its microseconds, which the product keeps
	_, f := math.Modf(second*1e6*golden + float64(n)*golden)
	return f
}
