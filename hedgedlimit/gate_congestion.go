package hedgedlimit

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

const (
	// congestionEvery is how often the median is worked out: it scans a histogram.
	congestionEvery = 250 * time.Millisecond
	// congestionSamples are needed for a median: its standard error is then 1.25/√100,
	// an eighth of the spread.
	congestionSamples = 100
	// deadband is what the median may lie above the baseline without meaning
	// anything. Over 1,000 to 2,000 samples its standard error is 3 to 4 %.
	deadband = 1.15

	// The baseline follows a median that falls at once, nearly, and one that rises
	// slowly, since a rise may be congestion. It follows quicker while the service
	// is seen to have room: a factor of 3 in 37 s. Without a limit that means anything
	// nobody can say whether there is room, so it is a rate between the two.
	baselineDown      = 0.1
	baselineRoom      = 0.03  // a second, with at most half the limit in flight
	baselineBusy      = 0.003 // a second
	baselineUnlimited = 0.01  // a second
	// baselineGap is the most time that one step of the baseline counts: an hour
	// without traffic says nothing about the service.
	baselineGap = 10 * time.Second
)

// congestion compares the median latency of primaries with what it is without
// load. Their quotient prices what a hedge costs others, which its own win rate
// cannot show: at 80 % load hedges still win, and yet each of them harms. It has no
// lock and no clock; zero is ready.
type congestion struct {
	window window
	last   time.Time // when the median was worked out
	// All in ns. 0 is none yet, +Inf a median that so many cut short hide.
	median, baseline float64
}

// observe takes the latency of a primary. Room is how fast the baseline may rise.
func (c *congestion) observe(now time.Time, latency time.Duration, censored bool, rise float64) {
	c.window.add(now, latency, censored, windowSamples, congestionSamples)
	if c.last.IsZero() {
		c.last = now
	}
	if passed := now.Sub(c.last); passed >= congestionEvery && c.window.count() >= congestionSamples {
		c.last = now
		c.step(passed, rise)
	}
}

// step works the median out anew and lets the baseline follow.
func (c *congestion) step(passed time.Duration, rise float64) {
	var both gradient.Histogram
	c.window.merge(&both)
	m, known := both.Quantile(0.5)
	if !known {
		c.median = math.Inf(1) // unknown is not the same as small
		return
	}
	c.median = float64(max(m, 1))
	switch {
	case c.baseline == 0:
		c.baseline = c.median
	case c.median < c.baseline:
		c.baseline += baselineDown * (c.median - c.baseline)
	default:
		most := c.baseline * (1 + rise*min(passed, baselineGap).Seconds())
		c.baseline = min(c.median, most)
	}
}

// factor is at least 1: the median over its baseline, less the deadband. It is 1
// while there is no median, and +Inf while more than half are cut short.
func (c *congestion) factor() float64 {
	switch {
	case math.IsInf(c.median, 1):
		return c.median
	case c.baseline == 0:
		return 1
	}
	return max(1, c.median/(deadband*c.baseline))
}
