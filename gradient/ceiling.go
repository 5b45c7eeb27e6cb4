package gradient

import "math"

// ceiling is a latency that callers do not want to see, in seconds; 0 is none. It needs
// no baseline. So it holds where the baseline cannot be known: clients that share one
// server cannot tell the queue of the others from a slower service.
type ceiling float64

// ceilingRoom is left below the ceiling, or the limit would touch it again and again.
const ceilingRoom = 0.9

// exceeded reports whether the callers of s wait too long.
func (c ceiling) exceeded(s sample) bool { return c > 0 && s.late > float64(c) }

// most returns the highest limit to go to from the limit of s. Where calls queue the
// latency is proportional to what is in flight, and where they do not, which is where
// this is too low, the next window allows more.
func (c ceiling) most(s sample, inFlight float64) float64 {
	if c == 0 || s.late <= 0 {
		return math.Inf(1)
	}
	return inFlight * ceilingRoom * float64(c) / s.late
}

// cut returns the limit that follows on a window which has exceeded the ceiling.
func (c ceiling) cut(s sample, limit float64) float64 {
	inFlight := limit
	if s.n > 0 {
		inFlight = min(limit, s.n+1)
	}
	return max(cutFloor*limit, min(limit, c.most(s, inFlight)))
}
