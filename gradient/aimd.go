package gradient

import (
	"fmt"
	"math"
	"time"
)

const (
	defaultBackoff = 0.9
	// aimdShare of drops is taken for overload; below that, single failures of a
	// healthy service would wear the limit down.
	aimdShare = 0.02
)

// AIMDConfig describes an AIMD. The zero value starts at 20, stays within 1 and
// 1000, and backs off by a tenth on drops alone.
type AIMDConfig struct {
	// Initial, Min and Max bound the limit: 0 means 20, 1 and 1000. Initial must
	// be within Min and Max; if it is 0, it is 20 as far as they allow.
	Initial, Min, Max int

	// Backoff is what the limit is multiplied with when there were drops, above 0
	// and below 1. 0 means 0.9.
	Backoff float64

	// Target, if it is not 0, is a latency: a window whose 90th percentile lies
	// above it backs off as one with drops does. A ratio of latencies cannot see a
	// level that is steadily bad; this can.
	Target time.Duration

	_ struct{}
}

// AIMD adds one to the limit in each window in which it was needed and nothing
// was wrong, and multiplies it by a factor in each in which something was:
// additive increase, multiplicative decrease, as in TCP (Chiu and Jain, 1989).
// It needs drops or a target to find a limit; Gradient does not.
type AIMD struct {
	config AIMDConfig
	bounds bounds
	limit  float64 // Invariant: bounds.min ≤ limit ≤ bounds.max.
}

// NewAIMD returns an AIMD. On a bad field it returns nil and an error that names
// the field and the value.
func NewAIMD(config AIMDConfig) (*AIMD, error) {
	b, err := newBounds(config.Initial, config.Min, config.Max)
	if err != nil {
		return nil, err
	}
	switch {
	case math.IsNaN(config.Backoff) || config.Backoff < 0 || config.Backoff >= 1:
		return nil, fmt.Errorf("gradient: Backoff %v is not above 0 and below 1", config.Backoff)
	case config.Target < 0:
		return nil, fmt.Errorf("gradient: Target %v is negative", config.Target)
	}
	if config.Backoff == 0 {
		config.Backoff = defaultBackoff
	}
	return &AIMD{config: config, bounds: b, limit: b.initial}, nil
}

// Start returns the first limit.
func (a *AIMD) Start(time.Time) Decision { return a.decision(ReasonStart) }

// Next returns the limit for the next window.
func (a *AIMD) Next(_ time.Time, w *Window) Decision {
	share, _ := dropShares(w)
	late := lateLatency(w)
	switch {
	case w.Drops >= 2 && share > aimdShare:
		a.limit = a.bounds.clamp(a.limit * a.config.Backoff)
		return a.decision(ReasonDrops)
	case a.config.Target > 0 && late > a.config.Target:
		a.limit = a.bounds.clamp(a.limit * a.config.Backoff)
		return a.decision(ReasonLatency)
	case w.Saturated && share <= aimdShare:
		// A stray failure among many must not hold it: at a high rate there is one
		// in every window.
		a.limit = a.bounds.clamp(a.limit + 1)
		return a.decision(ReasonGrow)
	}
	return a.decision(ReasonHold)
}

func (a *AIMD) decision(reason Reason) Decision {
	return Decision{
		Limit: int(a.limit), Reason: reason,
		NewEpoch:  reason == ReasonDrops || reason == ReasonLatency, // one cause cuts once
		MinLength: minWindow, MinSamples: minSamples,
	}
}
