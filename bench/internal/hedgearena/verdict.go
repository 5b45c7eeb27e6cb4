package hedgearena

import (
	"fmt"
	"math"
	"slices"
)

// Median is the median over the seeds that finished, of which there must be one.
func (r *Row) Median(of func(*PhaseFigures) float64) float64 {
	var x []float64
	for _, f := range r.Finished() {
		x = append(x, of(&f.Total))
	}
	return median(x)
}

// Difference is the median over the seeds of what hedging changed, and the worst seed.
// Failed is in points, P99 in percent.
type Difference struct {
	Failed      float64 `json:"failed_points"`
	FailedWorst float64 `json:"failed_points_worst"`
	P99         float64 `json:"p99_percent"`
	P99Worst    float64 `json:"p99_percent_worst"`
	Seeds       int     `json:"seeds"`
}

// Difference compares the row with its base, seed by seed. It returns false if there is
// no base or no seed that both finished.
func (r *Row) Difference() (Difference, bool) {
	var failed, p99 []float64
	r.pairs(func(f, base *Figures) {
		failed = append(failed, f.Total.FailedPercent-base.Total.FailedPercent)
		p99 = append(p99, 100*(f.Total.P99/base.Total.P99-1))
	})
	if len(failed) == 0 {
		return Difference{}, false
	}
	return Difference{
		Failed: median(failed), FailedWorst: slices.Max(failed),
		P99: median(p99), P99Worst: slices.Max(p99), Seeds: len(failed),
	}, true
}

// pairs calls f for each seed that the row and its base finished.
func (r *Row) pairs(f func(f, base *Figures)) {
	if r.Base == nil {
		return
	}
	for k := range r.Figures {
		if r.Figures[k] != nil && r.Base.Figures[k] != nil {
			f(r.Figures[k], r.Base.Figures[k])
		}
	}
}

// Judgement is what became of a target.
type Judgement struct {
	What string `json:"target"`
	// Value is the median of the seeds. It is infinite if it was never reached.
	Value          float64 `json:"-"`
	Met, Stretched bool    `json:"-"`
	// Law tells that it is one of the two that every row has: hedging never hurts.
	Law bool `json:"-"`
}

// Judged reports whether the row is held against targets: ours is, behind a limit.
func (r *Row) Judged() bool { return r.Policy.Name == OurName && !r.Limit.None() }

// Judge holds the row against the law that hedging never hurts and the targets of its
// scenario. There is nothing to judge if the row is not judged or no seed finished.
func (r *Row) Judge() []Judgement {
	d, ok := r.Difference()
	if !r.Judged() || !ok {
		return nil
	}
	base := r.Base.Policy.Name
	all := []Judgement{
		{What: fmt.Sprintf("failed ≤ %s + %g points", base, failedPoints), Value: d.Failed, Met: d.Failed <= failedPoints, Law: true},
		{What: fmt.Sprintf("p99 ≤ %s + %d %%", base, p99Percent), Value: d.P99, Met: d.P99 <= p99Percent, Law: true},
	}
	for i := range r.Scenario.Targets {
		t := &r.Scenario.Targets[i]
		if !t.about(r.Load) {
			continue
		}
		x := t.value(r)
		all = append(all, Judgement{What: t.String(), Value: x, Met: x <= t.Bound, Stretched: t.Stretch != 0 && x <= t.Stretch})
	}
	return all
}

// value is the median that a target is about.
func (t *Target) value(r *Row) float64 {
	var x []float64
	if !t.Paired {
		for _, f := range r.Finished() {
			x = append(x, t.Metric.of(f, t.Phase))
		}
		return median(x)
	}
	r.pairs(func(f, base *Figures) {
		a, b := t.Metric.of(f, t.Phase), t.Metric.of(base, t.Phase)
		if math.IsInf(b, 1) {
			x = append(x, 0) // the base never came so far: nothing can be worse
			return
		}
		x = append(x, a-b)
	})
	return median(x)
}

// median of at least one number.
func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	n := len(x)
	if n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[n/2]
}
