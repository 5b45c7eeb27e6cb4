package hedgearena

import "time"

const (
	// warmUp is for estimators to learn in. Nothing is judged in it.
	warmUp = 5 * time.Second
	// measured is how long most scenarios are.
	measured = 20 * time.Second
)

// sweepLoads are from idle to overloaded.
var sweepLoads = []float64{0.30, 0.60, 0.80, 0.95, 1.30}

var (
	heavy = LogNormal{P50: 0.010, P99: 0.100}
	// light has σ = 0.3: a hedge is a loss.
	light  = LogNormal{P50: 0.010, P99: 0.0201}
	freeze = Freeze{For: 250 * time.Millisecond, Every: 5 * time.Second}
)

// Scenarios returns the arena, in order. H1 and H3 are the sweep.
func Scenarios() []Scenario {
	steady := []Phase{{Name: "warm-up", Length: warmUp}, {Name: "steady", Length: measured}}
	base := func(id, name string) Scenario {
		return Scenario{ID: id, Name: name, Replicas: 4, Slots: 10, Service: heavy, Loads: sweepLoads, Phases: steady}
	}
	phases := func(s Scenario, loads []float64, before time.Duration, trouble Phase, after time.Duration) Scenario {
		s.Loads = loads
		s.Phases = []Phase{{Name: "warm-up", Length: warmUp}, {Name: "before", Length: before}, trouble, {Name: "after", Length: after}}
		return s
	}
	h1 := base("H1", "independent")
	h1.Targets = []Target{{Metric: P99, Loads: []float64{0.30, 0.60}, Bound: 70, Stretch: 67}}
	h2 := base("H2", "stalls, cancelled work is served")
	h2.Freeze = freeze
	h3 := base("H3", "stalls, queued work is dropped")
	h3.Freeze, h3.Drops = freeze, true
	h4 := base("H4", "two replicas with stalls")
	h4.Freeze, h4.Replicas = freeze, 2
	n1 := base("N1", "light tail")
	n1.Service = light

	c1 := phases(base("C1", "all replicas slow together"), []float64{0.30}, 5*time.Second,
		Phase{Name: "slow", Length: 15 * time.Second, Slow: 3}, 5*time.Second)
	// What a probe may cost once the slowness has been seen: the first seconds are
	// left to find it out in.
	c1.Targets = []Target{{Metric: SettledExtra, Phase: "slow", Bound: 0.5}}
	c2 := base("C2", "all replicas freeze together")
	c2.Freeze, c2.Loads = Freeze{For: 250 * time.Millisecond, Every: 5 * time.Second, Together: true}, []float64{0.30, 0.60, 0.80}
	d1 := phases(base("D1", "capacity drops by 40 %"), []float64{0.50, 0.70}, 5*time.Second,
		Phase{Name: "dropped", Length: 10 * time.Second, Slots: 6}, 10*time.Second)
	t1 := phases(base("T1", "twice the load for 3 s"), []float64{0.70, 0.85}, 5*time.Second,
		Phase{Name: "trigger", Length: 3 * time.Second, Times: 2}, 15*time.Second)
	// The backlog of five seconds' work is gone within 17 s without hedging or a limit.
	r1 := phases(base("R1", "overload for 10 s, and recovery"), []float64{0.50, 0.70}, 5*time.Second,
		Phase{Name: "trigger", Length: 10 * time.Second, Load: 1.5}, 25*time.Second)
	// Beyond what no hedging needs.
	r1.Targets = []Target{{Metric: Recovery, Paired: true, Bound: 1}}
	return []Scenario{h1, h2, h3, h4, n1, c1, c2, d1, t1, r1}
}
