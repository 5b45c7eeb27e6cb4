package main

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/bench/internal/sweep"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

// What the check makes of two attempts under a limit of two, which lie within their permits as their
// visits lie within them, and of each way in which something is wrong.
func TestMeasurementLaw(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*measurement)
		want   law // without the numbers of events and grants
	}{
		{"all is well", func(*measurement) {}, law{Enforced: true}},
		{"losers are cancelled", func(m *measurement) { m.experiment.Covered = false }, law{}},
		{"an attempt ends before its visit", func(m *measurement) { m.underWay.attempts[1].End -= 2e6 }, law{Enforced: true, Excess: 1, Violations: 1}},
		{"an attempt of the warm-up ends before its visit", func(m *measurement) {
			m.begin = m.begin.Add(time.Hour)
			m.underWay.attempts[0].End -= 2e6
		}, law{Enforced: true, Excess: 1, Violations: 1}},
		{"a visit has no attempt", func(m *measurement) { m.underWay.attempts = m.underWay.attempts[:1] }, law{Enforced: true, Excess: 1, Violations: 2}},
		{"a permit comes back too early", func(m *measurement) { m.underWay.looks, m.underWay.bare, m.underWay.most = 9, 2, 1 }, law{Looks: 9, Bare: 2, BareMost: 1, Enforced: true}},
		{"a grant is above the limit", func(m *measurement) { m.attempts[0].Grant.InFlight = 3 }, law{Enforced: true, GrantsAbove: 1}},
		{"the limit was never so high", func(m *measurement) { m.maxLimit = 1 }, law{Enforced: true, PeakAboveLimit: 1}},
		// A permit is stamped before it is taken, which may be when the one before it comes back.
		{"stamps of permits overlap", func(m *measurement) {
			m.maxLimit = 1
			m.underWay.attempts[1].Start += 10e6
			m.underWay.attempts[1].End += 10e6
			m.report.Visits = m.report.Visits[:1]
		}, law{Enforced: true}},
		{"the clock was set on", func(m *measurement) { m.clockStep = 2 * time.Millisecond }, law{Enforced: true, ClockStepped: true}},
		{"the clock was set back", func(m *measurement) { m.clockStep = -2 * time.Millisecond }, law{Enforced: true, ClockStepped: true}},
		{"the clock is as exact as a clock is", func(m *measurement) { m.clockStep = -time.Microsecond }, law{Enforced: true}},
	} {
		begin := time.Now()
		m := &measurement{experiment: experiment{Covered: true}, begin: begin, maxLimit: 2, report: &downstream.Report{}}
		for i := range 2 {
			// The first permit from 0 to 20 ms, and the second from 10 to 30 ms.
			at := begin.Add(time.Duration(i) * 10 * time.Millisecond)
			m.underWay.attempts = append(m.underWay.attempts, sweep.Interval{
				Start: at.Add(time.Millisecond / 2).UnixNano(), End: at.Add(39 * time.Millisecond / 2).UnixNano(),
			})
			m.attempts = append(m.attempts, hedgedlimit.AttemptEvent{
				Number: 1, Grant: permit.Grant{InFlight: i + 1, Limit: 2}, Granted: at, Ended: at.Add(20 * time.Millisecond),
			})
			m.report.Visits = append(m.report.Visits, downstream.Visit{
				Call: uint64(i), Attempt: 1, Enter: at.Add(time.Millisecond).UnixNano(), Exit: at.Add(19 * time.Millisecond).UnixNano(),
			})
		}
		tt.change(m)
		var r row
		m.check(&r)
		got := r.Law
		if got.Grants != len(m.attempts) || got.Events != 2*(len(m.underWay.attempts)+len(m.report.Visits)) {
			t.Errorf("%s: %d grants and %d events were looked at", tt.name, got.Grants, got.Events)
		}
		got.Grants, got.Events = 0, 0
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
