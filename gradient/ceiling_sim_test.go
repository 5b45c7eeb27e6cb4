package gradient_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

func withCeiling(t testing.TB, d time.Duration) *gradient.Gradient {
	return must[*gradient.Gradient](t)(gradient.New(gradient.Config{MaxLatency: d}))
}

// Clients of one server take each other's queue for the service, and the latency
// creeps up. A ceiling ends that, and takes no goodput.
func TestCeilingEndsTheCreepOfAFleet(t *testing.T) {
	run := func(d time.Duration) result {
		var fleet []*client
		for range 10 {
			fleet = append(fleet, &client{algorithm: withCeiling(t, d)})
		}
		got := simulateAll(t, fleet, 1, phase{length: 300, rate: 3000, workers: 20, mean: 0.010})[0]
		t.Logf("ceiling %v: good %.1f %%, p50 %.1f ms, p99 %.1f ms, Jain %.2f", d, 100*got.good, got.p50, got.p99, got.fairness)
		return got
	}
	without, with := run(0), run(50*time.Millisecond)
	if with.p50 > 50 || with.p50 > without.p50 || with.p99 > 0.5*without.p99 {
		t.Errorf("p50 %.1f ms, p99 %.1f ms with a ceiling of 50 ms, and %.1f ms, %.1f ms without", with.p50, with.p99, without.p50, without.p99)
	}
	if with.good < 0.98 || with.fairness < 0.9 {
		t.Errorf("with a ceiling: %.3f good, fairness %.2f", with.good, with.fairness)
	}
}

// A ceiling that is never reached changes nothing.
func TestFarCeilingChangesNothing(t *testing.T) {
	p := phase{length: 20, rate: 3000, workers: 20, mean: 0.010}
	without, with := simulate(t, newGradient(t), 1, p)[0], simulate(t, withCeiling(t, time.Minute), 1, p)[0]
	if without.good != with.good || without.p99 != with.p99 || without.mean != with.mean {
		t.Errorf("%+v without, %+v with", without, with)
	}
}

// A baseline that was learnt in a queue is no excuse: the first window of this server
// is as slow as all others.
func TestCeilingHoldsWhateverTheBaselineSays(t *testing.T) {
	g := withCeiling(t, 50*time.Millisecond)
	d := g.Start(origin)
	now, seen := origin, false
	for i := range 100 {
		h := new(gradient.Histogram)
		if i > 30 && d.Limit > 5 {
			t.Errorf("window %d: limit %d", i, d.Limit)
		}
		latency := time.Duration(d.Limit) * 10 * time.Millisecond // one worker
		for range 100 {
			h.Add(latency)
		}
		now = now.Add(time.Second)
		d = g.Next(now, &gradient.Window{
			Limit: d.Limit, Elapsed: time.Second, InFlight: float64(d.Limit), MaxInFlight: d.Limit,
			Admitted: 100, Refused: 100, Completed: 100, Saturated: true, Latency: h,
		})
		seen = seen || d.Reason == gradient.ReasonLatency
	}
	if !seen {
		t.Error("the ceiling never spoke")
	}
}

// A call that was given up after the ceiling proves that it was exceeded, even if most
// were and no quantile is known.
func TestCeilingCountsCallersWhoGaveUp(t *testing.T) {
	g := withCeiling(t, 50*time.Millisecond)
	g.Start(origin)
	g.Next(origin, steady(20, true, 0))
	w := steady(20, true, 10)
	w.Latency = new(gradient.Histogram)
	for range 100 {
		w.Latency.AddCensored(100 * time.Millisecond)
	}
	if d := g.Next(origin.Add(time.Second), w); d.Limit >= 20 || d.Reason != gradient.ReasonLatency {
		t.Errorf("%+v", d)
	}
}
