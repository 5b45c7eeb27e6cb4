package gradient

import "math"

// reference is the throughput that the service has been seen to reach.
type reference struct {
	smooth   float64 // of saturated windows
	free     float64 // of windows in which the limit was not needed; 0 = none yet
	best     float64 // what it was when the baseline was last confirmed; 0 = unknown
	probed   float64 // smooth at the last probe; 0 = unknown
	rejected float64 // share refused
}

const (
	// Throughput is smoothed over two seconds, or as long as a hundred calls take: the
	// noise of a hundred is a tenth, and that of thirty, which is a window of a slow
	// service, would pass for a loss twice a minute.
	referenceSeconds, referenceCalls = 2, 100
	// The share refused is smoothed over a second, or 200 calls, whose noise is a sixth of
	// criticalShare.
	rejectedSeconds, rejectedCalls = 1, 200
	// Forgetting the throughput in windows without need would let a slower service
	// collapse the limit; it fades with the pace at which the baseline may rise then.
	fadeSeconds = 30
)

const (
	// throughputLost: the noise of two seconds of traffic is below 5 %.
	throughputLost = 0.85
	// missing throughput asks for a probe from 7 % on, or from three deviations of
	// what two seconds of traffic count if those are more.
	missingShare, missingDeviations = 0.07, 3
	leastCV2                        = 0.09 // no traffic is steadier than that for long
	// lostDeviations of noise are taken off before throughput counts as lost. One of many
	// clients of a server gets its share of it by chance, so its calls end as a Poisson
	// process does, however steady the latency is: cv² is 1 at least.
	lostDeviations, lostCV2 = 2, 1
	// freeCV2: what comes while the limit is not needed is noise of the demand, and the
	// best of many windows is the luckiest, so the noise is taken off there too.
	freeDeviations, freeCV2 = 2, 0.25
	// confirmGain: what probes confirm moves the reference, but no single one far.
	confirmGain = 0.3
	// boundRaise: a baseline that would rise further if it were let is a first sign of
	// a slower service. With a higher reference the next loss is believed sooner.
	boundRaise = 1.05
)

// follow moves a smoothed rate a window on. It begins with the first one.
func follow(smooth, x, elapsed float64) float64 {
	if smooth == 0 || !(x > 0) {
		return x
	}
	return smooth + (1-math.Exp(-elapsed/max(referenceSeconds, referenceCalls/x)))*(x-smooth)
}

// note follows a window outside probes.
func (r *reference) note(s sample) {
	span := max(rejectedSeconds, rejectedCalls*s.elapsed/float64(max(s.offered, 1)))
	r.rejected += (1 - math.Exp(-s.elapsed/span)) * (s.unmet - r.rejected)
	if s.saturated {
		r.smooth = follow(r.smooth, s.x, s.elapsed)
	}
}

// notNeeded follows a window in which the limit was not needed.
func (r *reference) notNeeded(s sample, cv2 float64) {
	r.smooth, r.probed = 0, 0
	r.free = follow(r.free, s.x, s.elapsed)
	luck := 1 + freeDeviations*math.Sqrt(max(freeCV2, cv2)/float64(max(s.completed, 1)))
	r.best = max(r.best*math.Exp(-s.elapsed/fadeSeconds), r.free/luck)
}

// missing reports whether throughput has gone missing since the last probe.
func (r *reference) missing(cv2 float64) bool {
	if r.probed == 0 {
		return false
	}
	noise := math.Sqrt(max(leastCV2, cv2) / max(referenceSeconds*r.smooth, 1e-9))
	return r.smooth < (1-max(missingShare, missingDeviations*noise))*r.probed
}

// lost returns by what factor the throughput that a probe began with, in two windows, is
// below what the service was seen to reach: it has become slower. That is 1 if it is not
// below, or not by more than noise explains, or if it is not known.
func (r *reference) lost(one, other sample, cv2 float64) float64 {
	if !r.known() {
		return 1
	}
	cv2 = max(lostCV2, cv2)
	recent := 0.5 * (one.x + other.x)
	recent *= 1 + lostDeviations*math.Sqrt(cv2/float64(max(1, one.completed+other.completed)))
	smooth := r.smooth * (1 + lostDeviations*math.Sqrt(cv2/max(2*referenceSeconds*r.smooth, referenceCalls)))
	if now := min(smooth, recent); now < throughputLost*r.best {
		return r.best / now
	}
	return 1
}

func (r *reference) known() bool { return r.best > 0 && r.smooth > 0 }

// confirm ends a probe. Renewed tells that the baseline has jumped after more than one
// step, so that the throughput now is all that is known; bound, that the probe wanted
// to raise the baseline further than it was let.
func (r *reference) confirm(renewed, bound bool) {
	switch {
	case r.best == 0 || renewed:
		r.best = r.smooth
	case bound:
		r.best *= boundRaise
	default:
		r.best += confirmGain * (r.smooth - r.best)
	}
	r.probed = r.smooth
}
