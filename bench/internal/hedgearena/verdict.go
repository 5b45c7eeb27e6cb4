package hedgearena

import (
	"fmt"
	"math"
	"slices"
)

// Median is the median over the seeds that finished, of which there must be one, of all
// phases but the first.
func (r *Row) Median(of func(*PhaseFigures) float64) float64 {
	return r.MedianOf(func(f *Figures) float64 { return of(&f.Total) })
}

// MedianOf is the same of any figure.
func (r *Row) MedianOf(of func(*Figures) float64) float64 {
	var x []float64
	for _, f := range r.Finished() {
		x = append(x, of(f))
	}
	return median(x)
}

// Difference is the median over the seeds of what hedging changed, the standard error of
// that median, and the worst seed. Failed is in points, P99 in percent.
type Difference struct {
	Failed      float64 `json:"failed_points"`
	FailedError float64 `json:"failed_points_error"`
	FailedWorst float64 `json:"failed_points_worst"`
	P99         float64 `json:"p99_percent"`
	P99Error    float64 `json:"p99_percent_error"`
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
		Failed: median(failed), FailedError: standardError(failed), FailedWorst: slices.Max(failed),
		P99: median(p99), P99Error: standardError(p99), P99Worst: slices.Max(p99), Seeds: len(failed),
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
	What string
	// Value is the median of the seeds. It is infinite if it was never reached.
	Value float64
	// Error is the standard error of the median.
	Error          float64
	Met, Stretched bool
	// Clear tells that it is missed by more than two standard errors: hardly by chance.
	Clear bool
	// Law tells that it is one of the two that every row has: hedging never hurts.
	Law bool
}

func newJudgement(what string, value, err, bound float64) Judgement {
	met := value <= bound
	return Judgement{What: what, Value: value, Error: err, Met: met, Clear: !met && !(value-2*err <= bound)}
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
		newJudgement(fmt.Sprintf("failed ≤ %s + %g points", base, failedPoints), d.Failed, d.FailedError, failedPoints),
		newJudgement(fmt.Sprintf("p99 ≤ %s + %d %%", base, p99Percent), d.P99, d.P99Error, p99Percent),
	}
	all[0].Law, all[1].Law = true, true
	for i := range r.Scenario.Targets {
		t := &r.Scenario.Targets[i]
		if !t.about(r.Load) {
			continue
		}
		x := t.values(r)
		j := newJudgement(t.String(), median(x), standardError(x), t.Bound)
		j.Stretched = t.Stretch != 0 && j.Value <= t.Stretch
		all = append(all, j)
	}
	return all
}

// values are what a target is about, one for each seed.
func (t *Target) values(r *Row) []float64 {
	var x []float64
	if !t.Paired {
		for _, f := range r.Finished() {
			x = append(x, t.Metric.Of(f, t.Phase))
		}
		return x
	}
	r.pairs(func(f, base *Figures) {
		a, b := t.Metric.Of(f, t.Phase), t.Metric.Of(base, t.Phase)
		if math.IsInf(b, 1) {
			x = append(x, 0) // the base never came so far: nothing can be worse
			return
		}
		x = append(x, a-b)
	})
	return x
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

// standardError is that of the median of so many numbers, if they are about normal. It is 0
// for one, of which nothing is known, and if one is infinite.
func standardError(x []float64) float64 {
	n := float64(len(x))
	if n < 2 {
		return 0
	}
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	if e := math.Sqrt(math.Pi / 2 * squares / (n - 1) / n); !math.IsNaN(e) && !math.IsInf(e, 0) {
		return e
	}
	return 0
}
