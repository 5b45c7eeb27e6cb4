package sizing

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

const (
	// caseTimeout is how long clients wait in the cases.
	caseTimeout = 10 * time.Second
	// caseLoad and caseMost are the present and the highest rate of their sweep, as shares of the
	// capacity.
	caseLoad, caseMost = 0.4, 2
	// caseCalls is about how many calls a sweep has.
	caseCalls = 100000
	// bestCalls is how many calls the best limit is worked out from.
	bestCalls = 100000
	// tolerance is how far off the best a limit may be.
	tolerance = 0.15
)

// Case is a dependency of which the best answer is known.
type Case struct {
	Name string
	// Hedging tells whether it should be recommended. Nil if the case is about the limit alone.
	Hedging *bool
	model   Model
}

// CaseRow is a case and what was recommended, from what a sweep had shown.
type CaseRow struct {
	Name string `json:"name"`
	// Workers there are, and so many the sweep found.
	Workers int `json:"workers"`
	Found   int `json:"found"`
	// Best is the limit that is best, and Recommended the other.
	Best        int     `json:"best"`
	Recommended int     `json:"recommended"`
	OffPercent  float64 `json:"off_percent"`
	// LimitMet tells that it is within 15 %.
	LimitMet bool `json:"limit_met"`
	// HedgingWanted is null where the case is about the limit alone; so are the others then.
	HedgingWanted *bool    `json:"hedging_wanted"`
	Hedging       *bool    `json:"hedging"`
	Reasons       []string `json:"reasons"`
}

// HedgingMet tells that hedging was recommended just where it should be.
func (r *CaseRow) HedgingMet() bool {
	return r.HedgingWanted == nil || r.Hedging != nil && *r.Hedging == *r.HedgingWanted
}

// Cases returns the cases: ten for the limit, the seed of each being its number, and two for
// hedging, which differ in whether calls are slow together.
func Cases() []Case {
	ms := func(x float64) float64 { return x / 1000 }
	light := func(p50 float64) hedgearena.Law { return logNormal{ms(p50), ms(2 * p50)} }
	tail := func(p50 float64) hedgearena.Law { return logNormal{ms(p50), ms(10 * p50)} }
	all := []Case{
		{Name: "one worker, 5 ms", model: Model{Workers: 1, Service: light(5)}},
		{Name: "a few, slow", model: Model{Workers: 3, Service: light(100)}},
		{Name: "5 workers, exponential", model: Model{Workers: 5, Service: exponential(ms(20))}},
		{Name: "8 workers, heavy tail", model: Model{Workers: 8, Service: tail(10)}},
		{Name: "12 workers, all alike", model: Model{Workers: 12, Service: logNormal{ms(30), ms(31)}}},
		{Name: "20 workers, 10 ms", model: Model{Workers: 20, Service: light(10)}},
		{Name: "32 workers, exponential", model: Model{Workers: 32, Service: exponential(ms(50))}},
		{Name: "50 workers, heavy tail", model: Model{Workers: 50, Service: tail(40)}},
		{Name: "100 workers, 25 ms", model: Model{Workers: 100, Service: light(25)}},
		{Name: "200 workers, 50 ms", model: Model{Workers: 200, Service: light(50)}},
	}
	yes, no := true, false
	all = append(all,
		Case{Name: "slow calls by chance", Hedging: &yes, model: Model{Workers: 40, Service: tail(10)}},
		Case{Name: "slow calls together", Hedging: &no, model: Model{
			Workers: 40, Service: light(10), Spells: Spells{For: 250 * time.Millisecond, Share: 0.06, Times: 8},
		}},
	)
	for i := range all {
		all[i].model.Seed = uint64(i + 1)
	}
	return all
}

// RunCase measures the dependency of a case by a sweep, has the set-up recommended, and holds it
// against the best. S says how the simulations are run.
func RunCase(ctx context.Context, c *Case, s Sizing) (*CaseRow, error) {
	m := &c.model
	capacity := m.Capacity()
	plan := Plan{Rate: caseLoad * capacity, MaxRate: caseMost * capacity, Timeout: caseTimeout}
	plan.Length = plan.lengthFor(caseCalls)
	in, err := Sweep(ctx, c.Name, plan, m.Attack(plan.Timeout), func(Step) {})
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	s.Input, s.Rate, s.Timeout, s.Idempotent = in, plan.Rate, plan.Timeout, c.Hedging != nil
	r := &CaseRow{Name: c.Name, Workers: m.Workers, Found: in.Workers(), Best: m.BestLimit(bestCalls), HedgingWanted: c.Hedging, Reasons: []string{}}
	var limit Limit
	if c.Hedging == nil {
		limit, err = s.findLimit(ctx)
	} else {
		var all *Recommendation
		if all, err = s.Recommend(ctx); err == nil {
			limit, r.Hedging, r.Reasons = *all.Limit, &all.Hedging.Recommended, all.Hedging.Reasons
		}
	}
	if err != nil {
		return nil, err
	}
	r.Recommended = limit.Limit
	r.OffPercent = 100 * (float64(r.Recommended)/float64(r.Best) - 1)
	r.LimitMet = math.Abs(r.OffPercent) <= 100*tolerance
	return r, nil
}

// lengthFor is how long a sweep with so many calls takes if it goes to the end.
func (p Plan) lengthFor(calls float64) time.Duration {
	p.Length = time.Second
	perSecond := 0.0
	rates := p.rates()
	for i, d := range p.lengths(rates) {
		perSecond += rates[i] * d.Seconds()
	}
	return seconds(calls / perSecond)
}

// logNormal is a latency by its median and 99th percentile, in seconds.
type logNormal struct{ p50, p99 float64 }

func (l logNormal) sigma() float64 { return math.Log(l.p99/l.p50) / normal(0.99) }

func (l logNormal) Quantile(u float64) float64 { return l.p50 * math.Exp(l.sigma()*normal(u)) }

func (l logNormal) Mean() float64 { return l.p50 * math.Exp(l.sigma()*l.sigma()/2) }

func (l logNormal) Service(_, _ int, _ time.Duration, u float64) float64 { return l.Quantile(u) }

// exponential is a latency by its mean in seconds.
type exponential float64

func (e exponential) Quantile(u float64) float64 { return -float64(e) * math.Log1p(-u) }

func (e exponential) Mean() float64 { return float64(e) }

func (e exponential) Service(_, _ int, _ time.Duration, u float64) float64 { return e.Quantile(u) }
