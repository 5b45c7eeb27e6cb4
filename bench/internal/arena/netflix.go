package arena

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// law is an algorithm of Netflix's concurrency-limits: it is shown a latency, how many
// were in flight and whether a call was dropped, and answers with a limit. Both of
// them here are written from their public description, with their defaults.
type law interface {
	sample(rtt float64, inFlight int, dropped bool) float64
}

// latencyOf is what a window shows to a law.
type latencyOf int

const (
	meanLatency latencyOf = iota
	leastLatency
)

const (
	netflixInitial = 20
	windowLength   = time.Second
	windowCalls    = 10
	// leastRTT: shorter calls are taken for local errors.
	leastRTT = 100 * time.Microsecond
)

// windowed is a limit that shows a law the calls of a second at a time, by one latency
// and the most that were in flight. The latency is their mean, as in Netflix's own
// windows, or the least, as in those of its port to Go. A window in which nothing
// succeeded does not end.
type windowed struct {
	law      law
	shows    latencyOf
	limit    float64
	inFlight int
	starts   []time.Duration // by call
	seen     []int           // in flight when the call began, by call

	until       time.Duration
	calls       int
	sum, least  time.Duration
	maxInFlight int
	dropped     bool
}

func newWindowed(l law, shows latencyOf) *windowed {
	return &windowed{law: l, shows: shows, limit: netflixInitial}
}

func (w *windowed) Limit() int { return int(w.limit) }

func (w *windowed) Acquire(now time.Duration, call int) bool {
	if w.inFlight >= int(w.limit) {
		return false
	}
	w.inFlight++
	w.starts, w.seen = grown(w.starts, call), grown(w.seen, call)
	w.starts[call], w.seen[call] = now, w.inFlight
	return true
}

func (w *windowed) Release(now time.Duration, call int, o permit.Outcome) {
	w.inFlight--
	rtt := now - w.starts[call]
	if rtt < leastRTT {
		return
	}
	w.maxInFlight = max(w.maxInFlight, w.seen[call])
	if o == permit.Success {
		if w.calls == 0 || rtt < w.least {
			w.least = rtt
		}
		w.calls++
		w.sum += rtt
	} else {
		w.dropped = true
	}
	if now < w.until || w.calls < windowCalls {
		return
	}
	shown := w.sum.Seconds() / float64(w.calls)
	if w.shows == leastLatency {
		shown = w.least.Seconds()
	}
	w.limit = w.law.sample(shown, w.maxInFlight, w.dropped)
	w.until = now + windowLength
	w.calls, w.sum, w.maxInFlight, w.dropped = 0, 0, 0, false
}

// vegas estimates the queue as limit·(1 − least latency ever / latency), and keeps it
// between two bounds. All its steps are logarithms of the limit.
type vegas struct {
	limit, least  float64
	random        *rand.Rand
	probe, jitter float64 // windows since the least latency was forgotten, and when to
}

const (
	vegasMax          = 1000
	vegasProbe        = 30
	vegasAlpha        = 3
	vegasBeta         = 6
	gradient2Min      = 20
	gradient2Max      = 200
	gradient2Queue    = 4
	gradient2Windows  = 600
	gradient2WarmUp   = 10
	gradient2Smooth   = 0.2
	gradient2Tolerate = 1.5
)

func newVegas() *vegas {
	// Seeded by a constant: the scenario's seed is for the calls.
	v := &vegas{limit: netflixInitial, random: rand.New(rand.NewPCG(1, 1))}
	v.jitter = 0.5 + v.random.Float64()/2
	return v
}

func (v *vegas) sample(rtt float64, inFlight int, dropped bool) float64 {
	v.probe++
	if v.probe >= v.jitter*vegasProbe*v.limit {
		v.jitter, v.probe = 0.5+v.random.Float64()/2, 0
		v.least = rtt
		return v.limit
	}
	if v.least == 0 || rtt < v.least {
		v.least = rtt
		return v.limit
	}
	unit := max(1, math.Floor(math.Log10(v.limit)))
	queue := math.Ceil(v.limit * (1 - v.least/rtt))
	switch {
	case dropped:
		v.limit -= unit
	case 2*float64(inFlight) < v.limit:
		return v.limit
	case queue <= unit:
		v.limit += vegasBeta * unit
	case queue < vegasAlpha*unit:
		v.limit += unit
	case queue > vegasBeta*unit:
		v.limit -= unit
	}
	v.limit = min(max(v.limit, 1), vegasMax)
	return v.limit
}

// gradient2 multiplies the limit by how the latency compares with its own long-term
// average, and adds a few.
type gradient2 struct {
	limit, long float64
	windows     int
}

func newGradient2() *gradient2 { return &gradient2{limit: netflixInitial} }

func (g *gradient2) sample(rtt float64, inFlight int, _ bool) float64 {
	g.windows++
	if g.windows <= gradient2WarmUp {
		g.long += (rtt - g.long) / float64(g.windows)
	} else {
		g.long += (rtt - g.long) * 2 / (gradient2Windows + 1)
	}
	if g.long/rtt > 2 { // so that it recovers from a long overload
		g.long *= 0.95
	}
	if float64(inFlight) < g.limit/2 {
		return g.limit
	}
	ratio := min(max(gradient2Tolerate*g.long/rtt, 0.5), 1)
	g.limit += gradient2Smooth * (g.limit*ratio + gradient2Queue - g.limit)
	g.limit = min(max(g.limit, gradient2Min), gradient2Max)
	return g.limit
}
