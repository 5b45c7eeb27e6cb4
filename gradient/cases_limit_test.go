package gradient_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

// between fails if a limit of the trace from a time on is not within the bounds.
func (r result) between(t *testing.T, from float64, lowest, highest int) {
	t.Helper()
	for _, d := range r.trace {
		if d.at >= from && (d.limit < lowest || d.limit > highest) {
			t.Errorf("limit %d (%s) after %.1f s, want %d to %d", d.limit, d.reason, d.at, lowest, highest)
			return
		}
	}
}

// Field case B22: a service so fast that latency times rate is below one does not take
// the limit to nothing, a collapse ends at Min, and is left again.
func TestLimitStaysInItsRange(t *testing.T) {
	fast := simulate(t, newGradient(t), 1, phase{length: 5, rate: 10_000, workers: 4, mean: 25e-6})[0]
	fast.between(t, 0, 1, 1000)
	if fast.rejected > 0.001 {
		t.Errorf("%.4f of 25 µs calls rejected", fast.rejected)
	}
	g := must[*gradient.Gradient](t)(gradient.New(gradient.Config{Min: 10, Max: 50}))
	got := simulate(t, g, 1,
		phase{length: 20, rate: 2000, workers: 30, mean: 0.010},
		phase{length: 100, rate: 2000, workers: 30, mean: 1},
		phase{length: 20, rate: 6000, workers: 60, mean: 0.010})
	for _, r := range got {
		r.between(t, 0, 10, 50)
	}
	if s := got[2].secondsTo(45); s > 10 {
		t.Errorf("%.1f s until the limit was at its highest again", s)
	}
	last := got[2].trace[len(got[2].trace)*3/4:]
	if least := slices.MinFunc(last, func(a, b decided) int { return a.limit - b.limit }); least.limit < 34 {
		t.Errorf("limit %d (%s) with Max 50 and 60 workers: a probe may lower it to 0.7, and nothing else", least.limit, least.reason)
	}
}

// Field case B24: one call that is faster than all others is no baseline, and a stall of
// everything now and then does not move the limit for long.
func TestOddSamplesChangeNothing(t *testing.T) {
	lucky := 0
	service := func(odd float64) func(*rand.Rand, float64, int) float64 {
		return func(r *rand.Rand, at float64, _ int) float64 {
			if at >= 30 && lucky == 0 {
				lucky++
				return odd
			}
			return 0.300 * (1 + 0.05*r.NormFloat64())
		}
	}
	for _, odd := range []float64{0.150, 0.001} {
		lucky = 0
		got := simulate(t, newGradient(t), 1, phase{length: 60, rate: 50 / 0.3, workers: 200, mean: 0.300, service: service(odd)})[0]
		before := 0
		for _, d := range got.trace {
			switch {
			case d.at < 30:
				before = d.limit
			case float64(d.limit) < 0.9*float64(before):
				t.Fatalf("one call of %v s: limit %d (%s) after %.1f s, %d before", odd, d.limit, d.reason, d.at, before)
			}
		}
	}
	steadily := phase{length: 60, rate: 3000, workers: 10, mean: 0.005}
	frozen := steadily
	frozen.service = func(r *rand.Rand, at float64, _ int) float64 {
		s := logNormal(r, 0.005, 0.3)
		if math.Floor((at+s)/10) > math.Floor(at/10) {
			s += 0.2
		}
		return s
	}
	want, got := simulate(t, newGradient(t), 1, steadily)[0], simulate(t, newGradient(t), 1, frozen)[0]
	if r := got.mean / want.mean; r < 0.8 || r > 1.2 {
		t.Errorf("mean limit %.1f with a stall of 0.2 s every 10 s, and %.1f without", got.mean, want.mean)
	}
}

// Field case B25: callers who cancel are no drops and no samples of a fast service.
func TestCancelledCallsDoNotMoveTheLimit(t *testing.T) {
	quiet := phase{length: 40, rate: 1500, workers: 1000, mean: 0.020}
	impatient := quiet
	impatient.impatient, impatient.patience = 0.5, 0.005
	want, got := simulate(t, newGradient(t), 1, quiet)[0], simulate(t, newGradient(t), 1, impatient)[0]
	// Half of them are gone after 5 ms, so less is in flight. Nobody may be refused.
	need := 1500 * (0.5*0.020 + 0.5*0.005)
	if got.last() < int(need) || got.rejected > 0.002 || want.rejected > 0.002 {
		t.Errorf("limit %d, %.4f rejected with callers who cancel; %d, %.4f without", got.last(), got.rejected, want.last(), want.rejected)
	}
	for _, d := range got.trace {
		if d.reason == gradient.ReasonDrops {
			t.Fatalf("%+v: a caller who cancels is no drop", d)
		}
	}
}

