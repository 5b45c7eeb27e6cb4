package sizing

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

const (
	// worthIt is by which share the 99th percentile must fall.
	worthIt = 0.1
	// asGood is within how many shares of the best a cheaper candidate is as good.
	asGood = 0.05
	// The bounds of harm are those of hedgearena.
	harmPoints, harmShare = 0.1, 0.02
	// maxTokens is that of the example of gRFC A6.
	maxTokens = 10
	// busy is a share of the capacity at which there is little to spare.
	busy = 0.75
)

// candidate is a way to hedge.
type candidate struct {
	quantile float64
	// ratio is the budget, or the tokenRatio of a gRPC hedging policy.
	ratio float64
	grpc  bool
}

// candidates returns all of them: a budget that is larger than the share of the calls that
// are hedged is no other than that share.
func candidates() []candidate {
	var all []candidate
	for _, x := range []struct {
		quantile float64
		ratios   []float64
	}{
		{0.50, []float64{0.1, 0.2}},
		{0.75, []float64{0.1, 0.2}},
		{0.90, []float64{0.05, 0.1, 0.2}},
		{0.95, []float64{0.05, 0.1}},
		{0.99, []float64{0.05}},
	} {
		for _, r := range x.ratios {
			all = append(all, candidate{quantile: x.quantile, ratio: r})
		}
	}
	for _, q := range []float64{0.9, 0.95, 0.99} {
		all = append(all, candidate{quantile: q, ratio: 0.1, grpc: true})
	}
	return all
}

// HedgeRow is a candidate and what it does.
type HedgeRow struct {
	// GRPC tells that it is a hedgingPolicy of gRPC: a fixed delay, a token bucket that follows
	// failures, and no gates. Otherwise it is a Quantile and a RatioBudget, behind the gates.
	GRPC     bool    `json:"grpc"`
	Quantile float64 `json:"quantile"`
	// DelayMS is that quantile of the latency that was put in.
	DelayMS float64 `json:"delay_ms"`
	Ratio   float64 `json:"ratio"`
	Effects
	// Harmless tells that neither load is worse than without hedging.
	Harmless bool `json:"harmless"`
	// GainPercent is by how much p99 is lower at the present load.
	GainPercent float64 `json:"gain_percent"`
}

// Hedging is whether and how to hedge.
type Hedging struct {
	// Recommended tells that it helps, and Chosen how. Chosen is nil without it.
	Recommended bool      `json:"recommended"`
	Chosen      *HedgeRow `json:"chosen"`
	// GRPC is the hedgingPolicy, nil if there is none that helps and does no harm.
	GRPC *HedgeRow `json:"grpc"`
	// Reasons are why not, or what to beware of.
	Reasons []string `json:"reasons"`
	// None is without hedging, behind the same limit as the rows.
	None Effects    `json:"none"`
	Rows []HedgeRow `json:"rows"`
}

// compareHedging tries all candidates behind the limit, and chooses.
func (s *Sizing) compareHedging(ctx context.Context, limit int, w *Waiting) (Hedging, error) {
	h := Hedging{None: w.Refused, Rows: []HedgeRow{}, Reasons: []string{}}
	if w.Wait {
		h.None = w.Waited
	}
	if !s.Idempotent {
		h.refuse("a call may not be carried out twice: " + cmp.Or(s.Doubt, "it is not known to be idempotent"))
		return h, nil
	}
	var setups []setup
	all := candidates()
	for _, c := range all {
		setups = append(setups, setup{fixed(limit, w.Wait, s), s.policy(c)})
	}
	both, err := s.runBoth(ctx, "hedging", setups)
	if err != nil {
		return h, err
	}
	for i, c := range all {
		r := HedgeRow{GRPC: c.grpc, Quantile: c.quantile, DelayMS: 1000 * s.delay(c.quantile).Seconds(), Ratio: c.ratio, Effects: both[i]}
		r.Harmless = harmless(&r.Present, &h.None.Present) && harmless(&r.Heavier, &h.None.Heavier)
		r.GainPercent = 100 * (1 - r.Present.P99/h.None.Present.P99)
		h.Rows = append(h.Rows, r)
	}
	s.choose(&h)
	return h, nil
}

