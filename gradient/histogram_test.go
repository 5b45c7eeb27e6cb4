package gradient_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
)

// observation is a latency, or a lower bound of one.
type observation struct {
	d   time.Duration
	cut bool
}

func observations() *rapid.Generator[[]observation] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) observation {
		e := rapid.Float64Range(3.1, 10.5).Draw(t, "log10 ns") // 1.3 µs to 31 s
		return observation{d: time.Duration(math.Pow(10, e)), cut: rapid.IntRange(0, 3).Draw(t, "cut") == 0}
	}), 1, 80)
}

func fill(list []observation) *gradient.Histogram {
	h := new(gradient.Histogram)
	for _, o := range list {
		if o.cut {
			h.AddCensored(o.d)
		} else {
			h.Add(o.d)
		}
	}
	return h
}

// kaplanMeier is the estimator by its definition, on the exact latencies. The
// tolerance is for cuts and events that share a bucket: it moves cuts a bucket up.
func kaplanMeier(list []observation, q float64) (time.Duration, bool) {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b observation) int { return cmp.Compare(a.d, b.d) })
	alive := 1.0
	for i, o := range sorted {
		if o.cut {
			continue
		}
		alive *= 1 - 1/float64(len(sorted)-i)
		if alive <= 1-q+1e-12 {
			return o.d, true
		}
	}
	return 0, false
}

func TestQuantileIsKaplanMeier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Latencies in buckets of their own, so that the order within a bucket,
		// which a histogram cannot know, does not matter.
		list := observations().Draw(t, "observations")
		for i := range list {
			step := int(math.Log(float64(list[i].d)) / math.Log(1.08))
			list[i].d = time.Duration(math.Pow(1.08, float64(step)))
			list[i].cut = list[i].cut && step%2 == 0
			if !list[i].cut && step%2 == 0 {
				list[i].d = time.Duration(math.Pow(1.08, float64(step+1)))
			}
		}
		q := rapid.Float64Range(0.01, 0.99).Draw(t, "q")
		got, known := fill(list).Quantile(q)
		want, wantKnown := kaplanMeier(list, q)
		if known != wantKnown {
			t.Fatalf("known %v, want %v", known, wantKnown)
		}
		if ratio := float64(got) / float64(want); known && (ratio < 0.96 || ratio > 1.04) {
			t.Fatalf("quantile %v is %v, want %v", q, got, want)
		}
	})
}

// L12: an attempt that was cut short may raise an estimate and never lowers it.
func TestCutShortNeverLowersAQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := observations().Draw(t, "observations")
		q := rapid.Float64Range(0.01, 0.99).Draw(t, "q")
		before, known := fill(list).Quantile(q)
		if !known {
			t.Skip("unknown")
		}
		list = append(list, observation{d: observations().Draw(t, "more")[0].d, cut: true})
		after, stillKnown := fill(list).Quantile(q)
		if stillKnown && after < before {
			t.Fatalf("cut short at %v, the quantile %v fell from %v to %v", list[len(list)-1].d, q, before, after)
		}
	})
}

func TestMergeIsTheSameAsAddingAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := observations().Draw(t, "a"), observations().Draw(t, "b")
		merged, all := fill(a), fill(append(slices.Clone(a), b...))
		merged.Merge(fill(b))
		merged.Merge(new(gradient.Histogram))
		if merged.Count() != all.Count() || merged.Censored() != all.Censored() || math.Abs(merged.CV2()-all.CV2()) > 1e-6 {
			t.Fatalf("count %d, %d; cut %d, %d; cv2 %v, %v", merged.Count(), all.Count(), merged.Censored(), all.Censored(), merged.CV2(), all.CV2())
		}
		for _, q := range []float64{0.05, 0.25, 0.5, 0.95} {
			x, xk := merged.Quantile(q)
			y, yk := all.Quantile(q)
			if x != y || xk != yk {
				t.Fatalf("quantile %v: %v, %v", q, x, y)
			}
		}
		merged.Reset()
		if _, known := merged.Quantile(0.5); known || merged.Count() != 0 || merged.CV2() != 0 || merged.Mean() != 0 {
			t.Fatal("not empty after Reset")
		}
	})
}

func TestHistogramTakesAnyLatency(t *testing.T) {
	h := new(gradient.Histogram)
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1, time.Microsecond, 67 * time.Second, time.Hour, math.MaxInt64} {
		h.Add(d)
		h.AddCensored(d)
		if c := h.CV2(); math.IsNaN(c) || math.IsInf(c, 0) {
			t.Errorf("CV2 %v after %v", c, d)
		}
	}
	if h.Count() != 16 || h.Censored() != 8 {
		t.Errorf("count %d, cut %d", h.Count(), h.Censored())
	}
	for _, q := range []float64{math.NaN(), math.Inf(1), -1, 0, 1, 2} {
		if d, known := h.Quantile(q); known {
			t.Errorf("quantile %v is %v", q, d)
		}
	}
	if d, known := new(gradient.Histogram).Quantile(0.5); known {
		t.Errorf("the median of nothing is %v", d)
	}
	only := new(gradient.Histogram)
	only.AddCensored(time.Second)
	if d, known := only.Quantile(0.5); known {
		t.Errorf("the median of nothing but cuts is %v", d)
	}
}

func TestQuantileIsCloseToTheTruth(t *testing.T) {
	h := new(gradient.Histogram)
	for i := range 100_000 {
		h.Add(time.Duration(i+1) * 10 * time.Microsecond) // even from 10 µs to 1 s
	}
	for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 0.99, 0.999} {
		got, _ := h.Quantile(q)
		want := time.Duration(q * float64(time.Second))
		if ratio := float64(got) / float64(want); ratio < 0.995 || ratio > 1.005 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if m := h.Mean(); m < 499*time.Millisecond || m > 501*time.Millisecond {
		t.Errorf("mean %v", m)
	}
	if c := h.CV2(); math.Abs(c-1.0/3) > 0.01 {
		t.Errorf("squared coefficient of variation %v, want a third", c)
	}
}

func TestHistogramDoesNotAllocate(t *testing.T) {
	h, o := new(gradient.Histogram), new(gradient.Histogram)
	o.Add(time.Millisecond)
	if n := testing.AllocsPerRun(100, func() {
		h.Add(time.Millisecond)
		h.AddCensored(time.Second)
		h.Merge(o)
		h.Quantile(0.5)
		h.Reset()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	h := new(gradient.Histogram)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Add(time.Duration(i & (1<<30 - 1)))
	}
}
