package gradient

import "math"

// The target a + b·√(busy workers) is 1.6, 2.1, 4 and 12.3 requests for 3, 5, 20
// and 200 workers. At half as much demand again 96.6, 97.5, 99.4 and 99.8 % of the
// capacity is used, and the median latency is 1.6, 1.4, 1.2 and 1.1 times what it is
// without a queue (log-normal service, the third and fourth minute).
const (
	targetBase = 0.15
	targetRoot = 0.86

	// Near the critical load a place in the queue is worth more, and costs less:
	// with n workers the loss falls as 1/(places + √n), and the queue is empty most
	// of the time, so it delays few. The target is larger by criticalGain where nobody
	// is refused, and is its plain self from the share on at which one in five is: from
	// there the queue is always full, and a longer one would add latency for nothing.
	// Without this a service that slows down while it still has workers to spare
	// is refused 3 % of its calls, since the drift looks like a queue. With a gain of 1
	// those clients of a fleet that happen to have a high limit, and so see nobody
	// refused, keep it at the cost of the others: Jain's index falls from 0.91 to 0.87.
	criticalShare, criticalGain = 0.2, 0.55

	// blindQuartile, in seconds: a quartile below it under a mean a hundred times as long
	// is a clock that stood still, not a service of two microseconds. The histogram
	// begins at one.
	blindQuartile = 2e-6
)

// target is Q*: how many requests may queue at the other side, of which the calls keep
// so many workers busy. Rejected is the share of primaries that get no permit.
func target(busy, rejected float64) float64 {
	critical := 1 + criticalGain*max(0, 1-rejected/criticalShare)
	return critical * (targetBase + targetRoot*math.Sqrt(busy))
}

// estimate is how many requests queue at the other side, and how many may.
type estimate struct {
	target   float64 // Q*; the noise of the others is of its size
	quartile float64 // by the shift of the lower quartile
	mean     float64 // by that of the mean, which is N − X·M
	queue    float64 // Q, what is believed of the two
}

// queue reads a window. Allowed is the target.
func (b *baseline) queue(s sample, allowed float64) estimate {
	e := estimate{target: allowed, quartile: s.x * max(0, s.q-b.q), mean: s.n - s.x*b.m}
	// A clock too coarse to see most calls puts the quartile into the lowest bucket, with
	// or without a queue. The mean still counts every tick that it does see.
	if s.q < blindQuartile && b.m > 100*blindQuartile {
		e.quartile = max(0, e.mean)
	}
	e.queue = e.quartile
	// Where the latency varies little the mean says it as well, and two estimates
	// are better than one. Not if they differ by more than noise can explain: then
	// one of the two is blind.
	if b.cv2 < steadyCV2 && math.Abs(e.mean-e.quartile) < allowed {
		e.queue = 0.5 * (e.quartile + max(0, e.mean))
	}
	return e
}

// target is the target for a throughput.
func (g *Gradient) target(x float64) float64 {
	return g.knee.gain * target(x*g.base.m, g.ref.rejected)
}