func harmless(e, none *Effect) bool {
	return e.FailedPercent <= none.FailedPercent+harmPoints && e.P99 <= none.P99*(1+harmShare)
}

// choose decides by the rows.
func (s *Sizing) choose(h *Hedging) {
	used := s.utilisation(s.Rate)
	if c := &s.Input.Correlation; c.Correlated {
		h.refuse(fmt.Sprintf("calls are slow together: of those that begin when a hedge would, %.0f %% are slow as well (5 %% by chance), so a hedge meets what it is to avoid", 100*c.Together))
		return
	}
	h.Chosen = pick(h.Rows, false)
	if h.Chosen == nil {
		if used >= busy {
			h.refuse(fmt.Sprintf("there is no capacity to spare: the calls alone take %.0f %% of it", 100*used))
		} else {
			h.refuse(fmt.Sprintf("no delay and budget cut the 99th percentile by %.0f %% without harm at either load; without a queue it is %.1f × the median",
				100*worthIt, s.Input.Latency.Quantile(0.99)/s.Input.Latency.Quantile(0.5)))
		}
		return
	}
	h.Recommended = true
	h.GRPC = pick(h.Rows, true)
	if h.GRPC == nil {
		h.Reasons = append(h.Reasons, "a gRPC hedgingPolicy has no gates, and none that was tried helps without harm at 1.5 × the load: the service config has none")
	}
	switch more := s.utilisation(heavier * s.Rate); {
	case s.Input.Capacity == 0:
		h.Reasons = append(h.Reasons, "the capacity is not known: where there is none to spare, hedging does not help")
	case more >= busy:
		h.Reasons = append(h.Reasons, fmt.Sprintf("at 1.5 × the load the calls alone take %.0f %% of the capacity: the gates then hold hedges back", 100*more))
	}
	if !s.Input.Correlation.Known {
		h.Reasons = append(h.Reasons, "it is not known whether calls are slow together: if they are, hedging does not help")
	}
}

func (h *Hedging) refuse(reason string) { h.Reasons = append(h.Reasons, reason) }

// pick returns the row that sends least among those that are about as good as the best and do
// no harm, or nil.
func pick(rows []HedgeRow, grpc bool) *HedgeRow {
	suits := func(r *HedgeRow, gain float64) bool {
		return r.GRPC == grpc && r.Harmless && r.GainPercent >= gain
	}
	best := 100 * worthIt
	for i := range rows {
		if suits(&rows[i], best) {
			best = rows[i].GainPercent
		}
	}
	var chosen *HedgeRow
	for i := range rows {
		r := &rows[i]
		if suits(r, max(100*worthIt, best-100*asGood)) && (chosen == nil || r.Present.ExtraPercent < chosen.Present.ExtraPercent) {
			chosen = r
		}
	}
	return chosen
}

// delay is a quantile of the latency, as it can be written down.
func (s *Sizing) delay(quantile float64) time.Duration {
	return roundLatency(seconds(s.Input.Latency.Quantile(quantile)))
}

// policy sets the library up as a candidate.
func (s *Sizing) policy(c candidate) hedgearena.Policy {
	name := fmt.Sprintf("%s, %g", percentile(c.quantile), c.ratio)
	return library(name, func(config *hedgedlimit.Config) (err error) {
		if c.grpc {
			config.Gates, config.Delay = hedgedlimit.NoGates, hedgedlimit.Fixed(s.delay(c.quantile))
			config.Budget, err = hedgedlimit.NewThrottle(maxTokens, c.ratio)
			return err
		}
		config.Delay = hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: c.quantile})
		config.Budget, err = hedgedlimit.NewRatioBudget(hedgedlimit.RatioConfig{Ratio: c.ratio})
		return err
	})
}
