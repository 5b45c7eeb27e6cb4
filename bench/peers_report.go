package main

import (
	"fmt"
	"time"
)

// peersReport is everything that peers has found, and what its -json writes. Fields may be added
// to it and to what it holds; those that are there keep their meaning.
type peersReport struct {
	runInfo
	Settings  peersSettings   `json:"settings"`
	Workloads []peersWorkload `json:"workloads"`
	// Micro is empty if the micro-benchmarks were not run.
	Micro []microRow `json:"micro"`
}

// peersWorkload is a workload, and what came of it.
type peersWorkload struct {
	workload
	Rows []peerRow `json:"rows"`
	// Compared is ours beside each of the others, and the defaults beside no hedging.
	Compared []comparison `json:"compared"`
}

// peerRow is the figures of one contender. Times are in milliseconds; latencies are those of the
// calls that succeeded.
type peerRow struct {
	Contender contender `json:"contender"`

	Calls      int     `json:"calls"`
	Rejected   int     `json:"rejected"`
	Errors     int     `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	P999       float64 `json:"p99_9_ms"`
	// BestP99 is what one hedge after a fixed delay comes to with as many extra requests, if
	// nothing but the service takes time. It is 0 where requests wait for a worker.
	BestP99 float64 `json:"best_p99_ms"`

	// What the server saw. Extra are those that were not a call's first.
	Requests      int     `json:"requests"`
	ExtraRequests int     `json:"extra_requests"`
	ExtraPercent  float64 `json:"extra_percent"`
}

func (r *peerRow) failedPercent() float64 { return share(r.Rejected+r.Errors, max(r.Calls, 1)) }

// comparison is a row of this module beside another one.
type comparison struct {
	Own  string `json:"own"`
	Name string `json:"name"`
	// P99Ratio is the p99 of Own as a share of that of the other.
	P99Ratio float64 `json:"p99_ratio"`
	// MoreExtra and MoreFailed are how many more requests and failures Own had, in per cent of
	// the calls; below 0 they are fewer.
	MoreExtra  float64 `json:"more_extra_percent"`
	MoreFailed float64 `json:"more_failed_percent"`
	Standing   string  `json:"standing"`
	// Target tells that there is a target, and Met that it is met. There is none beside a row whose
	// tail is shorter for more requests: that can be had by all.
	Target bool `json:"target"`
	Met    bool `json:"met"`
}

// Values of Standing.
const (
	standsAhead  = "ahead"   // in the tail at no more load and no more failures, or in those with no longer a tail
	standsLevel  = "level"   // within the tolerances, in all three
	standsTrades = "trades"  // better in one, worse in another
	standsBehind = "behind"  // worse in one or more, better in none
	standsUnlike = "unknown" // a percentile is missing
)

const (
	// sameP99, sameExtra and sameFailed are as near as two runs of the same contender come to each
	// other on a quiet machine: what differs by less is the same.
	sameP99    = 0.03
	sameExtra  = 0.5 // points
	sameFailed = targetFailed
)

// judge compares ours with each of the others, and the defaults with the plain client.
//
// There are targets for the published workload: the plain client must be beaten as in the main
// job, and none of the others may be better at anything, but for a tail that it pays for with more
// requests than ours sends. Where workers are few a limit may refuse what others let wait, and what
// that is worth is the reader's choice. The defaults must do no harm in either: neither the tail
// nor the failures may be more than without them.
func (w *peersWorkload) judge() {
	w.Compared = []comparison{}
	own, plain := w.find(peerOurs), w.find(peerPlain)
	for i := range w.Rows {
		x := &w.Rows[i]
		if own == nil || x == own || x.Contender.Name == peerDefault {
			continue
		}
		c := compare(own, x)
		paid := c.P99Ratio > 1+sameP99 && c.MoreExtra < -sameExtra && c.MoreFailed <= sameFailed
		c.Target = w.Name == workPublished && !paid
		switch {
		case !c.Target:
		case x == plain:
			c.Met = c.P99Ratio > 0 && c.P99Ratio <= targetRatio && c.MoreExtra <= targetExtra && c.MoreFailed <= targetFailed
		default:
			c.Met = c.Standing == standsAhead || c.Standing == standsLevel
		}
		w.Compared = append(w.Compared, c)
	}
	if defaults := w.find(peerDefault); defaults != nil && plain != nil {
		c := compare(defaults, plain)
		c.Target = true
		c.Met = c.P99Ratio > 0 && c.P99Ratio <= 1+sameP99 && c.MoreFailed <= sameFailed
		w.Compared = append(w.Compared, c)
	}
}

func compare(own, other *peerRow) comparison {
	c := comparison{
		Own: own.Contender.Name, Name: other.Contender.Name,
		MoreExtra: own.ExtraPercent - other.ExtraPercent, MoreFailed: own.failedPercent() - other.failedPercent(),
	}
	if own.P99 > 0 && other.P99 > 0 {
		c.P99Ratio = own.P99 / other.P99
	}
	c.Standing = c.standing()
	return c
}

func (w *peersWorkload) find(name string) *peerRow {
	for i := range w.Rows {
		if w.Rows[i].Contender.Name == name {
			return &w.Rows[i]
		}
	}
	return nil
}

func (c *comparison) standing() string {
	if c.P99Ratio == 0 {
		return standsUnlike
	}
	better := c.P99Ratio < 1-sameP99 || c.MoreExtra < -sameExtra || c.MoreFailed < -sameFailed
	worse := c.P99Ratio > 1+sameP99 || c.MoreExtra > sameExtra || c.MoreFailed > sameFailed
	switch {
	case better && worse:
		return standsTrades
	case better:
		return standsAhead
	case worse:
		return standsBehind
	}
	return standsLevel
}

// met tells that all targets are met.
func (r *peersReport) met() bool {
	for i := range r.Workloads {
		for _, c := range r.Workloads[i].Compared {
			if c.Target && !c.Met {
				return false
			}
		}
	}
	return true
}

// line tells a comparison in words.
func (c *comparison) line() string {
	return fmt.Sprintf("%s and %s: p99 %.2f ×, extra requests %+.1f points, failures %+.1f points: %s",
		c.Own, c.Name, c.P99Ratio, c.MoreExtra, c.MoreFailed, c.Standing+pick(c.Target, ", target "+pick(c.Met, "met", "MISSED"), ""))
}

func newPeersReport(o peersOptions, now time.Time) *peersReport {
	return &peersReport{runInfo: newRunInfo(now), Settings: o.settings, Workloads: []peersWorkload{}, Micro: []microRow{}}
}
