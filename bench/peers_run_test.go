package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/limiter"
)

// Answers alone have a latency; a refusal by any limiter is one, however it is wrapped; and of the
// requests, those of the warm-up are not counted, and all but a call's first are extra.
func TestPeerRow(t *testing.T) {
	p := &peerRun{samples: []sample{
		{latency: 30 * time.Millisecond},
		{latency: 31 * time.Millisecond},
		{latency: time.Millisecond, err: fmt.Errorf("GET: %w", limiter.ErrLimitExceeded)},
		{latency: time.Millisecond, err: fmt.Errorf("GET: %w", adaptivelimiter.ErrExceeded)},
		{latency: time.Millisecond, err: errors.New("boom")},
		{latency: time.Millisecond, err: errors.New("another")},
	}}
	const end = 5
	r := p.row(&downstream.Report{Visits: []downstream.Visit{
		{Call: warmUpCalls, Attempt: 1}, {Call: warmUpCalls, Attempt: 2},
		{Call: 0, Attempt: 1}, {Call: 0, Attempt: 2}, {Call: 1, Attempt: 1}, {Call: 1, Attempt: 2}, {Call: 1, Attempt: 3}, {Call: 2, Attempt: 1},
		{Call: end - 1, Attempt: 1}, {Call: end, Attempt: 1}, // of a block that not all have finished
	}}, end)
	if r.Calls != 6 || r.Rejected != 2 || r.Errors != 2 || r.FirstError != "boom" || int(r.P50) != 30 || int(r.P999) != 31 {
		t.Errorf("calls: %+v", r)
	}
	if r.Requests != 7 || r.ExtraRequests != 3 || r.ExtraPercent != 75 {
		t.Errorf("requests: %+v", r)
	}
	if r.failedPercent() != share(4, 6) {
		t.Errorf("%v %% of the calls failed", r.failedPercent())
	}
}
