package storm

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// Sweep is rows that are run.
type Sweep struct {
	Rows []Row
	// Parallel is how many of them run at the same time. It changes nothing but how long
	// it takes.
	Parallel int
	// Figures are those of the rows, nil where one did not finish.
	Figures []*Figures

	ticks    atomic.Int64
	finished atomic.Int64
}

// Run runs the rows. If it fails, or ctx ends, the figures of those that are over are there.
func (s *Sweep) Run(ctx context.Context) error {
	s.Figures = make([]*Figures, len(s.Rows))
	return bubble.Each(ctx, s.Parallel, len(s.Rows), func(i int, stop *atomic.Bool) error {
		f, err := Simulate(&s.Rows[i].Case, stop, &s.ticks)
		if err == nil {
			s.Figures[i] = f
			s.finished.Add(1)
		}
		return err
	})
}

// Progress tells how many rows are over, and which share of all ticks. It may be called while
// they run.
func (s *Sweep) Progress() (rows int, share float64) {
	all := 0
	for i := range s.Rows {
		all += s.Rows[i].Length
	}
	return int(s.finished.Load()), float64(s.ticks.Load()) / float64(max(all, 1))
}
