package arena

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// How many run at the same time changes no figure.
func TestTournament(t *testing.T) {
	play := func(parallel int) []Match {
		x := Tournament{
			Scenarios: []Scenario{*short(t, "S1", time.Second), *short(t, "S7", 5*time.Second)},
			Makers:    Makers()[:2], Seeds: []uint64{1, 2, 3}, Parallel: parallel,
		}
		matches, err := x.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if runs, share := x.Progress(); runs != x.Runs() || share < 0.9 {
			t.Errorf("%d of %d runs, share %v", runs, x.Runs(), share)
		}
		return matches
	}
	one, four := play(1), play(4)
	if len(one) != 4 || one[1].Scenario.ID != "S1" || one[2].Maker.Name != OurName {
		t.Fatalf("%d matches in another order", len(one))
	}
	for i := range one {
		if !reflect.DeepEqual(one[i].Figures, four[i].Figures) {
			t.Errorf("match %d differs: %+v and %+v", i, one[i].Figures, four[i].Figures)
		}
	}
}

func TestTournamentStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := Tournament{Scenarios: Scenarios(), Makers: Makers(), Seeds: []uint64{1}, Parallel: 2}
	matches, err := x.Run(ctx)
	if err != context.Canceled || len(matches) != x.Runs() {
		t.Errorf("%v with %d matches", err, len(matches))
	}
	for i := range matches {
		if matches[i].Judge() != nil {
			t.Error("a match that was not played was judged")
		}
	}
}

func TestJudge(t *testing.T) {
	s := &Scenario{Phases: []Phase{{Name: "a"}}, Targets: []Target{
		{Metric: GoodPercent, AtLeast: true, Bound: 99, Stretch: 99.5},
		{Metric: P50, Bound: 12, Stretch: 10},
		{Metric: SecondsTo90, Bound: 1},
	}}
	m := Match{Scenario: s, Maker: &Makers()[0], Figures: []*Figures{
		{Phases: []PhaseFigures{{GoodPercent: 99.4, P50: 9, SecondsTo90: 0.3}}},
		nil, // did not finish
		{Phases: []PhaseFigures{{GoodPercent: 99.9, P50: 9.5, SecondsTo90: -1}}},
	}}
	got := m.Judge()
	want := []Judgement{
		{Target: s.Targets[0], Worst: 99.4, Met: true},
		{Target: s.Targets[1], Worst: 9.5, Met: true, Stretched: true},
		{Target: s.Targets[2], Worst: math.Inf(1)},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if s.Targets[0].String() != "good % ≥ 99 [99.5]" || s.Targets[2].String() != "s to 90 % ≤ 1" {
		t.Errorf("targets read %q and %q", s.Targets[0], s.Targets[2])
	}
}

func TestAhead(t *testing.T) {
	s := &Scenario{ID: "S0", Phases: []Phase{{Name: "a"}}}
	match := func(name string, reference bool, good, p50 float64) Match {
		return Match{Scenario: s, Maker: &Maker{Name: name, Reference: reference}, Figures: []*Figures{
			{Phases: []PhaseFigures{{GoodPercent: good, P50: p50}}},
		}}
	}
	got := Ahead([]Match{
		match("better", false, 99.6, 9.8), match(OurName, false, 99, 10), match("slower", false, 100, 10.1),
		match("idler", false, 90, 9), match("by a hair", false, 99.2, 9.95), match("told", true, 100, 9),
	})
	if len(got) != 1 || !strings.HasPrefix(got[0], "better in S0 a: good 99.6 %") {
		t.Errorf("ahead: %q", got)
	}
}

// Each metric of a target is a figure.
func TestMetrics(t *testing.T) {
	f := &Figures{Jain: 11, Phases: []PhaseFigures{{}, {
		GoodPercent: 1, RejectedPercent: 2, P50: 3, P99: 4, SettledP50: 5, SettledP99: 6,
		SecondsTo90: 7, SecondsTo80: 8, LimitLast: 9, LimitLate: 10,
	}}}
	for i, m := range []Metric{
		GoodPercent, RejectedPercent, P50, P99, SettledP50, SettledP99, SecondsTo90, SecondsTo80, LimitLast, LimitLate, Jain,
	} {
		if got := m.Of(f, 1); got != float64(i+1) {
			t.Errorf("%s is %v", m, got)
		}
	}
	if !math.IsNaN(Metric("nonsense").Of(f, 0)) {
		t.Error("a metric that is none has a value")
	}
	for _, s := range Scenarios() {
		for _, x := range s.Targets {
			if x.Phase >= len(s.Phases) || math.IsNaN(x.Metric.Of(&Figures{Phases: make([]PhaseFigures, 3)}, x.Phase)) {
				t.Errorf("%s: target %v of phase %d", s.ID, x, x.Phase)
			}
		}
	}
}
