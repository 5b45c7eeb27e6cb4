package gradient

import "testing"

func TestCeilingCutsToWhatWouldHaveMetIt(t *testing.T) {
	for name, c := range map[string]struct {
		ceiling ceiling
		late, n float64
		want    float64
	}{
		"below":       {0.1, 0.05, 40, 40},
		"above":       {0.1, 0.2, 39, 18},
		"far above":   {0.1, 10, 39, 12},
		"not needed":  {0.1, 0.2, 19, 12},
		"not counted": {0.1, 0.2, 0, 18},
		"no ceiling":  {0, 10, 40, 40},
	} {
		s := sample{late: c.late, n: c.n}
		if got, want := c.ceiling.exceeded(s), c.ceiling > 0 && c.late > 0.1; got != want {
			t.Errorf("%s: exceeded %v", name, got)
		}
		if got := c.ceiling.cut(s, 40); !near(got, c.want, 1e-9) {
			t.Errorf("%s: cut to %v, want %v", name, got, c.want)
		}
	}
}

func TestCeilingBoundsGrowth(t *testing.T) {
	for late, want := range map[float64]float64{0.010: 30, 0.040: 22.5, 0.045: 20, 0.049: 20} {
		g := stepper(20)
		g.ceiling, g.slowStart = 0.050, true
		s := atCapacity(0)
		s.late = late
		reason, m := stepOf(g, 100, s)
		if !near(m.to, want, 1e-9) || (reason == ReasonGrow) != (want > 20) {
			t.Errorf("at %v s: %s to %v, want %v", late, reason, m.to, want)
		}
	}
}
