package sizing

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func mustTable(t *testing.T, text string) *Table {
	t.Helper()
	x, err := ParseTable(text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s is %.5g, want %.5g ± %g %%", what, got, want, 100*tolerance)
	}
}

// Two points of a log-normal latency are all of it, up to where the tail is cut.
func TestTwoPointsAreLogNormal(t *testing.T) {
	want := logNormal{0.010, 0.100}
	x := mustTable(t, "p50=10ms, p99=100ms")
	for _, u := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999} {
		near(t, percentile(u), x.Quantile(u), want.Quantile(u), 1e-6)
	}
	near(t, "mean", x.Mean(), want.Mean(), 0.005)
	if x.Quantile(0.999999) != x.Quantile(furthest) {
		t.Error("the tail goes on beyond p99.99")
	}
}

// Any table has its points, and grows from one to the next.
func TestTableGoesThroughItsPoints(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var points []Point
		q, d := 0.5*source.Float64(), time.Duration(1+source.IntN(1e7))
		for range 2 + source.IntN(6) {
			points = append(points, Point{max(q, 0.001), d})
			q += (1 - q) * source.Float64() * 0.9
			d += time.Duration(source.IntN(1e9))
		}
		x, err := NewTable(points)
		if err != nil {
			t.Fatalf("%v: %v", points, err)
		}
		for _, p := range points {
			near(t, p.String(), x.Quantile(p.Quantile), p.Latency.Seconds(), 1e-6)
		}
		last := 0.0
		for i := 1; i < 1000; i++ {
			v := x.Quantile(float64(i) / 1000)
			if !(v >= last) {
				t.Fatalf("%v: p%g is %v after %v", points, float64(i)/10, v, last)
			}
			last = v
		}
	}
}

func TestTableSaysWhatItsTailIs(t *testing.T) {
	for text, want := range map[string]string{
		"p50=40ms p99=900ms p99.9=2.5s": "beyond p99.9 the slope of the last stretch goes on to p99.99=5.8s, and nothing is slower",
		"p50=1ms p99.995=2ms":           "nothing is slower than p99.995=2ms",
	} {
		if got := mustTable(t, text).Tail(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Beyond the last point nothing grows to more than a point may be, and where p99 is beyond it, a
// note says so.
func TestTableDoesNotInventHours(t *testing.T) {
	for _, tt := range []struct {
		text string
		most float64 // of all, in seconds
		tail string
		note string
	}{
		{"p50=1ms p75=10m", 3600, "beyond p75 the slope of the last stretch goes on to p77.", "the percentiles end at p75, so p99 is not known: 1h0m0s goes on"},
		{"p50=1ms p95=1h", 3600, "beyond p95 the slope of the last stretch goes on to p95=1h0m0s", "the percentiles end at p95, so p99 is not known: 1h0m0s goes on"},
		{"p50=10ms p95=10ms", 0.01, "p99.99=10ms", "p99 is not known: 10ms goes on"},
		{"p50=40ms p99=900ms", 9.3, "p99.99=", ""},
	} {
		x := mustTable(t, tt.text)
		if most := x.Quantile(1); most > tt.most*(1+1e-9) || x.Mean() > tt.most || !strings.Contains(x.Tail(), tt.tail) {
			t.Errorf("%s: at most %v s, mean %v s, %s", tt.text, most, x.Mean(), x.Tail())
		}
		if notes := TableInput("table", x, 0).Notes; (len(notes) > 0) != (tt.note != "") || !strings.Contains(strings.Join(notes, ""), tt.note) {
			t.Errorf("%s: notes %q", tt.text, notes)
		}
	}
}

// Each error names the entry.
func TestParseTableErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "a table has at least two percentiles",
		"p50=1ms":                              "a table has at least two percentiles",
		"p50=1ms 99=2ms":                       `"99=2ms" is not a percentile such as p99=900ms`,
		"p50=1ms p99":                          `"p99" is not a percentile such as p99=900ms`,
		"p50=1ms p99=2":                        `"p99=2" is not a percentile such as p99=900ms`,
		"p50=1ms p" + strings.Repeat("9", 100): `"p` + strings.Repeat("9", 79) + `"… is not a percentile such as p99=900ms`,
		"p50=1ms pNaN=2ms":                     "pNaN=2ms is not above p0 and below p100",
		"p50=1ms p100=2ms":                     "p100=2ms is not above p0 and below p100",
		"p50=0s p99=2ms":                       "p50=0s is not above 0 and at most 1h0m0s",
		"p50=1ms p99=2h":                       "p99=2h0m0s is not above 0 and at most 1h0m0s",
		"p50=1ms p50=2ms":                      "p50 is given twice",
		"p99=1ms p50=2ms":                      "p99=1ms is less than p50=2ms",
		"p90=1ms p99=2ms":                      "the lowest percentile is p90: the median or a lower one is needed",
	} {
		if _, err := ParseTable(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestLatenciesAreRoundedToThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		7:                       7,
		1234 * time.Microsecond: 1230 * time.Microsecond,
		75300409:                75300 * time.Microsecond,
		9996 * time.Millisecond: 10 * time.Second,
	} {
		if got := roundLatency(d); got != want {
			t.Errorf("%v is rounded to %v, want %v", d, got, want)
		}
	}
	if len(strings.Fields(Point{0.999, 1234567}.String())) != 1 {
		t.Error("a point is more than a word")
	}
}
