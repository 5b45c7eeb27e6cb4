package gradient_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/proptest"
)

// live is what a limiter might see of a server with a FIFO queue in one window under a
// limit: not any window, but one in which all numbers agree.
type live struct {
	workers int
	service time.Duration
	demand  float64 // in flight if there were no limit
	drops   float64 // share refused by the server
}

func lives() *rapid.Generator[live] {
	return rapid.Custom(func(t *rapid.T) live {
		return live{
			workers: rapid.IntRange(1, 200).Draw(t, "workers"),
			service: time.Duration(rapid.IntRange(1, 500).Draw(t, "service in ms")) * time.Millisecond,
			demand:  rapid.Float64Range(0.5, 500).Draw(t, "demand"),
			drops:   rapid.SampledFrom([]float64{0, 0, 0, 0.01, 0.1, 0.5}).Draw(t, "drops"),
		}
	})
}

// window returns the window. Every other call takes a tenth more than the mean, and
// every other a tenth less.
func (l live) window(limit int, saturable bool) *gradient.Window {
	n := min(l.demand, float64(limit))
	saturated := l.demand >= float64(limit)
	if !saturable {
		n, saturated = min(l.demand, 0.9*float64(limit)), false
	}
	latency := l.service.Seconds() * max(1, n/float64(l.workers))
	x := n / latency
	const calls = 100
	h := new(gradient.Histogram)
	for i := range calls {
		h.Add(time.Duration(latency * (0.9 + 0.2*float64(i%2)) * 1e9))
	}
	elapsed := time.Duration(calls / x * 1e9)
	w := &gradient.Window{
		Limit: limit, Elapsed: elapsed, InFlight: n, MaxInFlight: int(n), Admitted: calls,
		Completed: calls, Saturated: saturated, Latency: h,
		Drops: int(l.drops / (1 - l.drops) * calls),
	}
	if saturated {
		w.Refused = int(calls * (l.demand - n) / n)
	}
	return w
}

func adaptive(t testing.TB) map[string]func() gradient.Algorithm {
	return map[string]func() gradient.Algorithm{
		"gradient": func() gradient.Algorithm { return newGradient(t) },
		"ceiling":  func() gradient.Algorithm { return withCeiling(t, 300*time.Millisecond) },
		"aimd": func() gradient.Algorithm {
			return must[*gradient.AIMD](t)(gradient.NewAIMD(gradient.AIMDConfig{Target: 300 * time.Millisecond}))
		},
	}
}

// A limit that was never needed has never grown, whatever else happened.
func TestUnsaturatedNeverGrows(t *testing.T) {
	for name, make := range adaptive(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := make()
				now := origin
				d := a.Start(now)
				first := d.Limit
				for range rapid.IntRange(1, 50).Draw(t, "windows") {
					w := proptest.Windows().Draw(t, "any")
					if rapid.Bool().Draw(t, "live") {
						w = *lives().Draw(t, "life").window(d.Limit, false)
					}
					w.Saturated, w.Refused, w.Waited = false, 0, 0
					now = now.Add(min(max(w.Elapsed, 0), time.Hour))
					if d = a.Next(now, &w); d.Limit > first {
						t.Fatalf("limit %d, from %d, and it was never needed (%s)", d.Limit, first, d.Reason)
					}
				}
			})
		})
	}
}

