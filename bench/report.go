package main

import "time"

// report is everything that a run has found, and what -json writes. Fields may be added to it
// and to what it holds; those that are there keep their meaning.
type report struct {
	runInfo
	Settings settings `json:"settings"`
	Rounds   []round  `json:"rounds"`
}

func newReport(o options, now time.Time) *report {
	return &report{runInfo: newRunInfo(now), Settings: o.settings}
}

// rows counts the rows that were finished.
func (r *report) rows() int {
	n := 0
	for i := range r.Rounds {
		n += len(r.Rounds[i].Rows)
	}
	return n
}

// round is all experiments over one protocol, under one mode of cancellation.
type round struct {
	Protocol string  `json:"protocol"`
	Cancel   string  `json:"cancel"`
	Rows     []row   `json:"rows"`
	Verdict  verdict `json:"verdict"`
}

// row is the figures of one experiment. Times are in milliseconds.
type row struct {
	Experiment experiment `json:"experiment"`

	// What callers saw. Latencies are those of the calls that succeeded.
	Calls      int     `json:"calls"`
	Rejected   int     `json:"rejected"`
	Errors     int     `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	P999       float64 `json:"p99_9_ms"`
	Max        float64 `json:"max_ms"`

	// How the calls were hedged. DelayMs is the delay at the end, 0 if there is
	// none. Losers are attempts that ran on when their call was decided.
	DelayMs      float64 `json:"hedge_delay_ms"`
	Hedges       int     `json:"hedges"`
	HedgesWon    int     `json:"hedges_won"`
	Losers       int     `json:"losers"`
	CancelLagP50 float64 `json:"cancel_lag_p50_ms"`
	CancelLagP99 float64 `json:"cancel_lag_p99_ms"`

	// What the client held.
	LimitFinal   int `json:"limit_final"`
	LimitMax     int `json:"limit_max"`
	PeakPermits  int `json:"permits_peak"`
	OverhangPeak int `json:"overhang_peak"`

	// What the server saw. Extra are those that were not a call's first.
	Requests      int     `json:"requests"`
	ExtraRequests int     `json:"extra_requests"`
	ExtraPercent  float64 `json:"extra_percent"`
	ServerPeak    int     `json:"server_peak"`
	CPUKnown      bool    `json:"cpu_known"`
	CPUSeconds    float64 `json:"cpu_seconds"`
	CPUMsPer1000  float64 `json:"cpu_ms_per_1000_calls"`
	MemoryMB      float64 `json:"memory_mb"`
	MemorySource  string  `json:"memory_source"`

	// GeneratorLateP99 is how late calls were started. If it is not small, the
	// machine was too busy to measure on.
	GeneratorLateP99 float64 `json:"generator_late_p99_ms"`

	Law law `json:"law"`

	Course rowCourse `json:"course"`
}

// law is the proof that the limit held, over the warm-up and the measured calls. It goes in two
// steps: in the client, no more attempts are under way than the ledger has permits out (Looks, Bare,
// BareMost); and the server counts no more than those attempts (Events, Excess, Violations).
type law struct {
	// Looks is how often the attempts under way, counted below the middleware, were held against
	// the permits that the limiter had out: whenever one began or ended, in all rows. Bare counts the
	// looks that found fewer permits, and BareMost is how many fewer at most. Both must be 0.
	Looks    int `json:"looks"`
	Bare     int `json:"bare_looks"`
	BareMost int `json:"bare_most"`

	// Enforced tells that Excess must be 0, because no attempt was cancelled.
	Enforced bool `json:"enforced"`
	// Events is how many begins and ends, in the server and in the client, were swept over.
	Events int `json:"events"`
	// Excess is by how much the server's own count exceeded the attempts under way in the
	// client at that instant, at most; Violations counts the events after which it did.
	Excess     int `json:"excess"`
	Violations int `json:"violations"`
	// Grants is how many permits were granted, GrantsAbove those that found more
	// in flight than the limit in force.
	Grants      int `json:"grants"`
	GrantsAbove int `json:"grants_above_limit"`
	// PeakAboveLimit is by how much the attempts under way exceeded the highest limit.
	PeakAboveLimit int `json:"peak_above_limit"`
	// ClockStepped tells that the wall clock was changed, so that the two logs
	// cannot be compared.
	ClockStepped bool `json:"clock_stepped"`
}
