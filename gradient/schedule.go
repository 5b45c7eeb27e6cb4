package gradient

import "math"

// schedule says when the next probe is due.
type schedule struct {
	next     float64 // on the grid
	ended    float64 // when the last one ended
	duration float64 // of the last one
	backoff  float64 // from one to the next, in durations
	highest  float64 // the limit that the last probe left, or a higher one since
}

const (
	// A probe costs at most 30 % of the throughput, so with a gap of 100 of its
	// durations at most 0.3 % in the long run. While there is something to learn
	// they come at 8.
	minBackoff, maxBackoff = 8, 100
	congestedProbe         = 3 // cuts in a row that ask for a probe
	// mostSeconds is how long one window and the time before it may take, if there is
	// traffic. Without any a probe lasts until there is, and that says nothing about what
	// the next one will cost.
	mostSeconds    = 4
	unconfirmedCut = 0.6 // of the highest limit: a slide that no probe has confirmed
)

// plan says when the next probe is due after one that ends at that time: soon if there was
// something to learn, and later from one to the next if not.
func (sc *schedule) plan(began, at float64, learnt bool) {
	sc.backoff = min(maxBackoff, 2*sc.backoff)
	if learnt {
		sc.backoff = minBackoff
	}
	sc.duration = min(at-began, maxStages*mostSeconds)
	sc.ended = at
	// Clients with the same gap probe in the same instant, since they round to the
	// same grid of the wall clock. A step down together cannot stampede, and it
	// drains their server, so that each sees its true latency.
	gap := max(1, sc.backoff*sc.duration)
	grid := math.Exp2(math.Floor(math.Log2(gap)))
	sc.next = math.Ceil((at+0.75*gap)/grid) * grid
}

// mayProbe reports whether a probe is due after a window outside probes, of which the
// decision is in force already.
func (g *Gradient) mayProbe(at float64, s sample) bool {
	sc := &g.schedule
	sc.highest = max(sc.highest, g.limit)
	rested := at >= sc.ended+minBackoff*sc.duration
	due := at >= sc.next ||
		rested && at >= sc.ended+1 && g.ref.missing(g.base.cv2) ||
		rested && (g.congested >= congestedProbe || g.limit < unconfirmedCut*sc.highest)
	switch {
	case !due:
		return false
	case g.slowStart && g.base.trusted:
		return false // growth itself is the experiment
	case s.unmet <= 0.02 && g.congested == 0 && g.base.trusted:
		return false // nobody would gain
	}
	return true
}
