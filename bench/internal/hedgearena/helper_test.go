package hedgearena

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// find returns a scenario with its phases cut to a length.
func find(t *testing.T, id string, length time.Duration) *Scenario {
	t.Helper()
	for _, s := range Scenarios() {
		if s.ID == id {
			s.Phases = slices.Clone(s.Phases)
			for i := range s.Phases {
				s.Phases[i].Length = min(s.Phases[i].Length, length)
			}
			return &s
		}
	}
	t.Fatalf("there is no scenario %s", id)
	return nil
}

func policy(t *testing.T, name string) *Policy {
	t.Helper()
	for _, p := range Policies() {
		if p.Name == name {
			return &p
		}
	}
	t.Fatalf("there is no policy %s", name)
	return nil
}

func limit(t *testing.T, name string) Limit {
	t.Helper()
	for _, l := range Limits() {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("there is no limit %s", name)
	return Limit{}
}

// newCase is a case by names. The mode is that of no limit if it is empty.
func newCase(t *testing.T, s *Scenario, load float64, limitName string, m Mode, policyName string) Case {
	t.Helper()
	if m == "" {
		m = NoMode
	}
	return Case{Scenario: s, Load: load, Limit: limit(t, limitName), Mode: m, Policy: policy(t, policyName)}
}

func mustSimulate(t *testing.T, c Case, seed uint64) *Figures {
	t.Helper()
	f, err := Simulate(c, seed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// simulated is Simulate, with the run. Change may change it before it is played.
func simulated(t *testing.T, c Case, seed uint64, change func(*run)) (f *Figures, r *run) {
	t.Helper()
	err := bubble.Run(func() (err error) {
		if r, err = newRun(c, seed, Options{}); err != nil {
			return err
		}
		if change != nil {
			change(r)
		}
		if err := r.play(); err != nil {
			return err
		}
		f = r.figures()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %.4g, want %.4g ± %g %%", what, got, want, 100*tolerance)
	}
}
