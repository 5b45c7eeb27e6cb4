package hedgedlimit

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

const (
	defaultQuantile   = 0.95
	defaultMinSamples = 100
	// Working the quantile out scans the histogram, so it is done once in so many
	// samples. They are at most half of what the first estimate rests on.
	refreshEvery = 50
	// restSteps is how many halvings of the share that is left are tabled.
	restSteps = 12
)

// QuantileConfig describes a delay that is learnt. The zero value is the 95th
// percentile: about one call in twenty is hedged.
type QuantileConfig struct {
	// Quantile is the share of primaries that answer before the delay is over,
	// above 0 and below 1. 0 means 0.95.
	Quantile float64

	// Min and Max bound the delay. 0 means no bound. Max must not be below Min.
	Min, Max time.Duration

	// MinSamples is how many primaries must have ended before the first hedge is
	// sent. 0 means 100.
	MinSamples int

	_ struct{}
}

// Quantile is a delay that follows a quantile of the latency of primaries, from
// the grant of the permit to the answer. Hedges are left out: one is mostly seen
// when it is quick. A primary that lost, failed or was cancelled counts as
// having taken at least as long as it was watched (right-censored, by the
// estimator of Kaplan and Meier), since leaving it out would make the estimate
// sink, and every hedge sent would cause the next.
//
// Where about as many calls are slow as the quantile leaves over, say one in twenty
// with 0.95, the quantile lies in the gap between the usual and the slow, and moves
// about in it. A Quantile a little below the share of quick calls, 0.9 there, is
// steadier and hedges sooner.
//
// No hedge is sent before MinSamples have come in, nor while so many primaries
// are cut short that the quantile is not known: unknown is not the same as small.
// A bad field is refused by New.
func Quantile(config QuantileConfig) Delay { return &quantile{config: config} }

type quantile struct {
	config QuantileConfig // immutable

	mu sync.Mutex // a leaf
	// Guarded by mu.

	window      window
	fresh       int // samples since the estimate was worked out
	estimate    time.Duration
	known       bool
	median      time.Duration
	medianKnown bool
	// halves are the latencies that a half, a quarter, … of the primaries exceed. They
	// are worked out when they are asked for, once for each estimate.
	halves     [restSteps]time.Duration
	numHalves  int
	halvesDone bool
}

func (e *quantile) validate() error {
	c := &e.config
	switch {
	case math.IsNaN(c.Quantile) || c.Quantile < 0 || c.Quantile >= 1:
		return fmt.Errorf("hedgedlimit: Delay: Quantile %v is not above 0 and below 1", c.Quantile)
	case c.Min < 0:
		return fmt.Errorf("hedgedlimit: Delay: Min %v is negative", c.Min)
	case c.Max < 0:
		return fmt.Errorf("hedgedlimit: Delay: Max %v is negative", c.Max)
	case c.Max > 0 && c.Max < c.Min:
		return fmt.Errorf("hedgedlimit: Delay: Min %v exceeds Max %v", c.Min, c.Max)
	case c.MinSamples < 0:
		return fmt.Errorf("hedgedlimit: Delay: MinSamples %d is negative", c.MinSamples)
	}
	return nil
}

func (e *quantile) next(now time.Time, _ int) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.estimate, e.known
}

func (e *quantile) expected() (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.median, e.medianKnown
}

func (e *quantile) observe(now time.Time, latency time.Duration, censored bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.window.add(now, latency, censored, windowSamples, e.minSamples())
	e.fresh++
	if !e.known || e.fresh >= refreshEvery {
		e.refreshLocked()
	}
}

func (e *quantile) minSamples() int {
	if e.config.MinSamples == 0 {
		return defaultMinSamples
	}
	return e.config.MinSamples
}

// refreshLocked works the estimate out anew. e.mu must be held.
func (e *quantile) refreshLocked() {
	if e.window.count() < e.minSamples() {
		return // Only at first: a window that is put aside has as many.
	}
	e.fresh, e.halvesDone = 0, false
	var both gradient.Histogram
	e.window.merge(&both)
	q := e.config.Quantile
	if q == 0 {
		q = defaultQuantile
	}
	d, known := both.Quantile(q)
	d = max(d, e.config.Min)
	if e.config.Max > 0 {
		d = min(d, e.config.Max)
	}
	e.estimate, e.known = d, known
	e.median, e.medianKnown = both.Quantile(0.5)
}

// rest looks up the two latencies that lie around elapsed, of which the first is
// exceeded by twice the share of the second. Somewhere between them the share is that
// of elapsed, so the median of what is left lies before the latency after them.
func (e *quantile) rest(elapsed time.Duration) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.window.count() < e.minSamples() {
		return 0, false
	}
	if !e.halvesDone {
		e.halveLocked()
	}
	for i, d := range e.halves[:e.numHalves] {
		if d <= elapsed {
			continue
		}
		if i+1 < e.numHalves {
			d = e.halves[i+1]
		}
		return d - elapsed, true
	}
	return 0, false
}

// halveLocked works out halves. e.mu must be held.
func (e *quantile) halveLocked() {
	e.halvesDone = true
	e.numHalves = 0
	var all gradient.Histogram
	e.window.merge(&all)
	for left := 0.5; e.numHalves < restSteps; left /= 2 {
		d, known := all.Quantile(1 - left)
		if !known {
			return
		}
		e.halves[e.numHalves] = d
		e.numHalves++
	}
}
