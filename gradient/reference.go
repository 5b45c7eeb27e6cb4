package gradient

import "math"

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

const (
	// throughputLost: the noise of two seconds of traffic is below 5 %.
	throughputLost = 0.85
	// missing throughput asks for a probe from 7 % on, or from three deviations of
	// what two seconds of traffic count if those are more.
	missingShare, missingDeviations = 0.07, 3
	leastCV2                        = 0.09 // no traffic is steadier than that for long
	// confirmGain: what probes confirm moves the reference, but no single one far.
	confirmGain = 0.3
	// boundRaise: a baseline that would rise further if it were let is a first sign of
	// a slower service. With a higher reference the next loss is believed sooner.
	boundRaise = 1.05
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

// notNeeded follows a window in which the limit was not needed.
func (r *reference) notNeeded(s sample) {
	r.smooth, r.probed = 0, 0
	r.best = max(r.best*math.Exp(-s.elapsed/fadeSeconds), s.x)
}

// missing reports whether throughput has gone missing since the last probe.
func (r *reference) missing(cv2 float64) bool {
	if r.probed == 0 {
		return false
	}
	noise := math.Sqrt(max(leastCV2, cv2) / max(referenceSeconds*r.smooth, 1e-9))
	return r.smooth < (1-max(missingShare, missingDeviations*noise))*r.probed
}

// lost reports whether the throughput that a probe began with, in two windows, is below
// what the service was seen to reach: it has become slower. It is false as long as
// that is not known.
func (r *reference) lost(one, other sample, cv2 float64) bool {
	if !r.known() {
		return false
	}
	recent := 0.5 * (one.x + other.x)
	// The chance that noise made a loss of it is taken off.
	recent *= 1 + 2*math.Sqrt(max(0.25, cv2)/max(1, float64(one.completed+other.completed)))
	return min(r.smooth, recent) < throughputLost*r.best
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
