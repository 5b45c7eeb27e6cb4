package sizing

import (
	"testing"
	"time"
)

// One worker and exponential times are M/M/1: the mean time inside is service / (1 − load).
func TestModelQueuesAsTheorySays(t *testing.T) {
	m := &Model{Workers: 1, Service: exponential(0.010), Seed: 1}
	for _, load := range []float64{0.3, 0.6} {
		samples, err := m.Attack(time.Hour)(t.Context(), load*m.Capacity(), 5000*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, s := range samples {
			sum += s.Latency.Seconds()
		}
		near(t, "mean time inside", sum/float64(len(samples)), 0.010/(1-load), 0.03)
	}
}

// With a limit of as many as there are workers nobody waits, and who is refused follows the loss
// formula of Erlang, whatever the service time looks like.
func TestModelRefusesAsErlangSays(t *testing.T) {
	for _, m := range []*Model{
		{Workers: 5, Service: exponential(0.020), Seed: 1},
		{Workers: 20, Service: lightTail, Seed: 2},
	} {
		blocked := 1.0
		offered := overload * float64(m.Workers)
		for k := 1; k <= m.Workers; k++ {
			blocked = offered * blocked / (float64(k) + offered*blocked)
		}
		const calls = 200000
		near(t, "admitted", float64(m.admitted(m.Workers, calls))/calls, 1-blocked, 0.01)
	}
}

// The best limit has 99 % of the answers, and one less has not.
func TestBestLimitIsTheSmallest(t *testing.T) {
	m := &Model{Workers: 5, Service: exponential(0.020), Seed: 3}
	const calls = 200000
	best := m.BestLimit(calls)
	enough := goodEnough * float64(m.admitted(100, calls))
	if at, below := float64(m.admitted(best, calls)), float64(m.admitted(best-1, calls)); at < 0.999*enough || below > 1.001*enough {
		t.Errorf("limit %d gets %v calls, and one less %v, of %v", best, at, below, enough)
	}
}

// Spells make the share of the calls slow that they should, and the capacity less.
func TestModelSpells(t *testing.T) {
	m := &Model{Workers: 1000, Service: lightTail, Spells: Spells{For: 250 * time.Millisecond, Share: 0.06, Times: 8}, Seed: 1}
	near(t, "capacity", m.Capacity(), 1000/(lightTail.Mean()*1.42), 1e-9)
	samples, err := m.Attack(time.Hour)(t.Context(), 1000, 1000*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	slow := 0
	for _, s := range samples {
		if s.Latency > 35*time.Millisecond {
			slow++
		}
	}
	near(t, "slow share", float64(slow)/float64(len(samples)), 0.06, 0.15)
	if c := correlate(samples, Timed, 0); !c.Correlated {
		t.Errorf("%+v", c)
	}
}
