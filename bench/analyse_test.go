package main

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

// What the check makes of two attempts under a limit of two, whose visits lie within their
// permits, and of each way in which something is wrong.
func TestMeasurementLaw(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*measurement)
		want   law // without the numbers of events and grants
	}{
		{"all is well", func(*measurement) {}, law{Enforced: true}},
		{"losers are cancelled", func(m *measurement) { m.experiment.Covered = false }, law{}},
		{"a permit comes back too early", func(m *measurement) { m.attempts[1].Ended = m.attempts[1].Ended.Add(-2 * time.Millisecond) }, law{Enforced: true, Excess: 1, Violations: 1}},
		{"a permit of the warm-up comes back too early", func(m *measurement) {
			m.begin = m.begin.Add(time.Hour)
			m.attempts[0].Ended = m.attempts[0].Ended.Add(-2 * time.Millisecond)
		}, law{Enforced: true, Excess: 1, Violations: 1}},
		{"a visit has no permit", func(m *measurement) { m.attempts = m.attempts[:1] }, law{Enforced: true, Excess: 1, Violations: 2}},
		{"a grant is above the limit", func(m *measurement) { m.attempts[0].Grant.InFlight = 3 }, law{Enforced: true, GrantsAbove: 1}},
		{"the limit was never so high", func(m *measurement) { m.maxLimit = 1 }, law{Enforced: true, PeakAboveLimit: 1}},
		{"the clock was set on", func(m *measurement) { m.clockStep = 2 * time.Millisecond }, law{Enforced: true, ClockStepped: true}},
		{"the clock was set back", func(m *measurement) { m.clockStep = -2 * time.Millisecond }, law{Enforced: true, ClockStepped: true}},
		{"the clock is as exact as a clock is", func(m *measurement) { m.clockStep = -time.Microsecond }, law{Enforced: true}},
	} {
		begin := time.Now()
		m := &measurement{experiment: experiment{Covered: true}, begin: begin, maxLimit: 2, report: &downstream.Report{}}
		for i := range 2 {
			// The first from 0 to 20 ms, and the second from 10 to 30 ms.
			at := begin.Add(time.Duration(i) * 10 * time.Millisecond)
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
		if got.Grants != len(m.attempts) || got.Events != 2*(len(m.attempts)+len(m.report.Visits)) {
			t.Errorf("%s: %d grants and %d events were looked at", tt.name, got.Grants, got.Events)
		}
		got.Grants, got.Events = 0, 0
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
