package main

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// hedgeReport is everything that hedge has found, and what its -json writes. Fields may
// be added to it and to what it holds; those that are there keep their meaning.
type hedgeReport struct {
	runInfo
	// Seeds are those that were to be run.
	Seeds     []uint64              `json:"seeds"`
	Scenarios []hedgearena.Scenario `json:"scenarios"`
	Policies  []hedgearena.Policy   `json:"policies"`
	Rows      []hedgeRow            `json:"rows"`
	Verdict   hedgeVerdict          `json:"verdict"`
}

// hedgeRow is one policy behind one limit in one scenario at one load.
type hedgeRow struct {
	Scenario string          `json:"scenario"`
	Load     float64         `json:"load"`
	Limit    string          `json:"limit"`
	Mode     hedgearena.Mode `json:"mode"`
	Policy   string          `json:"policy"`
	// Base is the policy that it is compared with, behind the same limit; empty if it is
	// the first of them itself.
	Base string     `json:"base"`
	Runs []hedgeRun `json:"runs"`
	// Difference is null without a base.
	Difference *hedgearena.Difference `json:"difference"`
	Targets    []hedgeTarget          `json:"targets"`
}

// hedgeRun is one simulation.
type hedgeRun struct {
	Seed uint64 `json:"seed"`
	*hedgearena.Figures
}

// hedgeTarget is what became of a target, on the median of the seeds.
type hedgeTarget struct {
	Target string `json:"target"`
	// Value is null if it was never reached, and Error the standard error of it.
	Value *float64 `json:"value"`
	Error float64  `json:"error"`
	Met   bool     `json:"met"`
	// ClearlyMissed tells that it is missed by more than two standard errors.
	ClearlyMissed bool `json:"clearly_missed"`
	StretchMet    bool `json:"stretch_met"`
}

// hedgeVerdict is about the policy of the library.
type hedgeVerdict struct {
	Targets int `json:"targets"`
	Met     int `json:"met"`
	// Missed names each target that was missed, and ClearlyMissed counts those of them that
	// were by more than two standard errors.
	Missed        []string `json:"missed"`
	ClearlyMissed int      `json:"clearly_missed"`
	// Complete tells that every seed was finished of each row that is judged, and of what
	// it is compared with; without it nothing was met.
	Complete   bool `json:"complete"`
	TargetsMet bool `json:"targets_met"`
}

func newHedgeReport(o hedgeOptions, now time.Time) *hedgeReport {
	return &hedgeReport{runInfo: newRunInfo(now), Seeds: o.seeds, Scenarios: o.scenarios, Policies: o.policies}
}

// add enters what was finished of the rows.
func (r *hedgeReport) add(rows []*hedgearena.Row) {
	r.Rows = []hedgeRow{}
	v := hedgeVerdict{Missed: []string{}, Complete: true}
	for _, row := range rows {
		x := hedgeRow{
			Scenario: row.Scenario.ID, Load: row.Load, Limit: row.Limit.Name, Mode: row.Mode, Policy: row.Policy.Name,
			Runs: []hedgeRun{}, Targets: []hedgeTarget{},
		}
		if row.Base != nil {
			x.Base = row.Base.Policy.Name
		}
		for k, f := range row.Figures {
			if f != nil {
				x.Runs = append(x.Runs, hedgeRun{Seed: r.Seeds[k], Figures: f})
			}
		}
		if d, ok := row.Difference(); ok {
			x.Difference = &d
		}
		if row.Judged() && !(row.Complete() && row.Base.Complete()) {
			v.Complete = false
		}
		for _, j := range row.Judge() {
			x.Targets = append(x.Targets, newHedgeTarget(j))
			v.Targets++
			if j.Clear {
				v.ClearlyMissed++
			}
			if j.Met {
				v.Met++
			} else {
				v.Missed = append(v.Missed, fmt.Sprintf("%s: %s: %s", row.Case, j.What, hedgeValue(j)))
			}
		}
		r.Rows = append(r.Rows, x)
	}
	v.TargetsMet = v.Complete && v.Met == v.Targets
	r.Verdict = v
}

func newHedgeTarget(j hedgearena.Judgement) hedgeTarget {
	t := hedgeTarget{Target: j.What, Error: j.Error, Met: j.Met, ClearlyMissed: j.Clear, StretchMet: j.Stretched}
	if !math.IsInf(j.Value, 0) && !math.IsNaN(j.Value) {
		t.Value = &j.Value
	}
	return t
}