// Field case B26: under lasting overload the baseline stays what it is from one probe to
// the next, the limit stays alive, and nobody is refused much for it, even if a hundred
// clients probe together. What was admitted before a probe is not measured in it.
func TestProbesNeitherFreezeNorDriftNorDip(t *testing.T) {
	got := simulate(t, newGradient(t), 1,
		phase{length: 300, rate: 3000, workers: 20, mean: 0.010},
		phase{length: 60, rate: 3000, workers: 10, mean: 0.010})
	probes := 0
	for _, d := range got[0].trace {
		if d.reason == gradient.ReasonProbeEnd {
			probes++
		}
		if d.limit < 6 {
			t.Errorf("limit %d (%s) after %.1f s", d.limit, d.reason, d.at)
		}
	}
	if probes < 8 || got[0].p50 > 12 || got[0].good < 0.985 {
		t.Errorf("%d probes, p50 %.1f ms, %.3f good", probes, got[0].p50, got[0].good)
	}
	got[0].between(t, 280, 9, 30)
	got[1].between(t, 30, 6, 18)

	var fleet []*client
	for range 100 {
		fleet = append(fleet, &client{algorithm: newGradient(t)})
	}
	r := simulateAll(t, fleet, 1, phase{length: 30, rate: 15_000, workers: 200, mean: 0.020})[0]
	t.Logf("a hundred clients: %.3f good, fairness %.2f, p50 %.1f ms", r.good, r.fairness, r.p50)
	if r.good < 0.98 {
		t.Errorf("%.3f good with a hundred clients that probe together", r.good)
	}
}

// epochs fails if a probe does not begin a new epoch at each of its steps.
type epochs struct {
	*gradient.Gradient
	t *testing.T
}

func (e epochs) Next(now time.Time, w *gradient.Window) gradient.Decision {
	d := e.Gradient.Next(now, w)
	if (d.Probe || d.Reason == gradient.ReasonProbeEnd) && !d.NewEpoch {
		e.t.Errorf("%+v mixes calls admitted under another limit in", d)
	}
	return d
}

// Field case B26, as above.
func TestProbesMeasureOnlyTheirOwn(t *testing.T) {
	simulate(t, epochs{newGradient(t), t}, 1, phase{length: 60, rate: 3000, workers: 20, mean: 0.010})
}

// Field case B28: neither an overload without end nor a slow drift walks the limit up.
func TestOverloadDoesNotWalkTheLimitUp(t *testing.T) {
	got := simulate(t, newGradient(t), 1, phase{length: 200, rate: math.Inf(1), workers: 50, mean: 0.020})[0]
	t.Logf("closed loop: mean limit %.1f, last %d, %.3f good", got.mean, got.last(), got.good)
	if got.mean < 50 || got.mean > 75 || got.good < 0.95 {
		t.Errorf("closed loop: mean limit %.1f, %.3f of the capacity", got.mean, got.good)
	}
	drift := simulate(t, newGradient(t), 1,
		phase{length: 60, rate: 2000, workers: 20, mean: 0.020},
		phase{length: 600, rate: 2000, workers: 10, mean: 0.026, service: func(r *rand.Rand, at float64, _ int) float64 {
			return logNormal(r, 0.020*(1+0.6*at/600), 0.3)
		}})[1]
	t.Logf("drift: mean limit %.1f, last %d, %.3f good", drift.mean, drift.last(), drift.good)
	if drift.mean < 10 || drift.mean > 20 || drift.good < 0.95 {
		t.Errorf("half the workers and 6 %% slower a minute: mean limit %.1f, %.3f good", drift.mean, drift.good)
	}
}

