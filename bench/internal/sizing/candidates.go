package sizing

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

const (
	// maxTokens is that of the example of gRFC A6, and tokenRatio too.
	maxTokens, tokenRatio = 10, 0.1
	// A gap is where the latency at least doubles within a thousandth of the calls. It is looked
	// for where hedges are few: beyond this quantile and up to the other.
	gapFactor, gapStep    = 2, 0.001
	gapLowest, gapHighest = 0.80, 0.995
	// gapMargin is how far into the gap its first delay is: a little beyond what is quick.
	gapMargin = 1.25
	// withoutGates is how many delays are tried without the gates, if they are in the way.
	withoutGates = 3
)

// candidate is a way to hedge.
type candidate struct {
	// quantile is that of the delay in what was put in.
	quantile float64
	// fixed is a delay that is not learnt, or 0.
	fixed time.Duration
	// ratio is the budget, or the tokenRatio of a gRPC hedging policy.
	ratio       float64
	grpc, gates bool
}

// candidates are those that are tried first: with the gates, and as a gRPC hedging policy.
// Where the latency has a gap there are delays within it, since a quantile near its edge is
// now on the one side of it and now on the other.
//
// A budget is about twice the share of the calls that the delay lets through: behind the gates
// a larger one makes no difference.
func (s *Sizing) candidates() []candidate {
	var all []candidate
	for _, c := range []candidate{
		{quantile: 0.50, ratio: 0.2}, {quantile: 0.75, ratio: 0.2}, {quantile: 0.90, ratio: 0.1}, {quantile: 0.90, ratio: 0.05},
		{quantile: 0.95, ratio: 0.1}, {quantile: 0.97, ratio: 0.05}, {quantile: 0.98, ratio: 0.05}, {quantile: 0.99, ratio: 0.05},
	} {
		c.gates = true
		all = append(all, c)
	}
	quantile, gap := s.gap()
	for _, d := range gap {
		all = append(all, candidate{quantile: quantile, fixed: d, ratio: 0.1, gates: true})
	}
	for _, q := range []float64{0.90, 0.95, 0.97, 0.98, 0.99} {
		all = append(all, candidate{quantile: q, fixed: s.quantile(q), ratio: tokenRatio, grpc: true})
	}
	for _, d := range gap {
		all = append(all, candidate{quantile: quantile, fixed: d, ratio: tokenRatio, grpc: true})
	}
	return unlike(all)
}

// unlike leaves out those that are the same as one before.
func unlike(all []candidate) []candidate {
	seen := map[candidate]bool{}
	var some []candidate
	for _, c := range all {
		same := c
		if same.fixed > 0 {
			same.quantile = 0
		}
		if !seen[same] {
			seen[same] = true
			some = append(some, c)
		}
	}
	return some
}

// gap returns delays within the widest gap of the latency, and the share of the calls that is
// quicker; no delays if there is none. The first is a little beyond the quick calls, for the least
// wait, and the others leave room for calls that are queued, or for a slow spell to end.
func (s *Sizing) gap() (float64, []time.Duration) {
	widest, at := 0.0, 0.0
	for u := gapLowest; u < gapHighest; u += gapStep {
		if x := s.Input.Latency.Quantile(u+gapStep) / s.Input.Latency.Quantile(u); x > widest {
			widest, at = x, u
		}
	}
	if widest < gapFactor {
		return 0, nil
	}
	low, high := s.Input.Latency.Quantile(at), s.Input.Latency.Quantile(at+gapStep)
	var delays []time.Duration
	for _, d := range []float64{gapMargin * low, math.Sqrt(low * high), math.Cbrt(low * high * high)} {
		delays = append(delays, roundLatency(seconds(d)))
	}
	return at, delays
}

// quantile is one of the latency, as it can be written down.
func (s *Sizing) quantile(q float64) time.Duration {
	return roundLatency(seconds(s.Input.Latency.Quantile(q)))
}

// delay is that of a candidate in what was put in.
func (c candidate) delay(s *Sizing) time.Duration {
	if c.fixed > 0 {
		return c.fixed
	}
	return s.quantile(c.quantile)
}

// ungated are candidates without gates, whose delays are those of gRPC policies that suit.
func ungated(policies []*HedgeRow) []candidate {
	var all []candidate
	for _, r := range policies[:min(withoutGates, len(policies))] {
		c := r.candidate
		c.grpc = false
		all = append(all, c)
		if c.fixed = 0; r.Gap {
			continue // its quantile is at the edge
		}
		all = append(all, c)
	}
	return unlike(all)
}

// policy sets the library up as a candidate.
func (c candidate) policy() hedgearena.Policy {
	return hedgearena.Library(fmt.Sprintf("%+v", c), "", func(config *hedgedlimit.Config) (err error) {
		if !c.gates {
			config.Gates = hedgedlimit.NoGates
		}
		config.Delay = hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: c.quantile})
		if c.fixed > 0 {
			config.Delay = hedgedlimit.Fixed(c.fixed)
		}
		if c.grpc {
			config.Budget, err = hedgedlimit.NewThrottle(maxTokens, c.ratio)
			return err
		}
		config.Budget, err = hedgedlimit.NewRatioBudget(hedgedlimit.RatioConfig{Ratio: c.ratio})
		return err
	})
}
