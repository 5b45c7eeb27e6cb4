package arena

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// Tournament is every contender in every scenario with every seed.
type Tournament struct {
	Scenarios []Scenario
	Makers    []Maker
	Seeds     []uint64
	// Parallel is how many simulations run at the same time. It changes nothing but
	// how long it takes.
	Parallel int
	// Course keeps how the first seed went over time.
	Course bool

	calls    atomic.Int64
	finished atomic.Int64
}

// Match is one contender in one scenario.
type Match struct {
	Scenario *Scenario
	Maker    *Maker
	// Figures are by seed. Those of a run that did not finish are nil.
	Figures []*Figures
}

// Finished returns the figures of the seeds that finished.
func (m *Match) Finished() []*Figures {
	return slices.DeleteFunc(slices.Clone(m.Figures), func(f *Figures) bool { return f == nil })
}

// Runs is how many simulations the tournament has.
func (t *Tournament) Runs() int { return len(t.Scenarios) * len(t.Makers) * len(t.Seeds) }

// Progress returns how many simulations have finished, and which share of all calls
// has come. It may be called at any time.
func (t *Tournament) Progress() (runs int, share float64) {
	all := 0.0
	for i := range t.Scenarios {
		all += t.Scenarios[i].Calls()
	}
	all *= float64(len(t.Makers) * len(t.Seeds))
	return int(t.finished.Load()), min(1, float64(t.calls.Load())/max(all, 1))
}

// Run plays all matches and returns them in the order of scenarios, then of makers. If
// ctx ends before or a simulation fails it returns the error, and what had finished
// by then.
func (t *Tournament) Run(ctx context.Context) ([]Match, error) {
	type job struct{ match, seed int }
	var matches []Match
	var jobs []job
	for i := range t.Scenarios {
		for j := range t.Makers {
			matches = append(matches, Match{Scenario: &t.Scenarios[i], Maker: &t.Makers[j], Figures: make([]*Figures, len(t.Seeds))})
			for k := range t.Seeds {
				jobs = append(jobs, job{len(matches) - 1, k})
			}
		}
	}
	// The longest first, so that the last ones end together.
	slices.SortStableFunc(jobs, func(a, b job) int {
		x, y := matches[a.match].Scenario.Calls(), matches[b.match].Scenario.Calls()
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	err := bubble.Each(ctx, t.Parallel, len(jobs), func(i int, stop *atomic.Bool) error {
		m, k := &matches[jobs[i].match], jobs[i].seed
		f, err := Simulate(m.Scenario, m.Maker, t.Seeds[k], Options{Course: t.Course && k == 0, Stop: stop, Calls: &t.calls})
		if err != nil {
			return fmt.Errorf("%s in %s with seed %d: %w", m.Maker.Name, m.Scenario.ID, t.Seeds[k], err)
		}
		m.Figures[k] = f // nobody else has this place
		t.finished.Add(1)
		return nil
	})
	return matches, err
}