// Drops never make a limit more generous: after a window with drops it is at most what
// it was, or what it would be after the same window without them.
func TestDropsNeverRaise(t *testing.T) {
	for name, make := range adaptive(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a, other := make(), make()
				now := origin
				d := a.Start(now)
				other.Start(now)
				life := lives().Draw(t, "life")
				for range rapid.IntRange(0, 60).Draw(t, "windows before") {
					if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
						life = lives().Draw(t, "other life")
					}
					w := life.window(d.Limit, true)
					now = now.Add(w.Elapsed + d.Settle)
					d = a.Next(now, w)
					if twin := other.Next(now, w); twin != d {
						t.Fatal("not pure")
					}
				}
				w := lives().Draw(t, "last life").window(d.Limit, true)
				now = now.Add(w.Elapsed + d.Settle)
				experiment := func(d gradient.Decision) bool { return d.Probe || d.Reason == gradient.ReasonKnee }
				before := d
				w.Drops = 0
				without := other.Next(now, w)
				w.Drops = rapid.IntRange(3, 1000).Draw(t, "drops")
				with := a.Next(now, w)
				if experiment(before) || experiment(without) {
					return // the limit does not say what it was set to
				}
				if with.Limit > max(d.Limit, without.Limit) {
					t.Fatalf("limit %d, then %d after %d drops (%s), and %d without them (%s)",
						d.Limit, with.Limit, w.Drops, with.Reason, without.Limit, without.Reason)
				}
			})
		})
	}
}

// Of calls that are cut short one knows more than nothing, so a limit may react to them.
// But no estimate falls by one.
func TestCutShortNeverLowersAnEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := observations().Draw(t, "observations")
		h := fill(list)
		cut := time.Duration(math.Pow(10, rapid.Float64Range(3.1, 10.5).Draw(t, "log10 ns")))
		for _, q := range []float64{0.25, 0.5, 0.9} {
			before, known := h.Quantile(q)
			more := fill(append(slices.Clone(list), observation{cut, true}))
			after, still := more.Quantile(q)
			if still && (!known || after < before) {
				t.Fatalf("quantile %v: %v (%v) before a cut at %v, %v after it", q, before, known, cut, after)
			}
		}
	})
}

// At the level of an algorithm: callers who give up do not make a service look fast.
func TestCutShortNeverRaisesAboveTheTruth(t *testing.T) {
	const latency = 400 * time.Millisecond
	for _, percent := range []int{10, 50, 70} {
		a := must[*gradient.AIMD](t)(gradient.NewAIMD(gradient.AIMDConfig{Target: 300 * time.Millisecond}))
		now := origin
		d := a.Start(now)
		for range 50 {
			w := &gradient.Window{Limit: d.Limit, Elapsed: time.Second, InFlight: 20, Completed: 100, Saturated: true, Latency: new(gradient.Histogram)}
			for i := range 100 {
				if i < percent {
					w.Latency.AddCensored(time.Millisecond)
				} else {
					w.Latency.Add(latency)
				}
			}
			now = now.Add(time.Second)
			d = a.Next(now, w)
		}
		if d.Limit > 1 {
			t.Errorf("%d %% gave up at once, the rest is above the target, and the limit is %d", percent, d.Limit)
		}
	}
}

// A service twice as slow at half the rate is the same service, in half the time. The
// buckets of a histogram are powers of two, so no digit of it differs.
func TestQuantilesScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := observations().Draw(t, "observations")
		double := slices.Clone(list)
		for i := range double {
			list[i].d = min(list[i].d, 30*time.Second)
			double[i].d = 2 * list[i].d
		}
		q := rapid.Float64Range(0.01, 0.99).Draw(t, "q")
		one, known := fill(list).Quantile(q)
		two, also := fill(double).Quantile(q)
		if known != also || max(two-2*one, 2*one-two) > 2 {
			t.Fatalf("quantile %v: %v (%v), and %v (%v) of twice the latencies", q, one, known, two, also)
		}
	})
}

// And the limit is found in the same windows, though a fast service has longer ones in
// terms of its latency.
func TestTimeScales(t *testing.T) {
	found := map[float64]float64{}
	for _, scale := range []float64{0.5, 1, 2, 5} {
		p := phase{length: 60 * scale, rate: 3000 / scale, workers: 20, mean: 0.010 * scale}
		got := simulate(t, newGradient(t), 2, p)[0]
		found[scale] = got.mean
		t.Logf("× %v: mean limit %.1f, good %.3f", scale, got.mean, got.good)
		if got.good < 0.98 {
			t.Errorf("× %v: %.3f good", scale, got.good)
		}
	}
	for scale, mean := range found {
		if r := mean / found[1]; r < 0.9 || r > 1.1 {
			t.Errorf("× %v: mean limit %.1f, and %.1f at × 1", scale, mean, found[1])
		}
	}
}

