package arena

import (
	"fmt"
	"slices"
)

// Judgement is what became of a target.
type Judgement struct {
	Target Target
	// Worst is the figure of the worst seed.
	Worst          float64
	Met, Stretched bool
}

// Judge holds the contender against the targets of the scenario, on the worst seed.
// There is nothing to judge if no seed finished.
func (m *Match) Judge() []Judgement {
	seeds := m.Finished()
	if len(seeds) == 0 {
		return nil
	}
	var all []Judgement
	for _, t := range m.Scenario.Targets {
		x := t.Worst(seeds)
		all = append(all, Judgement{Target: t, Worst: x, Met: t.Met(x), Stretched: t.Stretched(x)})
	}
	return all
}

// Median is the median over the seeds that finished, of which there must be one.
func (m *Match) Median(metric Metric, phase int) float64 {
	var x []float64
	for _, f := range m.Finished() {
		x = append(x, metric.Of(f, phase))
	}
	slices.Sort(x)
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
}

// A rival is ahead if it is by more than chance in both of goodput and latency: more
// than half a point of the one, and more than a hundredth of the other.
const (
	aheadGood    = 0.5
	aheadLatency = 0.01
)

// Ahead names each phase in which a rival that knows no more than we do was ahead of
// ours in goodput and median latency together, on the median of the seeds.
func Ahead(matches []Match) []string {
	var ahead []string
	for i := range matches {
		ours := &matches[i]
		if ours.Maker.Name != OurName || len(ours.Finished()) == 0 {
			continue
		}
		for j := range matches {
			m := &matches[j]
			if m.Scenario != ours.Scenario || m.Maker.Reference || len(m.Finished()) == 0 {
				continue
			}
			for p := range m.Scenario.Phases {
				good, ourGood := m.Median(GoodPercent, p), ours.Median(GoodPercent, p)
				p50, ourP50 := m.Median(P50, p), ours.Median(P50, p)
				if good > ourGood+aheadGood && p50 < ourP50*(1-aheadLatency) {
					ahead = append(ahead, fmt.Sprintf("%s in %s %s: good %.1f %% at p50 %.1f ms, ours %.1f %% at %.1f ms",
						m.Maker.Name, m.Scenario.ID, m.Scenario.Phases[p].Name, good, p50, ourGood, ourP50))
				}
			}
		}
	}
	return ahead
}
