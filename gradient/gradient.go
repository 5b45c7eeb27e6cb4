package gradient

import (
	"fmt"
	"math"
	"time"
)

// Config describes a Gradient. The zero value starts at 20 and stays within 1 and
// 1000.
type Config struct {
	// Initial, Min and Max bound the limit: 0 means 20, 1 and 1000. Initial must
	// be within Min and Max; if it is 0, it is 20 as far as they allow.
	Initial, Min, Max int

	// MaxLatency, if it is not 0, is a latency that callers do not want to see: a
	// window whose 90th percentile lies above it cuts the limit, whatever the latency
	// without a queue is, and one close to it does not raise it. It is recommended
	// where many clients share a dependency that is overloaded for long: none of them
	// can tell the queue of the others from a slower service, so without a ceiling
	// the latency creeps up. It should be well above what the service takes without a
	// queue, such as three times its 90th percentile: a service that is slower than
	// that by itself brings the limit down to Min.
	MaxLatency time.Duration

	_ struct{}
}

const (
	minWindow  = 100 * time.Millisecond
	maxWindow  = time.Second
	minSamples = 30 // a quartile of 30 is known to 0.4 of the spread around it
	// A probe decides about the baseline, so it is measured twice as well. So is a window
	// of a comparison.
	probeSamples = 60

	// epochStep: a smaller move of the limit shifts the queue by less than the
	// noise of one window, so latencies from before it are still good.
	epochStep = 0.1
)

// Gradient is the default algorithm; the package comment says how it works.
type Gradient struct {
	bounds  bounds
	ceiling ceiling

	// limit is kept as a fraction, so that small steps add up.
	// Invariant: bounds.min ≤ limit ≤ bounds.max.
	limit      float64
	epochLimit float64 // the limit when the epoch began

	base     baseline
	mean     meanQueue
	probe    probe
	knee     knee
	schedule schedule
	ref      reference

	// The last two windows outside probes and comparisons.
	prev, prev2 sample
	last        sample // the last of all
	first       bool   // no window has taught yet
	seen        int    // latencies in all windows, up to youngSamples

	// State of the step.
	slowStart bool    // the limit has never met a queue: it grows by half of itself
	threshold float64 // below it growth is fast again after a cut; 0 = none
	congested int     // windows in a row that had to cut
	before    float64 // the limit before the first of them
	idle      idleness
}

// New returns a Gradient. On a bad field it returns nil and an error that names
// the field and the value.
func New(config Config) (*Gradient, error) {
	b, err := newBounds(config.Initial, config.Min, config.Max)
	if err != nil {
		return nil, err
	}
	if config.MaxLatency < 0 {
		return nil, fmt.Errorf("gradient: MaxLatency %v is negative", config.MaxLatency)
	}
	return &Gradient{
		bounds: b, ceiling: ceiling(config.MaxLatency.Seconds()), limit: b.initial, epochLimit: b.initial,
		first: true, slowStart: true,
		schedule: schedule{backoff: minBackoff}, knee: knee{gain: 1, backoff: firstKneeBackoff},
	}, nil
}

// Start returns the first limit.
func (g *Gradient) Start(now time.Time) Decision {
	g.schedule.next = seconds(now)
	return Decision{Limit: int(g.limit), Reason: ReasonStart, MinLength: minWindow, MinSamples: minSamples}
}

// Next returns the limit for the next window.
func (g *Gradient) Next(now time.Time, w *Window) Decision {
	s, ok := newSample(w, g.limit)
	at := seconds(now)
	if !ok {
		return g.unread(at, w, s)
	}
	g.last = s
	g.seen = min(g.seen+s.samples, youngSamples)
	if !s.bad() {
		g.base.spreadOf(s)
	}
	switch {
	case g.first && s.bad() && s.dropShare > 0.5 && !(g.limit < 2 && s.telling()):
		// Half of them lost, and nothing known yet: there is no baseline in this.
		return g.decide(ReasonDrops, move{to: g.limit / 2, force: true})
	case g.probe.running && !s.saturated && s.elapsed > oldestAge.Seconds():
		return g.giveUp(at) // the traffic has stopped
	case g.probe.running:
		return g.probed(at, s)
	}
	if g.knee.running {
		if d, ok := g.compared(at, s); ok {
			return d
		}
	}
	g.ref.note(s)
	if g.first || g.base.provisional() && s.samples >= oldSamples {
		g.begin(s)
	} else {
		g.learnOutside(at, s)
	}
	e := g.readQueue(s)
	reason, m := g.step(at, s, e)
	g.prev2, g.prev = g.prev, s
	d := g.decide(reason, m)
	switch {
	case g.limit < 2, !s.saturated && (reason == ReasonHold || reason == ReasonIdle):
		// There is nothing below, or the limit is not needed and the window was an
		// experiment itself.
	case s.bad() && !(s.expiredShare <= dropLimit && (at >= g.schedule.next || !g.base.trusted)):
		// Drops say enough. But where the other side refuses a share of the calls whatever
		// the limit is, no window is ever clean, and the baseline that the rest has for a
		// floor comes from probes alone. Refusals do not touch its latency.
	case d.NewEpoch && g.congested < congestedProbe:
		// The limit has just moved far, and s says nothing about where it is now: it would
		// be compared with the wrong throughput.
	case g.mayProbe(at, s):
		return g.startProbe(at, s)
	case g.base.trusted && !g.slowStart && g.knee.due(at, s, e, g.limit):
		return g.startKnee(at, s)
	}
	return d
}

// begin takes the first window for a baseline. It is trusted once another one agrees: where
// many clients begin together a queue may have been building up.
func (g *Gradient) begin(s sample) {
	g.first = false
	g.base.first(s)
	g.base.trusted = g.limit < 2
	if s.clean {
		g.ref.notNeeded(s, g.base.cv2)
	}
}

// move is a new limit. Force begins a new epoch, however small the move.
type move struct {
	to    float64
	force bool
}

// decide puts a move in force.
func (g *Gradient) decide(reason Reason, m move) Decision {
	g.limit = g.bounds.clamp(m.to)
	d := Decision{Limit: int(g.limit), Reason: reason, MinSamples: minSamples, Probe: g.probe.running}
	if d.Probe || g.knee.running {
		d.MinSamples = probeSamples
	}
	d.MinLength = g.windowLength()
	if m.force || math.Abs(g.limit-g.epochLimit) > epochStep*g.epochLimit {
		g.epochLimit = g.limit
		d.NewEpoch = true
		d.Settle = g.settleTime()
	}
	return d
}

// windowLength is two latencies: then the noise of Q is about 0.3·√(busy workers),
// which is what the target allows for. The baseline caps the latency, so that a
// queue cannot slow the reaction to it.
func (g *Gradient) windowLength() time.Duration {
	t := g.last.t
	if g.base.trusted {
		t = min(t, 1.5*g.base.m)
	}
	return duration(2*t, minWindow, maxWindow)
}

// settleTime is how long it takes until the work admitted under the old limit has
// left: the time to drain what is above the new limit, and one service.
func (g *Gradient) settleTime() time.Duration {
	t := g.last.t
	if g.base.trusted && g.last.x > 0 {
		t = min(t, g.base.m+max(0, g.last.n-g.limit)/g.last.x)
	}
	return duration(t, 0, maxWindow)
}

// seconds is a time on the wall clock, good to a microsecond.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func duration(s float64, lowest, highest time.Duration) time.Duration {
	if !(s > lowest.Seconds()) {
		return lowest
	}
	if s >= highest.Seconds() {
		return highest
	}
	return time.Duration(s * float64(time.Second))
}
