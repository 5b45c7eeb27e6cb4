package arena

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
	var (
		workers sync.WaitGroup
		next    atomic.Int64
		stop    atomic.Bool // a channel of ctx would not belong to the bubbles
		once    sync.Once
		failure error
	)
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	for range max(t.Parallel, 1) {
		workers.Go(func() {
			for !stop.Load() {
				n := int(next.Add(1)) - 1
				if n >= len(jobs) {
					return
				}
				m, k := &matches[jobs[n].match], jobs[n].seed
				f, err := Simulate(m.Scenario, m.Maker, t.Seeds[k], Options{Course: t.Course && k == 0, Stop: &stop, Calls: &t.calls})
				if err != nil {
					once.Do(func() {
						failure = fmt.Errorf("%s in %s with seed %d: %w", m.Maker.Name, m.Scenario.ID, t.Seeds[k], err)
					})
					stop.Store(true)
					return
				}
				m.Figures[k] = f // nobody else has this place
				t.finished.Add(1)
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return matches, ctx.Err()
	}
	return matches, failure
}
