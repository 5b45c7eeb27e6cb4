package main

import (
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/bench/internal/sweep"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// maxClockStep tells a step of the wall clock from the rounding of an honest one.
const maxClockStep = time.Millisecond

// row makes the figures of a row out of what was measured.
func (m *measurement) row() row {
	r := row{Experiment: m.experiment}
	m.countCalls(&r)
	m.countAttempts(&r)
	m.countRequests(&r)
	m.check(&r)
	r.LimitFinal, r.LimitMax = m.final.limiter.Ledger.Limit, m.maxLimit
	if h := m.final.hedging; h.DelayKnown && m.experiment.Name != rowNone {
		r.DelayMs = milliseconds(h.Delay)
	}
	u := m.report.Usage
	if u.CPUKnown {
		r.CPUSeconds = (u.CPU - m.before.CPU).Seconds()
		r.CPUMsPer1000 = 1000 * 1000 * r.CPUSeconds / float64(r.Calls)
	}
	r.CPUKnown = u.CPUKnown
	r.MemoryMB = float64(u.Memory) / 1e6
	r.MemorySource = u.MemorySource
	r.Course = m.course()
	return r
}

// countCalls looks at what callers saw.
func (m *measurement) countCalls(r *row) {
	latency, late := newHistogram(), newHistogram()
	r.Calls = len(m.samples)
	for _, s := range m.samples {
		record(late, s.late)
		switch {
		case s.err == nil:
			record(latency, s.latency)
		case errors.Is(s.err, limiter.ErrLimitExceeded):
			r.Rejected++
		default:
			r.Errors++
			if r.FirstError == "" {
				r.FirstError = s.err.Error()
			}
		}
	}
	r.P50, r.P95 = quantile(latency, 50), quantile(latency, 95)
	r.P99, r.P999 = quantile(latency, 99), quantile(latency, 99.9)
	r.Max = float64(latency.Max()) / 1000
	r.GeneratorLateP99 = quantile(late, 99)
}

// countAttempts looks at the permits and what became of those who held them.
func (m *measurement) countAttempts(r *row) {
	lag := newHistogram()
	var held, overhang []sweep.Interval
	for i := range m.attempts {
		a := &m.attempts[i]
		if a.Granted.Before(m.begin) {
			continue // warm-up: all had ended before measuring began
		}
		held = append(held, hold(a))
		if a.Kind != limiter.Primary {
			r.Hedges++
			if a.Won {
				r.HedgesWon++
			}
		}
		if a.Lost {
			r.Losers++
			record(lag, a.Ended.Sub(a.Decided))
			overhang = append(overhang, sweep.Interval{Start: a.Decided.UnixNano(), End: a.Ended.UnixNano()})
		}
	}
	r.PeakPermits = sweep.Peak(held)
	r.OverhangPeak = sweep.Peak(overhang)
	r.CancelLagP50, r.CancelLagP99 = quantile(lag, 50), quantile(lag, 99)
}

// countRequests looks at what the server saw.
func (m *measurement) countRequests(r *row) {
	var inside []sweep.Interval
	for _, v := range m.report.Visits {
		if v.Call < m.firstCall {
			continue
		}
		r.Requests++
		if v.Attempt > 1 {
			r.ExtraRequests++
		}
		inside = append(inside, sweep.Interval{Start: v.Enter, End: v.Exit})
	}
	if first := r.Requests - r.ExtraRequests; first > 0 {
		r.ExtraPercent = 100 * float64(r.ExtraRequests) / float64(first)
	}
	r.ServerPeak = sweep.Peak(inside)
}

// check holds all logs against the laws, the warm-up included.
func (m *measurement) check(r *row) {
	l := &r.Law
	for i := range m.attempts {
		a := &m.attempts[i]
		l.Grants++
		if a.Grant.InFlight > a.Grant.Limit {
			l.GrantsAbove++
		}
	}
	inside := make([]sweep.Interval, 0, len(m.report.Visits))
	for _, v := range m.report.Visits {
		inside = append(inside, sweep.Interval{Start: v.Enter, End: v.Exit})
	}
	w := &m.underWay
	l.Looks, l.Bare, l.BareMost = w.looks, w.bare, w.most
	f := sweep.Compare(w.attempts, inside)
	l.Enforced = m.experiment.Covered
	l.Events, l.Excess, l.Violations = f.Events, f.Excess, f.Violations
	// By what was under way: it begins after a permit was taken, and ends before that is released.
	l.PeakAboveLimit = max(0, sweep.Peak(w.attempts)-m.maxLimit)
	l.ClockStepped = m.clockStep.Abs() > maxClockStep
}

// hold is about the time for which an attempt held its permit, by the word of the hedger. It is
// for figures and no proof: a permit is taken and released a little after its stamps, so of two
// that follow each other under a full limit both may seem to be out.
func hold(a *hedgedlimit.AttemptEvent) sweep.Interval {
	return sweep.Interval{Start: a.Granted.UnixNano(), End: a.Ended.UnixNano()}
}

// newHistogram returns a histogram of microseconds with an error of 0.1 %.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Minute.Microseconds(), 3)
}

// record enters a time, the longest possible one if it is longer.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	d = min(max(d, time.Microsecond), time.Minute)
	_ = h.RecordValue(d.Microseconds()) // cannot fail within the bounds
}

// quantile returns a percentile in milliseconds, and 0 if there is no sample.
func quantile(h *hdrhistogram.Histogram, percent float64) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return float64(h.ValueAtQuantile(percent)) / 1000
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
