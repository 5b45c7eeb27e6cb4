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
	// constant: slower than clients of one server could push each other up.
	riseSeconds = 30
	riseWeight  = 200
	// One window without need may raise the baseline by a tenth at most.
	cleanRise = 1.1
)

func (b *baseline) set(s sample) {
	b.q, b.m, b.weight = s.q, s.t, float64(s.samples)
	b.spread, b.cv2 = s.spread, s.cv2
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
	deviation := math.Sqrt(b.spread * (1/n + 1/max(b.weight, 1)))
	if d := math.Abs(q - b.q); d > jumpDeviations*deviation && d > jumpShare*b.q {
		b.q, b.m, b.weight = q, m, n
		return true
	}
	a := n / (n + b.weight)
	b.q += a * (q - b.q)
	b.m += a * (m - b.m)
	b.weight = min(b.weight+n, min(max(weightSeconds*s.x, minWeight), maxWeight))
	return false
}

// rise lets the baseline follow a slower service while the limit is not needed.
func (b *baseline) rise(s sample) {
	n := float64(s.samples)
	a := min(1-math.Exp(-s.elapsed/riseSeconds), n/(n+riseWeight))
	b.q += a * (s.q - b.q)
	b.m += a * (s.t - b.m)
}

// reference is the throughput that the service has been seen to reach.
type reference struct {
	smooth   float64 // of saturated windows, over 2 s
	best     float64 // what it was when the baseline was last confirmed; 0 = unknown
	probed   float64 // smooth at the last probe; 0 = unknown
	rejected float64 // share refused, over 1 s
}

const (
	referenceSeconds = 2
	// Forgetting it in windows without need would let a slower service collapse
	// the limit; it fades with the pace at which the baseline may rise then.
	fadeSeconds = 30
)

// note follows a window outside probes.
func (r *reference) note(s sample) {
	r.rejected += (1 - math.Exp(-s.elapsed)) * (s.refused - r.rejected)
	if !s.saturated {
		return
	}
	if r.smooth == 0 {
		r.smooth = s.x
		return
	}
	r.smooth += (1 - math.Exp(-s.elapsed/referenceSeconds)) * (s.x - r.smooth)
}

// learnOutside learns the baseline from a window outside probes.
func (g *Gradient) learnOutside(s sample) {
	b := &g.base
	switch {
	case s.clean:
		b.trusted = true
		g.ref.smooth, g.ref.probed = 0, 0
		g.ref.best = max(g.ref.best*math.Exp(-s.elapsed/fadeSeconds), s.x)
		if s.q > b.q && b.weight > riseWeight {
			b.rise(s)
		} else {
			b.learn(s, cleanRise)
		}
	case s.bad():
	case g.limit < 2 && !b.trusted:
		// There is no queue of our own, and at 1 there is no probing further down:
		// without this the limit could never be left again.
		b.set(s)
		b.trusted = true
	case g.limit < 2:
		// With one in flight there is no queue of our own. A much lower throughput
		// says that the service is slower; else it is the queue of others.
		up := 1.02
		if s.x < 0.5*g.ref.best {
			up = 10
		}
		b.learn(s, up)
	case s.q < b.q:
		n := float64(s.samples)
		b.q += 0.5 * n / (n + b.weight) * (s.q - b.q)
	}
}
