package main

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
)

// simReport is everything that sim has found, and what its -json writes. Fields may be
// added to it and to what it holds; those that are there keep their meaning.
type simReport struct {
	runInfo
	// Seeds are those that were to be run.
	Seeds []uint64 `json:"seeds"`
	// Scales has one element, or those that -scales compares.
	Scales []simScale `json:"scales"`
}

// simScale is all scenarios under one scale.
type simScale struct {
	Scale     arena.Scale   `json:"scale"`
	Scenarios []simScenario `json:"scenarios"`
	Verdict   simVerdict    `json:"verdict"`
}

// simScenario is what came of a scenario.
type simScenario struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Clients int    `json:"clients"`
	// Phases describe traffic and server, in the words of arena.Phase.String.
	Phases []string   `json:"phases"`
	Limits []simLimit `json:"limits"`
}

// simLimit is what a limit made of a scenario.
type simLimit struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Reference tells that it was told the capacity.
	Reference bool        `json:"reference"`
	Runs      []simRun    `json:"runs"`
	Targets   []simTarget `json:"targets"`
}

// simRun is one simulation.
type simRun struct {
	Seed uint64 `json:"seed"`
	*arena.Figures
}

// simTarget is what became of a target, on the worst seed.
type simTarget struct {
	Phase   string  `json:"phase"`
	Metric  string  `json:"metric"`
	AtLeast bool    `json:"at_least"`
	Bound   float64 `json:"bound"`
	// Stretch is a bound that would be better still, 0 if there is none.
	Stretch float64 `json:"stretch"`
	// Worst is null if it was never reached.
	Worst      *float64 `json:"worst"`
	Met        bool     `json:"met"`
	StretchMet bool     `json:"stretch_met"`
}

// simVerdict is about the limit of the library.
type simVerdict struct {
	Targets int `json:"targets"`
	Met     int `json:"met"`
	// Missed names each target that was missed, and Ahead each rival that was better in
	// goodput and latency together, which none may be.
	Missed []string `json:"missed"`
	Ahead  []string `json:"ahead"`
	// Complete tells that every seed of ours was finished; without it nothing was met.
	Complete   bool `json:"complete"`
	TargetsMet bool `json:"targets_met"`
}

func newSimReport(o simOptions, now time.Time) *simReport {
	return &simReport{runInfo: newRunInfo(now), Seeds: o.seeds}
}

// add enters what was finished of the matches of a scale.
func (r *simReport) add(scale arena.Scale, seeds []uint64, matches []arena.Match) *simScale {
	s := simScale{Scale: scale, Verdict: simVerdict{Missed: []string{}, Ahead: []string{}, Complete: true}}
	for i := range matches {
		m := &matches[i]
		if n := len(s.Scenarios); n == 0 || s.Scenarios[n-1].ID != m.Scenario.ID {
			s.Scenarios = append(s.Scenarios, newSimScenario(m.Scenario))
		}
		l := simLimit{Name: m.Maker.Name, About: m.Maker.About, Reference: m.Maker.Reference, Runs: []simRun{}, Targets: []simTarget{}}
		for k, f := range m.Figures {
			if f != nil {
				l.Runs = append(l.Runs, simRun{Seed: seeds[k], Figures: f})
			}
		}
		if m.Maker.Name == arena.OurName && len(l.Runs) < len(seeds) {
			s.Verdict.Complete = false
		}
		for _, j := range m.Judge() {
			l.Targets = append(l.Targets, newSimTarget(m.Scenario, j))
			if m.Maker.Name == arena.OurName {
				s.Verdict.count(m.Scenario, j)
			}
		}
		last := &s.Scenarios[len(s.Scenarios)-1]
		last.Limits = append(last.Limits, l)
	}
	s.Verdict.Ahead = append(s.Verdict.Ahead, arena.Ahead(matches)...)
	s.Verdict.TargetsMet = s.Verdict.Complete && s.Verdict.Met == s.Verdict.Targets && len(s.Verdict.Ahead) == 0
	r.Scales = append(r.Scales, s)
	return &r.Scales[len(r.Scales)-1]
}

func newSimScenario(s *arena.Scenario) simScenario {
	x := simScenario{ID: s.ID, Name: s.Name, Clients: max(s.Clients, 1)}
	for i := range s.Phases {
		x.Phases = append(x.Phases, s.Phases[i].Name+": "+s.Phases[i].String())
	}
	return x
}

func newSimTarget(s *arena.Scenario, j arena.Judgement) simTarget {
	t := simTarget{
		Phase: s.Phases[j.Target.Phase].Name, Metric: string(j.Target.Metric), AtLeast: j.Target.AtLeast,
		Bound: j.Target.Bound, Stretch: j.Target.Stretch, Met: j.Met, StretchMet: j.Stretched,
	}
	if !math.IsInf(j.Worst, 0) {
		t.Worst = &j.Worst
	}
	return t
}

func (v *simVerdict) count(s *arena.Scenario, j arena.Judgement) {
	v.Targets++
	if j.Met {
		v.Met++
		return
	}
	v.Missed = append(v.Missed, fmt.Sprintf("%s %s: %s: %s", s.ID, s.Phases[j.Target.Phase].Name, j.Target, figure(j)))
}
