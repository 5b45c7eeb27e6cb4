package hedgearena

import (
	"fmt"
	"math"
	"slices"
)

// Metric is a figure that a target is about.
type Metric string

// The metrics.
const (
	P99          Metric = "p99 ms"
	Failed       Metric = "failed %"
	SettledExtra Metric = "extra % from 5 s on"
	Recovery     Metric = "s to 95 % good"
)

// Of returns the figure of a phase, and of all but the first if that is empty. What was never reached is infinite.
func (m Metric) Of(f *Figures, phase string) float64 {
	p := &f.Total
	for i := range f.Phases {
		if f.Phases[i].Name == phase {
			p = &f.Phases[i]
		}
	}
	switch m {
	case P99:
		return p.P99
	case Failed:
		return p.FailedPercent
	case SettledExtra:
		if p.SettledExtraPercent < 0 {
			return math.NaN() // meets no target
		}
		return p.SettledExtraPercent
	case Recovery:
		last := &f.Phases[len(f.Phases)-1]
		if last.RecoverySeconds < 0 {
			return math.Inf(1)
		}
		return last.RecoverySeconds
	}
	return math.NaN()
}

// Target is an upper bound for a figure, on the median of the seeds.
type Target struct {
	Metric Metric
	// Phase is that of the figure. Empty is all but the first.
	Phase string
	// Loads are those that it is about. Nil is all.
	Loads []float64
	// Paired tells that it is about the difference from no hedging, seed by seed.
	Paired bool
	Bound  float64
	// Stretch is a bound that would be better still. 0 is none.
	Stretch float64
}

// about reports whether the target is about a load.
func (t *Target) about(load float64) bool {
	return t.Loads == nil || slices.Contains(t.Loads, load)
}

// String says the target in a few characters.
func (t *Target) String() string {
	s := string(t.Metric)
	if t.Phase != "" {
		s += " in " + t.Phase
	}
	if t.Paired {
		s += fmt.Sprintf(" ≤ none + %g", t.Bound)
	} else {
		s += fmt.Sprintf(" ≤ %g", t.Bound)
	}
	if t.Stretch != 0 {
		s += fmt.Sprintf(" [%g]", t.Stretch)
	}
	return s
}

// The law that hedging never hurts: so much more than without it, at most.
const (
	failedPoints = 0.1
	p99Percent   = 2
)
