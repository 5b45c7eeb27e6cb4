package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/storm"
)

// stormReport is everything that storm has found, and what its -json writes. Fields may be
// added to it and to what it holds; those that are there keep their meaning. Times are whole
// seconds.
type stormReport struct {
	runInfo
	Rows    []stormRow   `json:"rows"`
	Verdict stormVerdict `json:"verdict"`
}

// stormRow is a storm that is over: all its constants, and what came of it.
type stormRow struct {
	storm.Case
	Figures *storm.Figures `json:"figures"`
	Targets []stormTarget  `json:"targets"`
}

// stormTarget is what became of a target.
type stormTarget struct {
	Target string `json:"target"`
	Value  string `json:"value"`
	Met    bool   `json:"met"`
}

// stormVerdict counts the targets. There are none if a constant is not the default.
type stormVerdict struct {
	Targets int `json:"targets"`
	Met     int `json:"met"`
	// Missed names each target that was missed.
	Missed []string `json:"missed"`
	// Complete tells that every row was finished.
	Complete bool `json:"complete"`
}

func newStormReport(now time.Time) *stormReport {
	return &stormReport{runInfo: newRunInfo(now)}
}

// add enters the rows that are over.
func (r *stormReport) add(s *storm.Sweep) {
	r.Rows = []stormRow{}
	v := stormVerdict{Missed: []string{}, Complete: true}
	for i := range s.Rows {
		row, f := &s.Rows[i], s.Figures[i]
		if f == nil {
			v.Complete = false
			continue
		}
		x := stormRow{Case: row.Case, Figures: f, Targets: []stormTarget{}}
		for _, j := range row.Judge(f) {
			x.Targets = append(x.Targets, stormTarget{Target: j.What, Value: j.Value, Met: j.Met})
			v.Targets++
			if j.Met {
				v.Met++
			} else {
				v.Missed = append(v.Missed, fmt.Sprintf("%s: %s: %s", row.Name, j.What, j.Value))
			}
		}
		r.Rows = append(r.Rows, x)
	}
	r.Verdict = v
}
