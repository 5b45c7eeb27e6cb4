package gradient

import (
	"math"
	"time"
)

// sample is what one window says, in seconds and requests.
type sample struct {
	x       float64 // throughput
	n       float64 // mean in flight
	q       float64 // 25th percentile of the latency
	fast    float64 // 5th percentile of the latency
	t       float64 // mean time in flight, by Little's law
	late    float64 // 90th percentile of the latency, or what is known of it
	limit   float64
	elapsed float64
	peak    int

	completed, samples int
	offered            int     // primaries that came
	spread             float64 // variance of q for one sample
	cv2                float64
	unmet              float64 // share of primaries that found no permit free
	drops              int
	dropShare          float64 // of the calls that ended
	expiredShare       float64 // of those that the other side took on
	saturated          bool
	// clean: the limit was not needed, so there is no queue that it could shorten.
	clean bool
	// cutShort: q is a lower bound, and x counts calls that nobody worked on to the end.
	cutShort bool
}

const (
	// The lowest quantile with a small sampling error: tails, and a share of slow
	// calls of up to three in four, leave it alone.
	quantile = 0.25
	// The variance of a sample quantile is q(1−q)/f², with f the density there,
	// which the distance between two quantiles around it gives.
	quantileBelow, quantileAbove = 0.15, 0.35

	// High enough to stand for what callers see, and low enough to be known from the
	// samples of one window.
	lateQuantile = 0.9

	// The fastest calls of a window in which a queue is building up met least of it.
	fastQuantile = 0.05

	dropLimit  = 0.02 // of calls: below that, single failures do not move the limit
	cleanShare = 0.75 // of the limit: below that, it was not needed
)

// newSample reads a window. It returns false if nothing can be learnt from its
// latency or throughput: nothing completed, no time passed, or too much was cut
// short. What it returns then still tells of the drops.
func newSample(w *Window, limit float64) (sample, bool) {
	s := sample{
		limit: limit, elapsed: w.Elapsed.Seconds(), n: w.InFlight, peak: w.MaxInFlight,
		completed: w.Completed, samples: w.Latency.Count(), cv2: w.Latency.CV2(),
		drops: w.Drops, saturated: w.Saturated, offered: w.Refused + w.Admitted + 1,
	}
	s.unmet = min(1, float64(w.Refused+w.Waited)/float64(s.offered))
	s.dropShare, s.expiredShare = dropShares(w)
	s.late = lateLatency(w).Seconds()
	q, known := w.Latency.Quantile(quantile)
	s.q = q.Seconds()
	fast, _ := w.Latency.Quantile(fastQuantile)
	s.fast = fast.Seconds()
	below, belowKnown := w.Latency.Quantile(quantileBelow)
	above, aboveKnown := w.Latency.Quantile(quantileAbove)
	if belowKnown && aboveKnown {
		perRank := (above - below).Seconds() / (quantileAbove - quantileBelow)
		s.spread = quantile * (1 - quantile) * perRank * perRank
	}
	s.clean = !s.saturated && s.drops == 0 && s.n < cleanShare*math.Floor(limit)
	if !known || s.completed <= 0 || !(s.elapsed > 0) || !(s.n > 0) || math.IsInf(s.n, 0) || s.q <= 0 {
		return s, false
	}
	s.x = float64(s.completed) / s.elapsed
	s.t = s.n / s.x
	return s, !math.IsInf(s.t, 0) && s.t > 0
}

// lateLatency returns what the unluckiest tenth of the callers waited for at least.
func lateLatency(w *Window) time.Duration {
	late, known := w.Latency.Quantile(lateQuantile)
	if !known {
		// More than a tenth was cut short, so the quantile lies beyond all that was
		// seen. A mean would fall with each call that was given up early.
		late = w.Latency.longest()
	}
	return late
}

// dropShares returns the share of drops in the calls that ended, and the share of
// expired ones in those that the other side took on.
func dropShares(w *Window) (dropped, expired float64) {
	// Expired calls are among the samples, as lower bounds, and calls that the other
	// side refused are not.
	samples, late := w.Latency.Count(), min(w.Drops, w.Latency.Censored())
	dropped = min(1, float64(w.Drops)/float64(max(samples+w.Drops-late, 1)))
	expired = min(1, float64(late)/float64(max(samples, 1)))
	return dropped, expired
}

// bad reports whether there were drops enough to count.
func (s sample) bad() bool { return s.drops >= 2 && s.dropShare > dropLimit }

// telling reports whether the latencies are those of a service, and not of deadlines,
// whatever else was refused.
func (s sample) telling() bool { return s.expiredShare < quantile }
