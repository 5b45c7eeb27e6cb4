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

	// blindQuartile, in seconds: a quartile below it under a mean a hundred times as long
	// is a clock that stood still, not a service of two microseconds. The histogram
	// begins at one.
	blindQuartile = 2e-6
)

// target is Q*: how many requests may queue at the other side, of which the calls keep
// so many workers busy. Rejected is the share of primaries that get no permit.
func target(busy, rejected float64) float64 {
	critical := 1 + max(0, 1-rejected/criticalShare)
	return critical * (targetBase + targetRoot*math.Sqrt(busy))
}

// queue estimates how many requests queue there: by the lower quartile alone, and by
// all that the window tells. Allowed is the target, which has the size of the noise.
func (b *baseline) queue(s sample, allowed float64) (q25, q float64) {
	q25 = s.x * max(0, s.q-b.q)
	mean := s.n - s.x*b.m
	// A clock too coarse to see most calls puts the quartile into the lowest bucket, with
	// or without a queue. The mean still counts every tick that it does see.
	if s.q < blindQuartile && b.m > 100*blindQuartile {
		return max(0, mean), max(0, mean)
	}
	// Where the latency varies little the mean says it as well, and two estimates
	// are better than one. Not if they differ by more than noise can explain: then
	// one of the two is blind.
	if b.cv2 < 1 && math.Abs(mean-q25) < allowed {
		return q25, 0.5 * (q25 + max(0, mean))
	}
	return q25, q25
}

// target is the target for a throughput.
func (g *Gradient) target(x float64) float64 { return target(x*g.base.m, g.ref.rejected) }