// Field case B29: a server that refuses half of its load in 100 µs is neither a fast
// server nor one without capacity.
func TestFastRefusalsAreNoLatency(t *testing.T) {
	got := simulate(t, newGradient(t), 1,
		phase{length: 30, rate: 1500, workers: 20, mean: 0.010},
		phase{length: 60, rate: 4000, workers: 20, mean: 0.010, room: 10},
		phase{length: 30, rate: 1500, workers: 20, mean: 0.010})
	for i, r := range got {
		t.Logf("phase %d: mean limit %.1f, last %d, %.3f good, p50 %.1f ms", i, r.mean, r.last(), r.good, r.p50)
	}
	if got[1].mean < 15 || got[1].mean > 40 || got[1].good < 0.95 {
		t.Errorf("a server that sheds: mean limit %.1f, %.3f good", got[1].mean, got[1].good)
	}
	if got[2].rejected > 0.02 {
		t.Errorf("%.3f rejected afterwards", got[2].rejected)
	}
	// Half of the calls fail, and not by the load. That lowers the limit, but not below
	// what the others need, and a little for their queue.
	half := simulate(t, newGradient(t), 1, phase{length: 60, rate: 2400, workers: 20, mean: 0.010, failing: 0.5})[0]
	if half.rejected > 0.25 || half.last() < 12 {
		t.Errorf("limit %d, %.3f rejected, and the service has workers to spare", half.last(), half.rejected)
	}
}

// Field case B30: a trickle leaves the limit where it is, and a health check now and then
// is no baseline for the traffic of the morning.
func TestTrickleDoesNotMoveTheLimit(t *testing.T) {
	got := simulate(t, newGradient(t), 1,
		phase{length: 600, rate: 20, workers: 40, mean: 0.001},
		phase{length: 20, rate: 3000, workers: 40, mean: 0.020})
	got[0].between(t, 0, 20, 20)
	if got[1].p99 > 80 {
		t.Errorf("p99 %.1f ms after the trickle, with a service of 20 ms", got[1].p99)
	}
	night := simulate(t, newGradient(t), 1,
		phase{length: 8 * 3600, rate: 0.1, workers: 200, mean: 0.0002},
		phase{length: 60, rate: 600, workers: 200, mean: 0.050})
	if night[1].rejected > 0.05 {
		t.Errorf("%.3f of the calls rejected in the first minute of the morning", night[1].rejected)
	}
}

// Field case B31: with a clock that never moves the limit is a number in its range, and
// with one that ticks in 15 ms it is found about where a fine one finds it.
func TestCoarseClock(t *testing.T) {
	still := newGradient(t)
	still.Start(origin)
	h := new(gradient.Histogram)
	for range 1000 {
		h.Add(0)
	}
	for range 100 {
		d := still.Next(origin, &gradient.Window{Limit: 20, InFlight: 1, MaxInFlight: 1, Admitted: 1000, Completed: 1000, Saturated: true, Latency: h})
		if d.Limit != 20 {
			t.Fatalf("%+v, and no time has passed", d)
		}
	}
	p := phase{length: 20, rate: 10_000, workers: 20, mean: 0.003}
	fine := simulate(t, newGradient(t), 1, p)[0]
	coarse := simulateAll(t, []*client{{algorithm: newGradient(t), tick: 0.015}}, 1, p)[0]
	t.Logf("mean limit %.1f (good %.3f) by a fine clock, %.1f (good %.3f) by a coarse one", fine.mean, fine.good, coarse.mean, coarse.good)
	if r := coarse.mean / fine.mean; r < 0.7 || r > 1.3 {
		t.Errorf("mean limit %.1f by a clock of 15 ms, %.1f by a fine one", coarse.mean, fine.mean)
	}
}

// Field case B36: two classes of latency are no overload, and the limit recovers by
// itself after a change of the mix.
func TestTwoLatencyClassesAreNoOverload(t *testing.T) {
	classes := func(length, slow float64) phase {
		return phase{length: length, rate: 1100, workers: 5000, mean: 0.005 + 0.495*slow, service: func(r *rand.Rand, _ float64, _ int) float64 {
			if r.Float64() < slow {
				return 0.500
			}
			return 0.005
		}}
	}
	// Each mix has some time to be found in.
	got := simulate(t, newGradient(t), 1,
		classes(20, 0.1), classes(60, 0.1), classes(60, 0.5), classes(20, 0.1), classes(60, 0.1))
	for i, r := range got {
		t.Logf("phase %d: %.2f %% rejected, last limit %d", i, 100*r.rejected, r.last())
	}
	if got[1].rejected > 0.02 || got[4].rejected > 0.02 {
		t.Errorf("%.3f of the steady mix rejected, and %.3f when it was back", got[1].rejected, got[4].rejected)
	}
	// 278 are in flight where there were 60. It takes half a minute, which is why the
	// package comment advises a limiter for each class.
	if s := got[2].secondsTo(277); s > 40 {
		t.Errorf("%.0f s after the mix has changed until the limit is what it needs", s)
	}
}
