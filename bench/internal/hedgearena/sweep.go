package hedgearena

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// Sweep is every policy behind every limit in every scenario at every load, with every
// seed.
type Sweep struct {
	Scenarios []Scenario
	// Loads replace those of the scenarios, unless it is nil.
	Loads    []float64
	Limits   []Limit
	Modes    []Mode
	Policies []Policy
	Seeds    []uint64
	// Parallel is how many simulations run at the same time. It changes nothing but
	// how long it takes.
	Parallel int
	// Course keeps how the first seed went over time.
	Course bool

	calls    atomic.Int64
	finished atomic.Int64
}

// Row is one case with all seeds.
type Row struct {
	Case
	// Base is the row that this one is compared with: the same calls behind the same limit,
	// without hedging, or with a placebo behind Gradient. It is nil for no hedging.
	Base *Row
	// Figures are by seed. Those of a run that did not finish are nil.
	Figures []*Figures
}

// Rows returns the rows in the order of scenarios, loads, limits, modes and policies,
// without figures. What the policies are compared with is among them, asked for or
// not, and so is no limit at all if a policy knows none.
func (s *Sweep) Rows() []*Row {
	var rows []*Row
	for i := range s.Scenarios {
		x := &s.Scenarios[i]
		loads := x.Loads
		if s.Loads != nil {
			loads = s.Loads
		}
		for _, load := range loads {
			for _, limit := range Limits() {
				rows = append(rows, s.block(Case{Scenario: x, Load: load, Limit: limit})...)
			}
		}
	}
	return rows
}

// block is the rows of a limit.
func (s *Sweep) block(c Case) []*Row {
	asked := slices.Contains(s.Limits, c.Limit)
	modes := s.Modes
	if c.Limit.None() {
		modes = []Mode{NoMode}
	}
	all := Policies()
	var rows []*Row
	for _, mode := range modes {
		c.Mode = mode
		var base, control *Row
		var block []*Row
		used := false
		for i := range all {
			p := &all[i]
			picked := slices.ContainsFunc(s.Policies, func(q Policy) bool { return q.Name == p.Name })
			switch {
			case p.Alone:
				picked = picked && c.Limit.None()
			case p.Limited:
				picked = picked && asked && !c.Limit.None()
			default:
				picked = picked && asked
			}
			used = used || picked
			compared := p.Name == NoneName || p.Name == PlaceboName && c.Limit.Gradient
			if !picked && !compared {
				continue
			}
			r := &Row{Case: c, Base: base, Figures: make([]*Figures, len(s.Seeds))}
			r.Policy = p
			if p.Name == OurName && c.Limit.Gradient {
				r.Base = control
			}
			switch p.Name {
			case NoneName:
				base = r
			case PlaceboName:
				control = r
			}
			block = append(block, r)
		}
		if used {
			rows = append(rows, block...)
		}
	}
	return rows
}

// Progress returns how many simulations of the rows have finished, and which share of
// all calls has come. It may be called at any time.
func (s *Sweep) Progress(rows []*Row) (runs int, share float64) {
	all := 0.0
	for _, r := range rows {
		all += r.Scenario.Calls(r.Load) * float64(len(r.Figures))
	}
	return int(s.finished.Load()), min(1, float64(s.calls.Load())/max(all, 1))
}

// Run fills the rows in, one after the other. If ctx ends before or a simulation fails it
// returns the error, and what had finished by then is in the rows.
func (s *Sweep) Run(ctx context.Context, rows []*Row) error {
	n := len(s.Seeds)
	return bubble.Each(ctx, s.Parallel, len(rows)*n, func(i int, stop *atomic.Bool) error {
		r, k := rows[i/n], i%n
		f, err := Simulate(r.Case, s.Seeds[k], Options{Course: s.Course && k == 0, Stop: stop, Calls: &s.calls})
		if err != nil {
			return fmt.Errorf("%s with seed %d: %w", r.Case, s.Seeds[k], err)
		}
		r.Figures[k] = f // nobody else has this place
		s.finished.Add(1)
		return nil
	})
}

// Finished returns the figures of the seeds that finished.
func (r *Row) Finished() []*Figures {
	return slices.DeleteFunc(slices.Clone(r.Figures), func(f *Figures) bool { return f == nil })
}

// Complete reports whether all seeds finished.
func (r *Row) Complete() bool { return !slices.Contains(r.Figures, nil) }
