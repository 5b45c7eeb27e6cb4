package proptest

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
)

// Windows generates windows as a limiter may show them to an algorithm, and some
// that no sound limiter would: empty ones, a clock that stands still, more drops
// than calls, latencies of zero and of hours, a mean that is no number, none but
// calls that were cut short. Each has a histogram of its own.
func Windows() *rapid.Generator[gradient.Window] {
	return rapid.Custom(func(t *rapid.T) gradient.Window {
		count := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 100), rapid.Just(math.MaxInt32))
		latency := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Map(rapid.Float64Range(0, 14), func(e float64) time.Duration {
			return time.Duration(math.Pow(10, e)) // 1 ns to 28 h
		}))
		share := rapid.SampledFrom([]int{0, 1, 5, 10}).Draw(t, "tenths cut short")
		h := new(gradient.Histogram)
		for range rapid.IntRange(0, 60).Draw(t, "samples") {
			d := latency.Draw(t, "latency")
			if rapid.IntRange(0, 9).Draw(t, "cut short") < share {
				h.AddCensored(d)
			} else {
				h.Add(d)
			}
		}
		return gradient.Window{
			Limit:       rapid.IntRange(1, 2000).Draw(t, "limit"),
			Elapsed:     latency.Draw(t, "elapsed"),
			InFlight:    rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 2000), rapid.SampledFrom([]float64{-1, math.MaxFloat64, math.Inf(1), math.NaN()})).Draw(t, "in flight"),
			MaxInFlight: count.Draw(t, "max in flight"),
			Admitted:    count.Draw(t, "admitted"),
			Refused:     count.Draw(t, "refused"),
			Waited:      count.Draw(t, "waited"),
			Completed:   count.Draw(t, "completed"),
			Drops:       count.Draw(t, "drops"),
			Saturated:   rapid.Bool().Draw(t, "saturated"),
			Latency:     h,
		}
	})
}

// TestAlgorithm checks that the algorithms that make returns keep what a limiter
// relies on, whatever windows they are shown, and if the clock is set back now and
// then:
//
//   - the limit is within lowest and highest, at the start and always;
//   - no time in a decision is negative, and no reason is empty;
//   - they are pure: two that are shown the same decide the same. An algorithm
//     that draws random numbers must have make seed them alike.
//
// Make must return a fresh algorithm each time.
func TestAlgorithm(t *testing.T, lowest, highest int, make func() gradient.Algorithm) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_700_000_000, 0)
		one, other := make(), make()
		check := func(d, twin gradient.Decision) {
			switch {
			case d.Limit < lowest || d.Limit > highest:
				t.Fatalf("limit %d is not between %d and %d: %+v", d.Limit, lowest, highest, d)
			case d.Settle < 0 || d.MinLength < 0 || d.MinSamples < 0:
				t.Fatalf("a negative time or count: %+v", d)
			case d.Reason == "":
				t.Fatalf("a decision without a reason: %+v", d)
			case d != twin:
				t.Fatalf("not pure: shown the same, one decides %+v and its twin %+v", d, twin)
			}
		}
		check(one.Start(now), other.Start(now))
		for range rapid.IntRange(1, 40).Draw(t, "windows") {
			w := Windows().Draw(t, "window")
			now = now.Add(min(w.Elapsed, time.Hour))
			if rapid.IntRange(0, 9).Draw(t, "set back") == 0 {
				now = now.Add(-time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "by")))
			}
			first := one.Next(now, &w)
			check(first, other.Next(now, &w))
		}
	})
}
