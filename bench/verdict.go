package main

import (
	"cmp"
	"fmt"
)

const (
	// The target: the tail is cut in half at the price of an eighth more requests.
	targetRatio = 0.5
	targetExtra = 12 // per cent
	// targetFailed is how many more calls in a hundred may be refused or fail: a
	// tail is easily cut by turning callers away.
	targetFailed = 0.1

	// mostFailed is how many calls in a hundred may bring nothing before the tail of the others
	// says nothing: they are the lucky ones.
	mostFailed = 10
	// lateShare is the part of a p99 that the lateness of the generator may be at most. Beyond,
	// it was this machine that was measured.
	lateShare = 0.2

	// maxLate is how late the generator may be in one call of a hundred before
	// the figures are called in doubt.
	maxLate = 3 // ms
)

// verdict is what comes of the rows of one round.
type verdict struct {
	// P99Ratio is the p99 of the adaptive row as a share of that without hedging,
	// and 0 if one of the two is missing, or nobody was answered in it.
	P99Ratio     float64 `json:"p99_ratio"`
	ExtraPercent float64 `json:"extra_percent"`
	// MoreFailed is how many more calls in a hundred were refused or failed.
	MoreFailed float64 `json:"more_failed_percent"`
	// NotJudged says why the figures cannot tell whether the target was met, and is empty if they
	// can. TargetMet is false then.
	NotJudged string `json:"not_judged"`
	TargetMet bool   `json:"target_met"`
	Calls     int    `json:"calls"`
	Errors    int    `json:"errors"`
	Rejected  int    `json:"rejected"`
	// Broken names each law that did not hold, and is empty if all did.
	Broken []string `json:"broken"`
	// Notes are doubts about the figures.
	Notes []string `json:"notes"`
}

// failedPercent is the share of the calls that brought the caller nothing. Their
// latency is in no percentile.
func (r *row) failedPercent() float64 { return share(r.Rejected+r.Errors, max(r.Calls, 1)) }

// find returns the row of that name, or nil.
func (r *round) find(name string) *row {
	for i := range r.Rows {
		if r.Rows[i].Experiment.Name == name {
			return &r.Rows[i]
		}
	}
	return nil
}

// compare judges the target by two rows, either of which may be nil.
func (v *verdict) compare(none, adaptive *row) {
	if none == nil || adaptive == nil {
		v.NotJudged = "a row is missing"
		return
	}
	if none.P99 > 0 {
		v.P99Ratio = adaptive.P99 / none.P99 // 0 if nobody was answered
	}
	v.ExtraPercent = adaptive.ExtraPercent
	v.MoreFailed = adaptive.failedPercent() - none.failedPercent()
	v.NotJudged = cmp.Or(none.late(), adaptive.late())
	if v.NotJudged == "" && v.MoreFailed <= targetFailed { // one that fails more has missed, whatever its tail
		v.NotJudged = cmp.Or(none.failing(), adaptive.failing())
	}
	met := v.P99Ratio <= targetRatio && v.ExtraPercent <= targetExtra && v.MoreFailed <= targetFailed
	v.TargetMet = met && v.NotJudged == ""
}

// late says that the generator was too late for the figures of the row, and is empty if it was not,
// or nobody was answered.
func (r *row) late() string {
	if r.P99 == 0 || r.GeneratorLateP99 <= lateShare*r.P99 {
		return ""
	}
	return fmt.Sprintf("%s: the generator was late by %.1f ms in 1 %% of the calls, where p99 is %.1f ms", r.Experiment.Name, r.GeneratorLateP99, r.P99)
}

// failing says that too many calls of the row brought nothing, and is empty if they did not.
func (r *row) failing() string {
	if r.failedPercent() <= mostFailed {
		return ""
	}
	return fmt.Sprintf("%s: %.1f %% of the calls were refused or failed", r.Experiment.Name, r.failedPercent())
}

