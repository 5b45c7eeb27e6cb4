package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// measurement is what one row has brought in, before anything is made of it.
type measurement struct {
	experiment experiment
	firstCall  uint64 // calls before it were warm-up
	begin, end time.Time
	samples    []sample
	attempts   []hedgedlimit.AttemptEvent // of the warm-up too
	underWay   underWayLog                // of the warm-up too
	maxLimit   int
	final      clientStats      // when the last measured call had ended
	before     downstream.Usage // when measuring began
	report     *downstream.Report
	// clockStep is how far the wall clock went astray from the monotonic one
	// during the row. The logs can be compared only if it is next to nothing.
	clockStep time.Duration
}

// runRow runs one experiment against a service of its own. On error, that of ctx
// included, nothing of it is left.
func runRow(ctx context.Context, e experiment, s settings, v variant, p *progress) (row, error) {
	m, err := measure(ctx, e, s, v, p)
	switch {
	case ctx.Err() != nil:
		return row{}, ctx.Err()
	case err != nil:
		return row{}, fmt.Errorf("row %q: %w", e.Name, err)
	}
	return m.row(), nil
}

func measure(ctx context.Context, e experiment, s settings, v variant, p *progress) (m *measurement, err error) {
	start := time.Now()
	service, err := downstream.Start(ctx, s.service(v))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	rec := &recorder{}
	c, err := newClient(e, rec, v.protocol, service.Addresses(), s.Seed)
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		if !closed {
			// A row that failed waits for nothing, but its connections must not stay.
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_ = c.close(ended)
		}
	}()

	l := load{rate: s.Rate, seed: s.Seed, do: c.do}
	warm := p.phase("warm-up", s.WarmUp)
	_, err = l.run(ctx, 0, s.WarmUp, &warm.done)
	warm.end()
	if err != nil {
		return nil, err
	}
	// The losers of the warm-up must not be seen in the figures.
	if err := quiet(ctx, c); err != nil {
		return nil, err
	}

	m = &measurement{experiment: e, firstCall: uint64(s.WarmUp)}
	if m.before, err = service.Mark(); err != nil {
		return nil, err
	}
	phase := p.phase("measure", s.calls())
	m.begin = time.Now()
	m.samples, err = l.run(ctx, m.firstCall, s.calls(), &phase.done)
	m.end = time.Now()
	phase.end()
	if err != nil {
		return nil, err
	}
	m.final = c.stats()

	closed = true
	if err := closeInTime(ctx, c); err != nil {
		return nil, fmt.Errorf("permits are still out after the last call: %w", err)
	}
	started := 0
	for _, n := range c.stats().hedging.Started {
		started += int(n)
	}
	if m.attempts, m.maxLimit, err = rec.wait(ctx, started); err != nil {
		return nil, err
	}
	m.underWay = rec.underWay.result()
	if m.report, err = service.Report(); err != nil {
		return nil, err
	}
	m.clockStep = clockStep(start, time.Now())
	return m, nil
}

// closeInTime closes a client, and gives its work as long as it may take.
func closeInTime(ctx context.Context, c client) error {
	ctx, cancel := context.WithTimeout(ctx, drainBound+callTimeout)
	defer cancel()
	return c.close(ctx)
}

// clockStep returns by how much the wall clock and the monotonic clock disagree
// about the time between two readings.
func clockStep(start, end time.Time) time.Duration {
	return end.Round(0).Sub(start.Round(0)) - end.Sub(start)
}
