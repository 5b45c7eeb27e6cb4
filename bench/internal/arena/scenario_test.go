package arena

import (
	"math"
	"slices"
	"testing"
	"time"
)

func find(t *testing.T, id string) *Scenario {
	t.Helper()
	for _, s := range Scenarios() {
		if s.ID == id {
			s.Phases = slices.Clone(s.Phases)
			return &s
		}
	}
	t.Fatalf("no scenario %s", id)
	return nil
}

// The arena in words. What a scenario is must not change by accident: figures of
// other days would not compare.
func TestScenarios(t *testing.T) {
	const usual, tail = "logn(10 ms, 0.3)", "Pareto(1.5, mean 10 ms, cap 2 s)"
	want := []struct {
		id      string
		clients int
		phases  []string
	}{
		{"S1", 1, []string{"120 s, 3000/s, c 20, " + usual}},
		{"S2", 1, []string{"60 s, 1500/s, c 20, " + usual, "60 s, 1500/s, c 5, " + usual, "60 s, 1500/s, c 20, " + usual}},
		{"S3", 1, []string{"120 s, 1000/s, c 20, " + tail}},
		{"S4", 1, []string{"120 s, 100/s, c 20, " + usual, "20 s, 6000/s, c 20, " + usual}},
		{"S5", 1, []string{"180 s, 1000/s, c 80, logn(10 to 40 ms, 0.3)"}},
		{"S6", 1, []string{"60 s, 1000/s, c 100, 5 ms, 10 % 100 ms, ±10 %", "60 s, 1000/s, c 100, 5 ms, 50 % 100 ms, ±10 %"}},
		{"S7", 1, []string{"180 s, 60/s, c 3, logn(100 ms, 0.3)"}},
		{"S8", 1, []string{"60 s, 3000/s, c 20, " + usual + ", contention", "60 s, 3000/s, c 10, " + usual + ", contention", "60 s, 3000/s, c 20, " + usual + ", contention"}},
		{"S9", 1, []string{"60 s, 5000/s, c 20, " + usual + ", 40 % beside it in 1ms"}},
		{"S10", 1, []string{"60 s, 6000/s, c 200, logn(50 ms, 0.3)"}},
		{"S11", 1, []string{"120 s, 3000/s, c 20, " + tail}},
		{"S12", 1, []string{"60 s, 1600/s, c 20, " + usual, "600 s, 1600/s, c 20, " + usual + ", outage: every call ends after 1s", "60 s, 1600/s, c 20, " + usual}},
		{"S13a", 1, []string{"120 s, 15000/s, c 200, logn(20 ms, 0.3)"}},
		{"S13b", 10, []string{"120 s, 15000/s, c 200, logn(20 ms, 0.3)"}},
		{"S13c", 100, []string{"120 s, 15000/s, c 200, logn(20 ms, 0.3)"}},
		{"S13d", 1, []string{"120 s, 3000/s, c 20, " + usual}},
		{"S13e", 10, []string{"120 s, 3000/s, c 20, " + usual}},
		{"S13f", 100, []string{"120 s, 3000/s, c 20, " + usual}},
	}
	got := Scenarios()
	if len(got) != len(want) {
		t.Fatalf("%d scenarios, want %d", len(got), len(want))
	}
	for i, w := range want {
		var phases []string
		for j := range got[i].Phases {
			phases = append(phases, got[i].Phases[j].String())
		}
		if got[i].ID != w.id || max(got[i].Clients, 1) != w.clients || !slices.Equal(phases, w.phases) {
			t.Errorf("%s, %d clients: %q\nwant %s, %d clients: %q", got[i].ID, got[i].Clients, phases, w.id, w.clients, w.phases)
		}
	}
}

// The capacity is what the load of each scenario is told against.
func TestCapacity(t *testing.T) {
	for _, tt := range []struct {
		id    string
		phase int
		at    float64
		want  float64
	}{
		{"S1", 0, 0, 2000}, {"S2", 1, 0, 500}, {"S5", 0, 0, 8000}, {"S5", 0, 1, 2000},
		{"S6", 1, 0, 100 / 0.0525}, {"S7", 0, 0, 30}, {"S8", 1, 0, 1000}, {"S9", 0, 0, 2000 / 0.6},
		{"S11", 0, 0, 20 / 0.00972783}, {"S12", 1, 0, 0}, {"S13c", 0, 0, 10000},
	} {
		p := find(t, tt.id).Phases[tt.phase]
		if got := p.Capacity(tt.at); math.Abs(got-tt.want) > 1e-4*tt.want {
			t.Errorf("%s: capacity %v, want %v", tt.id, got, tt.want)
		}
	}
}

func TestScaled(t *testing.T) {
	s := find(t, "S7")
	half := s.Scaled(Scale{Service: 1.5, Rate: 0.5, Workers: 0.5})
	p := half.Phases[0]
	if p.Workers != 2 || p.Rate != 30 || math.Abs(p.Service.Mean(0)-0.15) > 1e-12 || half.Targets != nil {
		t.Errorf("scaled: %s, %d targets", &p, len(half.Targets))
	}
	if s.Phases[0].Workers != 3 {
		t.Error("the scenario itself was scaled")
	}
	if same := s.Scaled(Unscaled()); len(same.Targets) == 0 {
		t.Error("targets were lost without a scale")
	}
	if one := s.Scaled(Scale{1, 1, 0.01}); one.Phases[0].Workers != 1 {
		t.Errorf("%d workers", one.Phases[0].Workers)
	}
}

func TestIdeal(t *testing.T) {
	p := Phase{Length: 20 * time.Second, Rate: 100, Workers: 1, Service: logNormal{0.005, 0.020, 0}}
	// Capacity falls from 200 to 50; the traffic meets it where the service takes 10 ms.
	parts := []int{100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100}
	got := p.ideal(parts)
	want := 20.0/3*100 + 20*math.Log(20.0/10)/0.015
	if math.Abs(got-want) > 0.01*want {
		t.Errorf("ideal %v, want %v", got, want)
	}
	p.Service = logNormal{0.020, 0.020, 0}
	if got := p.ideal(parts); got != 1000 {
		t.Errorf("ideal %v of a steady overload, want 1000", got)
	}
}

func TestIn(t *testing.T) {
	s := find(t, "S13b")
	for name, want := range map[string]bool{"S13": true, "s13b": true, "S13c": false, "S1": false, "": false} {
		if s.In(name) != want {
			t.Errorf("S13b in %q: %t", name, !want)
		}
	}
}