// Whatever the law of the service is, the limit settles near what can be busy: the mean
// of the limits is between it and twice its target for the queue more.
func TestAnyServiceSettlesNearCapacity(t *testing.T) {
	for name, service := range map[string]func(*rand.Rand, float64, int) float64{
		"exponential": func(r *rand.Rand, _ float64, _ int) float64 { return 0.010 * r.ExpFloat64() },
		"log-normal":  nil,
		"Pareto":      heavyTail,
		"two points": func(r *rand.Rand, _ float64, _ int) float64 {
			if r.Float64() < 0.1 {
				return 0.055
			}
			return 0.005
		},
		"constant": constant(0.010),
	} {
		for _, workers := range []int{5, 20, 60} {
			busy := float64(workers)
			got := simulate(t, newGradient(t), 1, phase{length: 30, rate: 150 * busy, workers: workers, mean: 0.010, service: service})[0]
			t.Logf("%s, %d workers: mean limit %.1f, %.1f %% good, p50 %.1f ms", name, workers, got.mean, 100*got.good, got.p50)
			room := 0.4 + 0.8*math.Sqrt(busy)
			if got.mean < busy || got.mean > busy+2.5*room || got.good < 0.9 {
				t.Errorf("%s, %d workers: mean limit %.1f, %.3f good", name, workers, got.mean, got.good)
			}
		}
	}
}

// Small limits neither stick nor vanish: with one, two or three workers most of their
// capacity is used from any small start, and when there are twenty, those are found.
func TestSmallLimitsLive(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		for initial := 1; initial <= 3; initial++ {
			for seed := range uint64(3) {
				g := must[*gradient.Gradient](t)(gradient.New(gradient.Config{Initial: initial}))
				busy := float64(workers)
				got := simulate(t, g, seed,
					phase{length: 60, rate: 150 * busy, workers: workers, mean: 0.010},
					phase{length: 10, rate: 3000, workers: 20, mean: 0.010})
				if got[0].good < 0.9 || got[0].mean > busy+6 {
					t.Errorf("%d workers from %d, seed %d: %.3f good, mean limit %.1f", workers, initial, seed, got[0].good, got[0].mean)
				}
				if s := got[1].secondsTo(18); s > 5 {
					t.Errorf("%d workers from %d, seed %d: %v s until 18 of 20 are busy", workers, initial, seed, s)
				}
			}
		}
	}
}

// A share of calls that fails whatever the load is does not close the way for the others,
// if the server refuses them, and if a few run into their deadline. It costs them a little:
// the limit stays at what they need and the target for the queue, and does not grow beyond
// while there are drops, so that a burst of traffic meets it. With more late ones it
// cannot be told from an overload: they are in flight for most of the time.
func TestSteadyFailuresDoNotRatchet(t *testing.T) {
	for name, p := range map[string]phase{
		"refused 5 %":  {failing: 0.05},
		"refused 30 %": {failing: 0.30},
		"refused 60 %": {failing: 0.60},
		"late 5 %":     {lost: 0.05},
	} {
		for _, load := range []float64{0.7, 1.5} {
			p.length, p.workers, p.mean = 80, 20, 0.010
			p.rate = load * 2000 / (1 - p.failing - p.lost)
			got := simulate(t, newGradient(t), 1, p)[0]
			// Of the offered calls the share that fails is never good.
			possible := min(1, 1/load)
			share := got.good * min(p.rate, p.capacity()) / p.rate / (1 - p.failing - p.lost) / possible
			t.Logf("%s at load %.1f: last limit %d, %.1f %% of the others good", name, load, got.last(), 100*share)
			if share < 0.75 || got.last() < 10 {
				t.Errorf("%s at load %.1f: last limit %d, %.3f of the others good", name, load, got.last(), share)
			}
		}
	}
}