// judge fills in the verdict.
func (r *round) judge() {
	v := verdict{Broken: []string{}, Notes: []string{}}
	v.compare(r.find(rowNone), r.find(rowAdaptive))
	for i := range r.Rows {
		x := &r.Rows[i]
		v.Calls += x.Calls
		v.Errors += x.Errors
		v.Rejected += x.Rejected
		name, l := x.Experiment.Name, x.Law
		if l.Bare > 0 {
			v.Broken = append(v.Broken, fmt.Sprintf("%s: attempts were under way without a permit, up to %d at once, at %d of %d looks", name, l.BareMost, l.Bare, l.Looks))
		}
		if l.Enforced && l.Excess > 0 {
			v.Broken = append(v.Broken, fmt.Sprintf("%s: the server's count exceeded the attempts under way by up to %d, after %d of %d events", name, l.Excess, l.Violations, l.Events))
		}
		if l.Enforced && l.ClockStepped {
			v.Broken = append(v.Broken, fmt.Sprintf("%s: the wall clock was changed during the row, so nothing is proven; run again", name))
		}
		if l.GrantsAbove > 0 {
			v.Broken = append(v.Broken, fmt.Sprintf("%s: %d of %d grants were above the limit in force", name, l.GrantsAbove, l.Grants))
		}
		if l.PeakAboveLimit > 0 {
			v.Broken = append(v.Broken, fmt.Sprintf("%s: the attempts under way exceeded the highest limit %d by %d", name, x.LimitMax, l.PeakAboveLimit))
		}
		if x.failedPercent() > 1 {
			v.Notes = append(v.Notes, fmt.Sprintf("%s: %.1f %% of the calls were refused or failed, and are in no percentile", name, x.failedPercent()))
		}
		if x.GeneratorLateP99 > maxLate {
			v.Notes = append(v.Notes, fmt.Sprintf("%s: 1 %% of the calls were started more than %.1f ms late: this machine did not keep up", name, x.GeneratorLateP99))
		}
		if x.FirstError != "" {
			v.Notes = append(v.Notes, fmt.Sprintf("%s: %d errors, the first: %s", name, x.Errors, x.FirstError))
		}
	}
	r.Verdict = v
}

// lines tells the verdict in words.
func (r *round) lines() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	v := r.Verdict
	if none, adaptive := r.find(rowNone), r.find(rowAdaptive); none != nil && adaptive != nil {
		add("p99: %s %.1f ms is %.2f × %s %.1f ms, at %.1f %% extra requests and %.1f %% more failures (target: ≤ %.2f × at ≤ %d %% and ≤ %.1f %%: %s)",
			rowAdaptive, adaptive.P99, v.P99Ratio, rowNone, none.P99, v.ExtraPercent, v.MoreFailed,
			targetRatio, targetExtra, targetFailed, pick(v.NotJudged != "", "NOT JUDGED", pick(v.TargetMet, "met", "MISSED")))
		if v.NotJudged != "" {
			add("not to be judged: %s", v.NotJudged)
		}
	}
	events, grants, excess, above := 0, 0, 0, 0
	looks, bare, most, requests := 0, 0, 0, 0
	hidden, cancelled := 0, false
	for i := range r.Rows {
		l := r.Rows[i].Law
		grants += l.Grants
		above += l.GrantsAbove
		looks += l.Looks
		bare += l.Bare
		most = max(most, l.BareMost)
		if l.Enforced {
			requests += r.Rows[i].Requests
			events += l.Events
			excess = max(excess, l.Excess)
		} else {
			cancelled = true
			hidden = max(hidden, l.Excess)
		}
	}
	covered, stamps := pick(excess == 0 && bare == 0, "yes", "NO"), pick(excess == 0, "yes", fmt.Sprintf("NO, up to %d more", excess))
	if requests == 0 && excess == 0 {
		stamps = "not shown, as no request came to the server"
		covered = pick(bare == 0, "not shown", "NO")
	}
	add("server count ≤ permits: %s (%d events checked, in the rows that cancel nothing)", covered, events)
	add("  by stamps, the server's count ≤ the attempts under way in the client: %s", stamps)
	add("  in the client, in all rows, the attempts under way ≤ the permits out, at each begin and end: %s",
		pick(bare == 0, fmt.Sprintf("yes, at %d looks", looks), fmt.Sprintf("NO, up to %d more, at %d of %d looks", most, bare, looks)))
	if cancelled {
		add("in the rows that cancel their losers, up to %d requests at the server had no permit any more", hidden)
	}
	add("each grant below its limit: %s (%d grants)", pick(above == 0, "yes", "NO"), grants)
	add("errors: %d of %d calls; rejected: %d", v.Errors, v.Calls, v.Rejected)
	for _, n := range v.Notes {
		add("note: %s", n)
	}
	for _, b := range v.Broken {
		add("LAW BROKEN: %s", b)
	}
	return lines
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}
