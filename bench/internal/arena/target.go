package arena

import (
	"fmt"
	"math"
)

// Metric is a figure that a target is about.
type Metric string

// The metrics.
const (
	GoodPercent     Metric = "good %"
	RejectedPercent Metric = "rejected %"
	P50             Metric = "p50 ms"
	P99             Metric = "p99 ms"
	SettledP50      Metric = "p50 ms from 2 s on"
	SettledP99      Metric = "p99 ms from 2 s on"
	SecondsTo90     Metric = "s to 90 %"
	SecondsTo80     Metric = "s to 80 %"
	LimitLast       Metric = "limit at the end"
	LimitLate       Metric = "limit from 15 s on"
	Jain            Metric = "Jain"
)

// Of returns the figure of a phase. What was never reached is infinite.
func (m Metric) Of(f *Figures, phase int) float64 {
	p := &f.Phases[phase]
	switch m {
	case GoodPercent:
		return p.GoodPercent
	case RejectedPercent:
		return p.RejectedPercent
	case P50:
		return p.P50
	case P99:
		return p.P99
	case SettledP50:
		return p.SettledP50
	case SettledP99:
		return p.SettledP99
	case SecondsTo90:
		return reached(p.SecondsTo90)
	case SecondsTo80:
		return reached(p.SecondsTo80)
	case LimitLast:
		return float64(p.LimitLast)
	case LimitLate:
		return float64(p.LimitLate)
	case Jain:
		return f.Jain
	}
	return math.NaN() // meets no target
}

func reached(seconds float64) float64 {
	if seconds < 0 {
		return math.Inf(1)
	}
	return seconds
}

// Target is a bound for a figure of a phase.
type Target struct {
	Phase   int
	Metric  Metric
	AtLeast bool // or at most
	Bound   float64
	// Stretch is a bound that would be better still. 0 is none.
	Stretch float64
}

// String says the target in a few characters.
func (t Target) String() string {
	sign := "≤"
	if t.AtLeast {
		sign = "≥"
	}
	s := fmt.Sprintf("%s %s %g", t.Metric, sign, t.Bound)
	if t.Stretch != 0 {
		s += fmt.Sprintf(" [%g]", t.Stretch)
	}
	return s
}

// Met reports whether a figure meets the bound.
func (t Target) Met(x float64) bool { return t.meets(x, t.Bound) }

// Stretched reports whether a figure meets the better bound as well, if there is one.
func (t Target) Stretched(x float64) bool { return t.Stretch != 0 && t.meets(x, t.Stretch) }

func (t Target) meets(x, bound float64) bool {
	if t.AtLeast {
		return x >= bound
	}
	return x <= bound
}

// Worst returns the figure of the worst seed. There must be one at least.
func (t Target) Worst(seeds []*Figures) float64 {
	worst := t.Metric.Of(seeds[0], t.Phase)
	for _, f := range seeds[1:] {
		x := t.Metric.Of(f, t.Phase)
		if t.AtLeast {
			worst = min(worst, x)
		} else {
			worst = max(worst, x)
		}
	}
	return worst
}
