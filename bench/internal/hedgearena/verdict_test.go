package hedgearena

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
)

// How many run at the same time changes no figure, and rows come with what they are
// compared with.
func TestSweep(t *testing.T) {
	s := find(t, "H1", time.Second)
	x := Sweep{
		Scenarios: []Scenario{*s}, Loads: []float64{0.3, 0.9}, Limits: []Limit{limit(t, "1.5x"), limit(t, "gradient")},
		Modes: []Mode{Queue}, Policies: []Policy{*policy(t, OurName), *policy(t, "hand")}, Seeds: []uint64{1, 2}, Parallel: 3,
	}
	rows := x.Rows()
	var got []string
	for _, r := range rows[:len(rows)/2] {
		name := r.Limit.Name + " " + r.Policy.Name
		if r.Base != nil {
			name += " > " + r.Base.Policy.Name
		}
		got = append(got, name)
	}
	want := "none none, none hand > none, 1.5x none, 1.5x ours > none, gradient none, gradient placebo > none, gradient ours > placebo"
	if strings.Join(got, ", ") != want {
		t.Errorf("rows: %s\nwant: %s", strings.Join(got, ", "), want)
	}
	if err := x.Run(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if runs, share := x.Progress(rows); runs != 2*len(rows) || share < 0.9 {
		t.Errorf("%d runs, share %v", runs, share)
	}
	for _, r := range rows {
		if !r.Complete() {
			t.Errorf("%s is not complete", r.Case)
		}
		if _, ok := r.Difference(); ok != (r.Base != nil) {
			t.Errorf("%s: a difference %t", r.Case, ok)
		}
		if r.Judged() != (len(r.Judge()) > 0) {
			t.Errorf("%s: judged %t, with %d judgements", r.Case, r.Judged(), len(r.Judge()))
		}
	}
}

func TestSweepStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := Sweep{Scenarios: Scenarios(), Limits: Limits(), Modes: []Mode{Refuse}, Policies: Policies(), Seeds: []uint64{1}, Parallel: 2}
	rows := x.Rows()
	if err := x.Run(ctx, rows); err != context.Canceled {
		t.Errorf("%v", err)
	}
	for _, r := range rows {
		if r.Judge() != nil || len(r.Finished()) > 0 {
			t.Error("a row that was not run was judged")
		}
	}
}

// figuresOf are figures with a total.
func figuresOf(failed, p99, recovery float64) *Figures {
	return &Figures{
		Total:  PhaseFigures{FailedPercent: failed, P99: p99},
		Phases: []PhaseFigures{{Name: "slow", SettledExtraPercent: p99 / 100}, {Name: "after", RecoverySeconds: recovery}},
	}
}

// The medians are of the differences, not the difference of the medians, and of the seeds
// that both finished.
func TestJudge(t *testing.T) {
	s := &Scenario{Targets: []Target{
		{Metric: P99, Loads: []float64{0.3}, Bound: 110, Stretch: 100},
		{Metric: P99, Loads: []float64{0.6}, Bound: 1},
		{Metric: Recovery, Paired: true, Bound: 1},
		{Metric: SettledExtra, Phase: "slow", Bound: 0.5},
	}}
	base := &Row{Case: Case{Scenario: s, Load: 0.3, Limit: limit(t, "3x"), Policy: policy(t, NoneName)}, Figures: []*Figures{
		figuresOf(1, 100, 2), figuresOf(2, 200, -1), figuresOf(3, 50, 0), nil, figuresOf(9, 9, 9),
	}}
	ours := &Row{Case: base.Case, Base: base, Figures: []*Figures{
		figuresOf(1.05, 99, 4), figuresOf(2.3, 202, -1), figuresOf(2, 60, -1), figuresOf(0, 1, 0), nil,
	}}
	ours.Policy = policy(t, OurName)
	d, ok := ours.Difference()
	if !ok || d.Seeds != 3 || math.Abs(d.Failed-0.05) > 1e-9 || math.Abs(d.P99-1) > 1e-9 || math.Abs(d.P99Worst-20) > 1e-9 || d.FailedError == 0 {
		t.Errorf("%+v, %t", d, ok)
	}
	var got []string
	for _, j := range ours.Judge() {
		verdict := "missed"
		if j.Met {
			verdict = "met"
		}
		if j.Stretched {
			verdict += ", stretched"
		}
		got = append(got, j.What+": "+verdict)
	}
	want := []string{
		"failed ≤ none + 0.1 points: met", "p99 ≤ none + 2 %: met",
		"p99 ms ≤ 110 [100]: met, stretched", "s to 95 % good ≤ none + 1: missed", "extra % from 5 s on in slow ≤ 0.5: missed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("judged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	ours.Limit = limit(t, "none")
	if ours.Judge() != nil {
		t.Error("judged without a limit")
	}
}

func TestClearMiss(t *testing.T) {
	for _, tt := range []struct {
		value, err float64
		met, clear bool
	}{{0.1, 0, true, false}, {0.2, 0.04, false, true}, {0.2, 0.06, false, false}, {math.Inf(1), 0, false, true}, {math.NaN(), 0, false, true}} {
		if j := newJudgement("x", tt.value, tt.err, 0.1); j.Met != tt.met || j.Clear != tt.clear {
			t.Errorf("%v ± %v: %+v", tt.value, tt.err, j)
		}
	}
}

func TestStandardError(t *testing.T) {
	if got, want := standardError([]float64{1, 2, 3}), math.Sqrt(math.Pi/2/3); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	for _, x := range [][]float64{{7}, {1, math.Inf(1)}} {
		if got := standardError(x); got != 0 {
			t.Errorf("%v of %v", got, x)
		}
	}
}

// Scenarios make sense: their targets are about what they have.
func TestScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scenarios() {
		if seen[s.ID] || len(s.Phases) < 2 || s.Phases[0].Length != warmUp || len(s.Loads) == 0 {
			t.Errorf("%s: %+v", s.ID, s)
		}
		seen[s.ID] = true
		for _, p := range s.Phases {
			if p.Length%tick != 0 || p.load(s.Loads[0]) <= 0 || p.Slots > s.Slots {
				t.Errorf("%s: phase %+v", s.ID, p)
			}
		}
		for _, x := range s.Targets {
			f := &Figures{}
			found := x.Phase == ""
			for _, p := range s.Phases {
				f.Phases = append(f.Phases, PhaseFigures{Name: p.Name})
				found = found || p.Name == x.Phase
			}
			if !found || math.IsNaN(x.Metric.Of(f, x.Phase)) {
				t.Errorf("%s: target %s", s.ID, &x)
			}
		}
		long := s.Longer(1.55)
		if got, want := long.Length()-warmUp, time.Duration(1.55*float64(s.Length()-warmUp)); (got - want).Abs() > time.Second {
			t.Errorf("%s: %v long, want %v", s.ID, got, want)
		}
	}
}
