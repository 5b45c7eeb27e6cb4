package gradient

import "math"

// baseline is what the latency is without a queue. It is measured, never averaged
// out of busy traffic.
type baseline struct {
	q       float64 // B: the 25th percentile, in seconds
	m       float64 // M: the mean, in seconds
	weight  float64 // samples behind them
	spread  float64 // variance of q for one sample, smoothed
	cv2     float64 // of the latency, smoothed
	trusted bool    // measured without a queue
}

const (
	spreadGain, cv2Gain = 0.2, 0.1
	// A jump is believed if it is beyond noise and worth it, and averaged in
	// otherwise: taking every lower value would creep towards the minimum.
	jumpDeviations, jumpShare = 3, 0.05
	// The weight of the past is bounded by 5 s of traffic, so that a new level is
	// learnt in seconds.
	weightSeconds        = 5
	minWeight, maxWeight = 60, 4000
	// While the limit is not needed the baseline may rise slowly, with this time
	// constant: slower than clients of one server could push each other up. One that
	// rests on less than minWeight is only just being found, and may move faster.
	riseSeconds = 30
	riseWeight  = 200
	// One window without need may raise the baseline by a tenth at most.
	cleanRise = 1.1
	// Two windows in a row without need agree if they differ by less than noise or this.
	agreeShare = 0.1
	// Where throughput was lost the service is slower, and an outage may leave it
	// many times slower. Otherwise only noise may raise the baseline.
	slowerRise, leastRise = 10, 1.02
	// With one in flight the throughput says little, so half of it must be gone.
	aloneLost = 0.5
	// A busy window that is faster by this share than the baseline, and beyond noise, is
	// no window of that service any more.
	fasterShare = 0.3
	// From saturated windows the baseline is only ever lowered, and only half way: the
	// queue may have been short by chance.
	saturatedGain = 0.5
)

// provisional reports whether the baseline is of a handful of calls, which may have been
// anything. It gives way to the first window with more.
func (b *baseline) provisional() bool { return !b.trusted && b.weight < oldSamples }

func (b *baseline) set(s sample) {
	b.q, b.m, b.weight = s.q, s.t, float64(s.samples)
	b.spread, b.cv2 = s.spread, s.cv2
}

// first takes a baseline from a first window. One that lasted a second saw few calls, of
// a server that may have filled up meanwhile, as that of a fleet does if all its clients
// start at once: only its fastest calls are sure to have met no queue.
func (b *baseline) first(s sample) {
	b.set(s)
	if s.elapsed >= oldAge.Seconds() && s.fast > 0 {
		b.q, b.m = s.fast, s.fast
	}
}

// agree reports whether two windows have the same latency, as far as can be told.
func (b *baseline) agree(s, earlier sample) bool {
	noise := math.Sqrt(b.spread * (1/float64(max(s.samples, 1)) + 1/float64(max(earlier.samples, 1))))
	return math.Abs(s.q-earlier.q) <= max(jumpDeviations*noise, agreeShare*earlier.q)
}

// spreadOf follows the noise of a window.
func (b *baseline) spreadOf(s sample) {
	b.spread += spreadGain * (s.spread - b.spread)
	b.cv2 += cv2Gain * (s.cv2 - b.cv2)
}

// learn takes a measurement without a queue. It may raise the baseline by the
// factor up at most. It reports whether the baseline has jumped.
func (b *baseline) learn(s sample, up float64) (jumped bool) {
	q := min(s.q, up*b.q)
	m := s.t
	if up > 1 {
		m = min(m, max(up, 1.5)*b.m)
	} else {
		m = min(m, b.m)
	}
	n := float64(max(s.samples, 1))
	if d := math.Abs(q - b.q); d > jumpDeviations*b.deviation(s.samples) && d > jumpShare*b.q {
		b.q, b.m, b.weight = q, m, n
		return true
	}
	a := n / (n + b.weight)
	b.q += a * (q - b.q)
	b.m += a * (m - b.m)
	b.weight = min(b.weight+n, min(max(weightSeconds*s.x, minWeight), maxWeight))
	return false
}

// deviation is that of the difference between the baseline and a window with so many
// samples, by noise alone.
func (b *baseline) deviation(samples int) float64 {
	return math.Sqrt(b.spread * (1/float64(max(samples, 1)) + 1/max(b.weight, 1)))
}

// rise lets the baseline follow a slower service while the limit is not needed.
func (b *baseline) rise(s sample) {
	n := float64(s.samples)
	a := min(1-math.Exp(-s.elapsed/riseSeconds), n/(n+riseWeight))
	b.q += a * (s.q - b.q)
	b.m += a * (s.t - b.m)
}

// learnOutside learns the baseline from a window outside probes.
func (g *Gradient) learnOutside(at float64, s sample) {
	b := &g.base
	switch {
	case s.clean && s.samples < oldSamples:
		// A handful of calls in seconds may be a health check that is nothing like the
		// traffic of the day. It may tell of a slower service, as slowly as it counts.
		g.ref.notNeeded(s, b.cv2)
		if b.trusted && s.q > b.q {
			b.rise(s)
		}
	case s.clean:
		g.ref.notNeeded(s, b.cv2)
		switch {
		case !b.trusted && g.prev.clean && b.agree(s, g.prev):
			b.set(s)
			b.trusted = true
		case s.q > b.q && b.weight >= minWeight:
			b.rise(s)
		default:
			b.learn(s, cleanRise)
		}
	case g.limit < 2 && !b.trusted && s.telling():
		// There is no queue of our own, and at 1 there is no probing further down:
		// without this the limit could never be left again. It must be so with drops
		// too: where a share of them is there from the start no window is clean.
		b.set(s)
		b.trusted = true
	case s.bad():
	case g.limit < 2:
		// With one in flight there is no queue of our own. A much lower throughput
		// says that the service is slower; else it is the queue of others.
		up := leastRise
		if s.x < aloneLost*g.ref.best {
			up = slowerRise
		}
		b.learn(s, up)
	default:
		// Noise alone makes half of all windows faster. Only what is beyond it counts, or
		// the baseline would creep down where windows are small.
		if below := s.q + b.deviation(s.samples) - b.q; below < 0 {
			if below+(jumpDeviations-1)*b.deviation(s.samples) < -fasterShare*b.q {
				// The service has become faster, and how much is hidden by the queue. What
				// was planned by its old latency may be minutes away.
				g.schedule.next = min(g.schedule.next, at+1)
			}
			n := float64(s.samples)
			b.q += saturatedGain * n / (n + b.weight) * below
		}
	}
}
