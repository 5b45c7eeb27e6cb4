package hedgearena

import (
	"math"
	"testing"
	"time"
)

// erlangC is the share that must wait for one of c workers, with a workers' worth of calls.
func erlangC(c int, a float64) float64 {
	b := 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	rho := a / float64(c)
	return b / (1 - rho*(1-b))
}

// Without hedging and without a limit each replica is a queue of its own, with its share
// of the traffic. The mean time in it is that of Erlang for many slots and a service
// without memory, and that of Pollaczek and Khinchine for one slot and any service.
func TestWaitingTimeOfTheory(t *testing.T) {
	const s, calls = 0.010, 60_000
	exponential := func(u float64) float64 { return -s * math.Log(1-u) }
	constant := func(float64) float64 { return s }
	law := LogNormal{P50: 0.008, P99: 0.030}
	square := law.Mean() * law.Mean() * math.Exp(law.sigma()*law.sigma())
	for _, tt := range []struct {
		name      string
		slots     int
		load      float64
		law       func(float64) float64
		mean      float64
		wait      float64
		tolerance float64
	}{
		{"M/M/5 at 0.8", 5, 0.8, exponential, s, erlangC(5, 4) * s / (5 - 4), 0.04},
		{"M/M/1 at 0.6", 1, 0.6, exponential, s, 0.6 * s / 0.4, 0.04},
		{"M/D/1 at 0.7", 1, 0.7, constant, s, 0.7 * s / (2 * 0.3), 0.04},
		{"M/G/1 at 0.6", 1, 0.6, law.quantile, law.Mean(), 0.6 / law.Mean() * square / (2 * 0.4), 0.04},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// The capacity is that of the law in the scenario, so the mean must be the same.
			x := law
			x.P50, x.P99 = law.P50*tt.mean/law.Mean(), law.P99*tt.mean/law.Mean()
			scenario := &Scenario{ID: "T", Replicas: 2, Slots: tt.slots, Service: x, Phases: []Phase{{Name: "all"}}}
			scenario.Phases[0].Length = time.Duration(calls/(tt.load*scenario.Capacity())) * time.Second
			f, r := simulated(t, newCase(t, scenario, tt.load, "none", "", NoneName), 1, func(r *run) { r.draws.law = tt.law })
			near(t, "mean time in the system", r.record.phases[0].latency.Mean()/1e6, tt.mean+tt.wait, tt.tolerance)
			near(t, "calls", float64(f.Calls), calls, 0.015)
		})
	}
}

// The law of the service has the median, the tail and the mean that it claims.
func TestLogNormal(t *testing.T) {
	for _, law := range []LogNormal{heavy, light} {
		near(t, "p50", law.quantile(0.5), law.P50, 1e-6)
		near(t, "p99", law.quantile(0.99), law.P99, 1e-6)
		const n = 1_000_000
		sum := 0.0
		for i := range n {
			sum += law.quantile((float64(i) + 0.5) / n)
		}
		near(t, "mean", law.Mean(), sum/n, 0.001)
	}
	if d := (&Scenario{Service: heavy}).Delay().Round(time.Millisecond); d != 51*time.Millisecond {
		t.Errorf("the 95th percentile is %v", d)
	}
}

// Draws are even, and independent of the order in which they are asked for.
func TestDraws(t *testing.T) {
	d := &draws{seed: 1, replicas: 4, law: heavy.quantile}
	const n = 200_000
	var mean, square, both float64
	replicas, pairs := make([]int, 4), map[[2]int]int{}
	for call := range n {
		u, v := d.uniform(drawService, call, 1), d.uniform(drawService, call, 2)
		mean += u / n
		square += u * u / n
		both += u * v / n
		first, second := d.replica(call, 1), d.replica(call, 2)
		replicas[first]++
		pairs[[2]int{first, second}]++
		if third, fourth := d.replica(call, 3), d.replica(call, 4); second == first || third == first || third == second || fourth == first || fourth == second || fourth == third {
			t.Fatalf("call %d went to %d, %d, %d and %d", call, first, second, third, fourth)
		}
	}
	near(t, "mean", mean, 0.5, 0.005)
	near(t, "mean square", square, 1.0/3, 0.01)
	near(t, "mean product of two attempts", both, 0.25, 0.01)
	for i, got := range replicas {
		near(t, "share of a replica", float64(got), n/4, 0.02)
		for j := range replicas {
			if i != j {
				near(t, "share of a pair", float64(pairs[[2]int{i, j}]), n/12, 0.04)
			}
		}
	}
	if (&draws{seed: 1, replicas: 1}).replica(7, 2) != 0 {
		t.Error("a hedge found another replica where there is one")
	}
}

// The library without a bound hedges as many calls as its quantile leaves over, and a hedge
// after the true quantile as many again.
func TestHedgeRateOfTheory(t *testing.T) {
	s := find(t, "H1", 20*time.Second)
	for _, name := range []string{"unlimited", "hand", "failsafe"} {
		f := mustSimulate(t, newCase(t, s, 0.3, "none", "", name), 1)
		near(t, name+": extra %", f.Total.ExtraPercent, 5, 0.08)
	}
	f := mustSimulate(t, newCase(t, s, 0.3, "none", "", PlaceboName), 1)
	near(t, "placebo: extra %", f.Total.ExtraPercent, 100*placeboShare, 0.5)
}
