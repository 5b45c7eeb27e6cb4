package gradient

import "math"

const (
	// Half of the excess is taken back at once, all of it if it is beyond doubt.
	// That halves the noise in the limit.
	gain = 0.5
	// One window may cost at most this share of the limit: the next probe undoes
	// what was a mistake.
	cutFloor = 0.3
	// youngSamples: until so many latencies have been seen, growth may teach the baseline.
	youngSamples = 300
	// freeShare: a limit that nobody had to do without, and of which less than this was in
	// use on average, was touched by chance. It does not grow: in a fleet it would be the
	// highest ones that do.
	freeShare = 0.75
)

// step chooses the next limit from a window outside probes.
func (g *Gradient) step(at float64, s sample, e estimate) (Reason, move) {
	switch {
	case s.bad():
		return ReasonDrops, g.cut(s)
	case g.ceiling.exceeded(s):
		g.slowStart, g.threshold = false, 0
		return ReasonLatency, move{to: g.ceiling.cut(s, g.limit)}
	case !s.saturated && e.quartile < 2*e.target:
		g.congested = 0
		if l, ok := g.idle.limit(at, s, g.limit, g.bounds.initial); ok {
			return ReasonIdle, move{to: l}
		}
		return ReasonHold, move{to: g.limit}
	}
	g.idle = idleness{}
	if e.queue > e.target {
		return g.shorten(s, e)
	}
	g.congested = 0
	growth := g.growth(s, e)
	if to, ok := g.judgeMean(at, s, e); ok {
		return ReasonQueue, move{to: to}
	}
	// Not above the ceiling, and not down either: that is for the rules above.
	most := max(g.limit, g.ceiling.most(s, g.limit))
	to := min(g.limit+growth, most)
	if to == g.limit {
		return ReasonHold, move{to: to}
	}
	return ReasonGrow, move{to: to}
}

// shorten takes back what queues too much.
func (g *Gradient) shorten(s sample, e estimate) (Reason, move) {
	target, q := e.target, e.queue
	g.slowStart, g.threshold = false, 0
	if g.congested == 0 {
		g.before = g.limit
	}
	if q > 1.5*target {
		g.congested++
	}
	share := gain
	if q > 2*target {
		share = 1
	}
	return ReasonQueue, move{to: max(cutFloor*g.limit, min(g.limit, s.n+1)-share*(q-target))}
}

// growth is how much the limit may rise. Each rise is an experiment: if the
// throughput did not follow the last one, the service is at its capacity.
func (g *Gradient) growth(s sample, e estimate) float64 {
	p := g.prev
	if comparable(s, p) && s.n > 1.15*p.n {
		followed, grown := math.Log(s.x/p.x), math.Log(s.n/p.n)
		switch {
		case followed > 0.8*grown && g.seen < youngSamples:
			// All of it arrived, so nothing queued: this is a baseline.
			g.base.learn(s, cleanRise)
			if followed > 0.9*grown && s.completed > 60 {
				g.base.trusted = true
			}
		case followed < 0.5*grown:
			g.slowStart = false
		}
	}
	step := gain * (e.target - e.queue)
	if s.unmet == 0 && s.n < freeShare*math.Floor(g.limit) {
		step = 0
	}
	if g.base.trusted && g.mean.doubted(e, g.slowStart) {
		step = max(step, doubtGrowth*g.limit)
	}
	if g.slowStart {
		step = max(step, 0.5*g.limit)
	}
	if g.limit < g.threshold {
		step = max(step, min(0.5*g.limit, g.threshold-g.limit))
	}
	if !g.base.trusted && s.t > 0.25 {
		step = 0 // A wrong step would cost seconds; the first probe is soon.
	}
	return step
}

const (
	// All late cuts to 0.3, one in twenty late by a tenth.
	dropCut, minDropCut = 0.7, 0.15
	thresholdShare      = 0.9
	// floorLift of the limit in one window is slow enough for the next one to contradict.
	floorLift = 0.2
)

// cut lowers the limit for drops, but not below what the traffic that got through
// needs: a share of calls that always fails must not close the way for the rest.
func (g *Gradient) cut(s sample) move {
	if g.slowStart || g.limit > g.threshold {
		g.threshold = thresholdShare * g.limit
	}
	g.slowStart = false
	g.congested++
	to := g.limit * max(cutFloor, 1-dropCut*max(s.dropShare, minDropCut))
	if !g.base.trusted || s.x <= 0 {
		return move{to: to}
	}
	target := g.target(s.x)
	// Throughput counts what was taken on; of that, the part in time is good.
	floor := (1 - s.expiredShare) * (s.x*g.base.m + target)
	// The floor may lift a limit that was cut too far, but only one that was needed, and
	// no faster than if there were no drops, nor by much.
	most := g.limit
	if s.saturated && !g.ceiling.exceeded(s) {
		q := g.base.queue(s, target).queue
		most += max(0, min(gain*(target-q), floorLift*g.limit, g.ceiling.most(s, g.limit)-g.limit))
	}
	return move{to: max(to, min(floor, most))}
}
