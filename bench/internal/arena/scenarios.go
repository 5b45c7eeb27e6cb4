package arena

import "time"

// usual is the service of most scenarios.
var usual = logNormal{from: 0.010, to: 0.010, sigma: 0.3}

// heavyTail has a mean of 10 ms, a median of 5 and a longest of 2 s.
var heavyTail = pareto{alpha: 1.5, mean: 0.010, longest: 2}

// Scenarios returns the arena, in order.
func Scenarios() []Scenario {
	all := []Scenario{
		{ID: "S1", Name: "overload", Phases: []Phase{
			{Name: "overload", Length: 120 * time.Second, Rate: 3000, Workers: 20, Service: usual},
		}, Targets: []Target{
			{Metric: GoodPercent, AtLeast: true, Bound: 99, Stretch: 99.6},
			{Metric: P50, Bound: 12.5},
		}},
		{ID: "S2", Name: "capacity drop", Phases: []Phase{
			{Name: "before", Length: time.Minute, Rate: 1500, Workers: 20, Service: usual},
			{Name: "dropped", Length: time.Minute, Rate: 1500, Workers: 5, Service: usual},
			{Name: "back", Length: time.Minute, Rate: 1500, Workers: 20, Service: usual},
		}, Targets: []Target{
			{Phase: 1, Metric: SettledP50, Bound: 15},
			{Phase: 1, Metric: SettledP99, Bound: 30},
			{Phase: 2, Metric: GoodPercent, AtLeast: true, Bound: 99},
			{Phase: 2, Metric: SecondsTo90, Bound: 1},
		}},
		{ID: "S3", Name: "heavy tail, no overload", Phases: []Phase{
			{Name: "steady", Length: 120 * time.Second, Rate: 1000, Workers: 20, Service: heavyTail},
		}, Targets: []Target{{Metric: RejectedPercent, Bound: 0.1}}},
		{ID: "S4", Name: "app-limited, then spike", Phases: []Phase{
			{Name: "idle", Length: 120 * time.Second, Rate: 100, Workers: 20, Service: usual},
			{Name: "spike", Length: 20 * time.Second, Rate: 6000, Workers: 20, Service: usual},
		}, Targets: []Target{
			// What the spike needs is one place a worker.
			{Phase: 0, Metric: LimitLast, Bound: 1.5 * 20},
			{Phase: 1, Metric: GoodPercent, AtLeast: true, Bound: 98.5},
		}},
		{ID: "S5", Name: "drift, no overload", Phases: []Phase{
			{Name: "drift", Length: 180 * time.Second, Rate: 1000, Workers: 80, Service: logNormal{from: 0.010, to: 0.040, sigma: 0.3}},
		}, Targets: []Target{{Metric: RejectedPercent, Bound: 0.1}}},
		{ID: "S6", Name: "mix shift, no overload", Phases: []Phase{
			{Name: "10 % slow", Length: time.Minute, Rate: 1000, Workers: 100, Service: mix{fast: 0.005, slow: 0.100, share: 0.1, spread: 0.1}},
			{Name: "50 % slow", Length: time.Minute, Rate: 1000, Workers: 100, Service: mix{fast: 0.005, slow: 0.100, share: 0.5, spread: 0.1}},
		}, Targets: []Target{{Phase: 1, Metric: RejectedPercent, Bound: 0.5}}},
		{ID: "S7", Name: "small and slow", Phases: []Phase{
			{Name: "overload", Length: 180 * time.Second, Rate: 60, Workers: 3, Service: logNormal{from: 0.100, to: 0.100, sigma: 0.3}},
		}, Targets: []Target{
			{Metric: GoodPercent, AtLeast: true, Bound: 96, Stretch: 98},
			{Metric: P50, Bound: 160, Stretch: 150},
		}},
		{ID: "S8", Name: "contention", Phases: []Phase{
			{Name: "before", Length: time.Minute, Rate: 3000, Workers: 20, Service: usual, Contention: true},
			{Name: "half", Length: time.Minute, Rate: 3000, Workers: 10, Service: usual, Contention: true},
			{Name: "back", Length: time.Minute, Rate: 3000, Workers: 20, Service: usual, Contention: true},
		}, Targets: []Target{
			{Phase: 0, Metric: GoodPercent, AtLeast: true, Bound: 91, Stretch: 95},
			{Phase: 1, Metric: GoodPercent, AtLeast: true, Bound: 91, Stretch: 95},
			{Phase: 2, Metric: GoodPercent, AtLeast: true, Bound: 91, Stretch: 95},
		}},
		{ID: "S9", Name: "cache hits", Phases: []Phase{
			{Name: "overload", Length: time.Minute, Rate: 5000, Workers: 20, Service: usual, Beside: 0.4, BesideTime: time.Millisecond},
		}, Targets: []Target{
			{Metric: GoodPercent, AtLeast: true, Bound: 98},
			{Metric: P99, Bound: 25},
		}},
		{ID: "S10", Name: "large", Phases: []Phase{
			{Name: "overload", Length: time.Minute, Rate: 6000, Workers: 200, Service: logNormal{from: 0.050, to: 0.050, sigma: 0.3}},
		}, Targets: []Target{
			{Metric: GoodPercent, AtLeast: true, Bound: 98},
			{Metric: SecondsTo90, Bound: 2},
		}},
		{ID: "S11", Name: "heavy tail, overloaded", Phases: []Phase{
			{Name: "overload", Length: 120 * time.Second, Rate: 3000, Workers: 20, Service: heavyTail},
		}, Targets: []Target{{Metric: GoodPercent, AtLeast: true, Bound: 98}}},
		{ID: "S12", Name: "outage", Phases: []Phase{
			{Name: "healthy", Length: time.Minute, Rate: 1600, Workers: 20, Service: usual},
			{Name: "outage", Length: 10 * time.Minute, Rate: 1600, Workers: 20, Service: usual, Outage: time.Second},
			{Name: "back", Length: time.Minute, Rate: 1600, Workers: 20, Service: usual},
		}, Targets: []Target{
			{Phase: 1, Metric: LimitLate, Bound: 3},
			{Phase: 2, Metric: SecondsTo80, Bound: 3},
		}},
	}
	return append(all, fleets()...)
}

// fleets returns the parts of S13: clients that share a server.
func fleets() []Scenario {
	part := func(id, name string, clients int, rate float64, workers int, service Law, good float64) Scenario {
		s := Scenario{ID: id, Name: name, Clients: clients, Phases: []Phase{
			{Name: "overload", Length: 120 * time.Second, Rate: rate, Workers: workers, Service: service},
		}, Targets: []Target{{Metric: GoodPercent, AtLeast: true, Bound: good}}}
		if clients > 1 {
			s.Targets = append(s.Targets, Target{Metric: Jain, AtLeast: true, Bound: 0.9})
		}
		return s
	}
	large := logNormal{from: 0.020, to: 0.020, sigma: 0.3}
	return []Scenario{
		part("S13a", "1 client on c 200", 1, 15000, 200, large, 98),
		part("S13b", "10 clients on c 200", 10, 15000, 200, large, 98),
		part("S13c", "100 clients on c 200", 100, 15000, 200, large, 98),
		part("S13d", "1 client on c 20", 1, 3000, 20, usual, 98),
		part("S13e", "10 clients on c 20", 10, 3000, 20, usual, 98),
		// One call in flight a client is five times the workers already.
		part("S13f", "100 clients on c 20", 100, 3000, 20, usual, 97),
	}
}
