package sizing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

const (
	// maxLatency is more than a latency may be.
	maxLatency = time.Hour
	// furthest is the share of calls up to which the last stretch of a table goes on.
	furthest = 0.9999
	// meanSteps is in how many steps a quantile function is integrated.
	meanSteps = 20000
)

// Point is a percentile: a share Quantile of the calls takes at most Latency.
type Point struct {
	Quantile float64
	Latency  time.Duration
}

// Table is a latency by some of its percentiles. Between two of them its logarithm is linear in
// the quantile of the normal distribution, so two points make a log-normal latency, and more of
// them stretches of log-normal ones. It grows from point to point. Before the first point
// and beyond the last the nearest stretch goes on, to the 99.99th percentile if the last point
// is not further, and to an hour at most: nothing is slower than that.
type Table struct {
	z, ln []float64 // of the points
	end   float64   // z beyond which nothing grows: where the latency is maxLatency at most
	mean  float64
	last  Point
}

// NewTable returns the latency with the points, which are in any order. There must be two of
// them, one at the median or below, and a higher percentile must not be less.
func NewTable(points []Point) (*Table, error) {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b Point) int {
		switch {
		case a.Quantile < b.Quantile:
			return -1
		case a.Quantile > b.Quantile:
			return 1
		}
		return 0
	})
	t := &Table{}
	for i, p := range points {
		switch {
		case !(p.Quantile > 0 && p.Quantile < 1):
			return nil, fmt.Errorf("%s is not above p0 and below p100", p)
		case p.Latency <= 0 || p.Latency > maxLatency:
			return nil, fmt.Errorf("%s is not above 0 and at most %v", p, maxLatency)
		case i > 0 && p.Quantile == points[i-1].Quantile:
			return nil, fmt.Errorf("%s is given twice", percentile(p.Quantile))
		case i > 0 && p.Latency < points[i-1].Latency:
			return nil, fmt.Errorf("%s is less than %s", p, points[i-1])
		}
		t.z = append(t.z, normal(p.Quantile))
		t.ln = append(t.ln, math.Log(p.Latency.Seconds()))
	}
	switch {
	case len(points) < 2:
		return nil, errors.New("a table has at least two percentiles")
	case points[0].Quantile > 0.5:
		return nil, fmt.Errorf("the lowest percentile is %s: the median or a lower one is needed", percentile(points[0].Quantile))
	}
	t.last = points[len(points)-1]
	t.end = max(normal(furthest), t.z[len(t.z)-1])
	// Nor does it go further than a latency may be.
	n := len(t.z)
	if slope := (t.ln[n-1] - t.ln[n-2]) / (t.z[n-1] - t.z[n-2]); slope > 0 {
		t.end = min(t.end, max(t.z[n-1], t.z[n-1]+(math.Log(maxLatency.Seconds())-t.ln[n-1])/slope))
	}
	t.mean = meanOf(t.Quantile)
	return t, nil
}

// ParseTable reads a table such as "p50=40ms p90=75ms p99=900ms p99.9=2.5s".
func ParseTable(text string) (*Table, error) {
	var points []Point
	for _, field := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
		name, value, ok := strings.Cut(field, "=")
		share, isP := strings.CutPrefix(name, "p")
		q, err := strconv.ParseFloat(share, 64)
		d, derr := time.ParseDuration(value)
		if !ok || !isP || err != nil || derr != nil {
			return nil, fmt.Errorf("%s is not a percentile such as p99=900ms", brief.Quote(field))
		}
		points = append(points, Point{Quantile: q / 100, Latency: d})
	}
	return NewTable(points)
}

// Quantile is the latency in seconds that a share u of the calls does not exceed.
func (t *Table) Quantile(u float64) float64 {
	z := min(normal(u), t.end)
	i := 0
	for i < len(t.z)-2 && t.z[i+1] <= z {
		i++
	}
	return math.Exp(t.ln[i] + (z-t.z[i])*(t.ln[i+1]-t.ln[i])/(t.z[i+1]-t.z[i]))
}

// Mean is in seconds.
func (t *Table) Mean() float64 { return t.mean }

// Service is the latency of any attempt.
func (t *Table) Service(_, _ int, _ time.Duration, u float64) float64 { return t.Quantile(u) }

// Tail says what is beyond the last point.
func (t *Table) Tail() string {
	if t.last.Quantile >= furthest {
		return fmt.Sprintf("nothing is slower than %s", t.last)
	}
	return fmt.Sprintf("beyond %s the slope of the last stretch goes on to %s, and nothing is slower",
		percentile(t.last.Quantile), Point{(1 + math.Erf(t.end/math.Sqrt2)) / 2, seconds(t.Quantile(furthest))})
}

// String is as ParseTable reads it.
func (p Point) String() string {
	return fmt.Sprintf("%s=%v", percentile(p.Quantile), roundLatency(p.Latency))
}

// percentile names a quantile.
func percentile(q float64) string { return fmt.Sprintf("p%.6g", 100*q) }

// normal is the quantile of the normal distribution.
func normal(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }

// meanOf integrates a quantile function.
func meanOf(quantile func(float64) float64) float64 {
	sum := 0.0
	for i := range meanSteps {
		sum += quantile((float64(i) + 0.5) / meanSteps)
	}
	return sum / meanSteps
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// roundLatency rounds to three digits, which are all that is known.
func roundLatency(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
