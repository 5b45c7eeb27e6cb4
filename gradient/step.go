package gradient

import "math"

// The target a + b·√(busy workers) is 1.8, 2.2, 4 and 11.7 requests for 3, 5, 20
// and 200 workers: 99 % of the capacity is used at half as much demand again, and
// the median latency is at most 1.15 of what it is without a queue. Halving both
// loses two points of goodput with few workers, doubling them adds as much to the
// latency as it gains.
const (
	targetBase = 0.4
	targetRoot = 0.8

	// Near the critical load a place in the queue is worth more, and costs less:
	// with n workers the loss falls as 1/(places + √n), and the queue is empty most
	// of the time, so it delays few. The target is doubled where nobody is refused,
	// and is its plain self from the share on at which one in five is: from there
	// the queue is always full, and a longer one would add latency for nothing.
	// Without this a service that slows down while it still has workers to spare
	// is refused 3 % of its calls, since the drift looks like a queue.
	criticalShare = 0.2

	// Half of the excess is taken back at once, all of it if it is beyond doubt.
	// That halves the noise in the limit.
	gain = 0.5
	// One window may cost at most this share of the limit: the next probe undoes
	// what was a mistake.
	cutFloor = 0.3
	// blindQuartile, in seconds: a quartile below it under a mean a hundred times as long
	// is a clock that stood still, not a service of two microseconds. The histogram
	// begins at one.
	blindQuartile = 2e-6
)

// target is Q*: how many requests may queue at the other side.
func (g *Gradient) target(x float64) float64 {
	critical := 1 + max(0, 1-g.ref.rejected/criticalShare)
	return critical * (targetBase + targetRoot*math.Sqrt(x*g.base.m))
}

// queue estimates how many requests do queue there.
func (g *Gradient) queue(s sample, target float64) (q25, q float64) {
	q25 = s.x * max(0, s.q-g.base.q)
	mean := s.n - s.x*g.base.m
	// A clock too coarse to see most calls puts the quartile into the lowest bucket, with
	// or without a queue. The mean still counts every tick that it does see.
	if s.q < blindQuartile && g.base.m > 100*blindQuartile {
		return max(0, mean), max(0, mean)
	}
	// Where the latency varies little the mean says it as well, and two estimates
	// are better than one. Not if they differ by more than noise can explain: then
	// one of the two is blind.
	if g.base.cv2 < 1 && math.Abs(mean-q25) < target {
		return q25, 0.5 * (q25 + max(0, mean))
	}
	return q25, q25
}

// step chooses the next limit from a window outside probes.
func (g *Gradient) step(at float64, s sample) (Reason, move) {
	target := g.target(s.x)
	q25, q := g.queue(s, target)
	switch {
	case s.bad():
		return ReasonDrops, g.cut(s)
	case !s.saturated && q25 < 2*target:
		g.congested = 0
		if l, ok := g.idle.limit(at, s, g.limit, g.bounds.initial); ok {
			return ReasonIdle, move{to: l}
		}
		return ReasonHold, move{to: g.limit}
	}
	g.idle = idleness{}
	if q > target {
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
	return ReasonGrow, move{to: g.limit + g.growth(s, q, target)}
}

// growth is how much the limit may rise. Each rise is an experiment: if the
// throughput did not follow the last one, the service is at its capacity.
func (g *Gradient) growth(s sample, q, target float64) float64 {
	g.congested = 0
	p := g.prev
	if p.saturated && p.refused > 0.05 && s.refused > 0.05 && p.x > 0 && s.n > 1.15*p.n {
		followed, grown := math.Log(s.x/p.x), math.Log(s.n/p.n)
		switch {
		case followed > 0.8*grown && g.base.weight < 300:
			// All of it arrived, so nothing queued: this is a baseline.
			g.base.learn(s, cleanRise)
			if followed > 0.9*grown && s.completed > 60 {
				g.base.trusted = true
			}
		case followed < 0.5*grown:
			g.slowStart = false
		}
	}
	step := gain * (target - q)
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
	// floorLift is slow enough for the next window to contradict.
	floorLift = 1.2
)

// cut lowers the limit for drops, but not below what the traffic that got through
// needs: a share of calls that always fails must not close the way for the rest.
func (g *Gradient) cut(s sample) move {
	if g.slowStart || g.limit > g.threshold {
		g.threshold = thresholdShare * g.limit
	}
	g.slowStart = false
	g.congested++
	floor := 0.0
	if g.base.trusted && s.x > 0 {
		// Throughput counts what was taken on; of that, the part in time is good.
		floor = (1 - s.expiredShare) * (s.x*g.base.m + g.target(s.x))
	}
	to := g.limit * max(cutFloor, 1-dropCut*max(s.dropShare, minDropCut))
	// The floor may lift a limit that was cut too far, but only one that was needed.
	most := g.limit
	if s.saturated {
		most *= floorLift
	}
	return move{to: max(to, min(floor, most))}
}

// idleness lowers a limit that has long been more than twice what is needed, so
// that a spike does not meet what another day had left.
type idleness struct {
	since float64 // when the limit was last needed; 0 = it is not known
	peak  int     // in flight since
}

const (
	idleSeconds  = 60 // without need until the first cut
	idleInterval = 6  // between cuts
)

// limit returns a lower limit if one is due.
func (i *idleness) limit(at float64, s sample, limit, initial float64) (float64, bool) {
	if i.since == 0 {
		i.since = at
	}
	i.peak = max(i.peak, s.peak)
	if at-i.since < idleSeconds {
		return limit, false
	}
	needed := max(initial, 2*float64(i.peak), 0.9*limit)
	i.peak = 0
	i.since = at - idleSeconds + idleInterval
	return min(limit, needed), needed < limit
}
