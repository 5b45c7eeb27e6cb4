package sizing

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

const (
	// worthIt is by which share the 99th percentile must fall.
	worthIt = 0.1
	// asGood is within how many shares of the best a cheaper candidate is as good.
	asGood = 0.05
	// gatesWorth is how many shares of the 99th percentile the gates may cost: they guard
	// against what is not in the model.
	gatesWorth = 0.2
	// The bounds of harm are those of hedgearena.
	harmPoints, harmShare = 0.1, 0.02
	// harmOfMany is what share more failures than there are anyway may be chance.
	harmOfMany = 0.25
	// busy is a share of the capacity at which there is little to spare.
	busy = 0.75
	// minBeyond is how many calls must be beyond the 99th percentile, in all seeds together, to say
	// that hedging will not help: with so many the percentile is known to about 15 % of its rank.
	minBeyond = 50
	// confirmTimes as many seeds as usual: a limit that moves adds chance of its own.
	confirmTimes = 3
)

// HedgeRow is a candidate and what it does, behind a limit that does not move, if one was found.
type HedgeRow struct {
	// GRPC tells that it is a hedgingPolicy of gRPC: a fixed delay, and a token bucket that follows
	// failures. Otherwise it has a RatioBudget. Gates tells that it is behind the gates, which a
	// hedgingPolicy never is.
	GRPC  bool `json:"grpc"`
	Gates bool `json:"gates"`
	// Fixed tells that the delay is DelayMS, and not learnt as Quantile. Quantile and DelayMS
	// belong to each other in what was put in. Gap tells that no call takes about so long.
	Fixed    bool    `json:"fixed"`
	Gap      bool    `json:"gap"`
	Quantile float64 `json:"quantile"`
	DelayMS  float64 `json:"delay_ms"`
	Ratio    float64 `json:"ratio"`
	Effects
	// Harmless tells that neither load is worse than without hedging.
	Harmless bool `json:"harmless"`
	// NoRoom tells that it has no gates where those are needed: the calls alone take three
	// fourths of the capacity.
	NoRoom bool `json:"no_room"`
	// Correlated tells that calls that begin after that delay are slow as well.
	Correlated bool `json:"correlated"`
	// GainPercent is by how much p99 is lower at the present load, and WorstGainPercent with the
	// seed that has least of it.
	GainPercent      float64 `json:"gain_percent"`
	WorstGainPercent float64 `json:"worst_gain_percent"`
	// AsPasted is what it does behind the limit that moves, null if that was not tried, and
	// Dropped tells that it does harm or brings too little there.
	AsPasted *Effects `json:"as_pasted"`
	Dropped  bool     `json:"dropped"`

	candidate candidate
}

// Hedging is whether and how to hedge.
type Hedging struct {
	// Recommended tells that it helps in one way at least. Chosen is how in Go, and GRPC is
	// the hedgingPolicy, each nil if there is none that helps and does no harm.
	Recommended bool      `json:"recommended"`
	Chosen      *HedgeRow `json:"chosen"`
	GRPC        *HedgeRow `json:"grpc"`
	// TooFew tells that it is not recommended for want of calls to tell by.
	TooFew bool `json:"too_few"`
	// Reasons are why not, or what to beware of.
	Reasons []string `json:"reasons"`
	// None is without hedging, behind the same limit as the rows.
	None Effects    `json:"none"`
	Rows []HedgeRow `json:"rows"`
}

// compareHedging tries candidates behind the limit.
func (s *Sizing) compareHedging(ctx context.Context, limit *Limit, w *Waiting) (*Hedging, error) {
	h := &Hedging{None: w.Refused, Rows: []HedgeRow{}, Reasons: []string{}}
	if w.Wait {
		h.None = w.Waited
	}
	if !s.Idempotent {
		return h, nil
	}
	if err := s.try(ctx, h, limit, w.Wait, s.candidates()); err != nil {
		return h, err
	}
	return h, s.tryWithoutGates(ctx, h, limit, w.Wait)
}

// tryWithoutGates tries Go without the gates where those seem to be in the way: a gRPC policy,
// which has none, does far better. It does nothing if that was done, or if there are so few calls
// that the gates may not have learnt yet.
func (s *Sizing) tryWithoutGates(ctx context.Context, h *Hedging, limit *Limit, wait bool) error {
	gated, policy := pick(h.Rows, withGates), pick(h.Rows, asPolicy)
	if policy == nil || gated != nil && gated.GainPercent >= policy.GainPercent-100*gatesWorth {
		return nil // they are not in the way
	}
	if s.few() || s.utilisation(heavier*s.Rate) >= busy || h.count(withoutAny) > 0 {
		return nil
	}
	// The best first.
	var policies []*HedgeRow
	for i := range h.Rows {
		if r := &h.Rows[i]; asPolicy(r) && r.suits() {
			policies = append(policies, r)
		}
	}
	slices.SortStableFunc(policies, func(a, b *HedgeRow) int { return int(math.Round(b.GainPercent - a.GainPercent)) })
	return s.try(ctx, h, limit, wait, ungated(policies))
}

// try appends a row for each candidate.
func (s *Sizing) try(ctx context.Context, h *Hedging, limit *Limit, wait bool, all []candidate) error {
	var policies []hedgearena.Policy
	for _, c := range all {
		policies = append(policies, c.policy())
	}
	both, err := s.compare(ctx, "hedging", s.behind(limit, wait), policies, &h.None)
	if err != nil {
		return err
	}
	trace, _ := s.Input.Latency.(*Trace)
	for i, c := range all {
		delay := c.delay(s)
		r := HedgeRow{
			GRPC: c.grpc, Gates: c.gates, Fixed: c.fixed > 0, Gap: c.fixed > 0 && c.fixed != s.quantile(c.quantile), Quantile: c.quantile,
			DelayMS: 1000 * delay.Seconds(), Ratio: c.ratio, Effects: both[i], candidate: c,
		}
		r.Harmless = harmless(&r.Effects, &h.None)
		// Go has the choice, and keeps its gates where 1.5 × the load needs them.
		load := s.Rate
		if !c.grpc {
			load *= heavier
		}
		r.NoRoom = !c.gates && s.utilisation(load) >= busy
		r.GainPercent, r.WorstGainPercent = gain(&r.Present, &h.None.Present)
		if trace != nil {
			at := correlateAt(trace.samples, trace.order, trace.rate, delay)
			r.Correlated = at.Correlated
		}
		h.Rows = append(h.Rows, r)
	}
	h.Rows = unlikeRows(h.Rows)
	return nil
}

// unlikeRows leaves out larger budgets that made no difference: they are no evidence of their own.
func unlikeRows(rows []HedgeRow) []HedgeRow {
	all := slices.Clone(rows) // DeleteFunc moves them while it goes on
	return slices.DeleteFunc(rows, func(r HedgeRow) bool {
		return slices.ContainsFunc(all, func(x HedgeRow) bool {
			same := x.GRPC == r.GRPC && x.Gates == r.Gates && x.Fixed == r.Fixed && x.DelayMS == r.DelayMS
			return same && x.Ratio < r.Ratio && math.Abs(x.Present.EqualP99-r.Present.EqualP99) < 0.001*r.Present.EqualP99 && math.Abs(x.Present.ExtraPercent-r.Present.ExtraPercent) < 0.05
		})
	})
}

// harmless tells that neither load is worse than with none. Failures are harm if they are beyond the
// bound by more than the standard error of the differences between seeds, and in any case if they
// are by as much as the bound again and by a fourth more than there are anyway: under a high load
// failures come in clusters, and are as many more with one seed as less with another.
func harmless(e, none *Effects) bool {
	one := func(e, none *Effect) bool {
		chance := min(failureError(e, none), max(harmPoints, none.FailedPercent*harmOfMany))
		return e.FailedPercent-chance <= none.FailedPercent+harmPoints && e.EqualP99 <= none.EqualP99*(1+harmShare)
	}
	return one(&e.Present, &none.Present) && one(&e.Heavier, &none.Heavier)
}

// failureError is the standard error of how many points more fail than with none, 0 with one seed.
func failureError(e, none *Effect) float64 {
	n := float64(len(e.seeds))
	if n < 2 {
		return 0
	}
	squares := 0.0
	for i, x := range e.seeds {
		d := (x.failed - none.seeds[i].failed) - (e.FailedPercent - none.FailedPercent)
		squares += d * d
	}
	return math.Sqrt(squares / (n - 1) / n)
}

// gain is by how much p99 is lower, and with the worst of the seeds.
func gain(e, none *Effect) (mean, worst float64) {
	lower := func(x, than float64) float64 { return 100 * (1 - x/than) }
	mean = lower(e.EqualP99, none.EqualP99)
	worst = mean
	for i, x := range e.seeds {
		worst = min(worst, lower(x.p99, none.seeds[i].p99))
	}
	return mean, worst
}

// suits tells that a row may be recommended, as far as it is known.
func (r *HedgeRow) suits() bool {
	return r.Harmless && !r.NoRoom && !r.Correlated && !r.Dropped && r.WorstGainPercent >= 100*worthIt
}

// The kinds of rows.
func withGates(r *HedgeRow) bool  { return !r.GRPC && r.Gates }
func withoutAny(r *HedgeRow) bool { return !r.GRPC && !r.Gates }
func asPolicy(r *HedgeRow) bool   { return r.GRPC }

// pick returns the row that sends least among those of a kind that are about as good as the best
// and do no harm, or nil.
func pick(rows []HedgeRow, kind func(*HedgeRow) bool) *HedgeRow {
	best := 0.0
	for i := range rows {
		if r := &rows[i]; kind(r) && r.suits() {
			best = max(best, r.GainPercent)
		}
	}
	var chosen *HedgeRow
	for i := range rows {
		r := &rows[i]
		if kind(r) && r.suits() && r.GainPercent >= best-100*asGood && (chosen == nil || r.Present.ExtraPercent < chosen.Present.ExtraPercent) {
			chosen = r
		}
	}
	return chosen
}

// best returns what Go should do, or nil: without the gates only if those cost too much.
func (h *Hedging) best() *HedgeRow {
	gated, free := pick(h.Rows, withGates), pick(h.Rows, withoutAny)
	if gated == nil || free != nil && free.GainPercent > gated.GainPercent+100*gatesWorth {
		return free
	}
	return gated
}

// confirm tries the best of Go and of gRPC behind the limit that moves, as they will be, and
// where one does harm or brings too little there, the next.
func (s *Sizing) confirm(ctx context.Context, h *Hedging, limit limitSetup, none *Effects) error {
	for {
		var rows []*HedgeRow
		var policies []hedgearena.Policy
		for _, r := range []*HedgeRow{h.best(), pick(h.Rows, asPolicy)} {
			if r != nil && r.AsPasted == nil {
				rows, policies = append(rows, r), append(policies, r.candidate.policy())
			}
		}
		if len(rows) == 0 {
			return nil
		}
		both, err := s.compare(ctx, "recommendation", limit, policies, none)
		if err != nil {
			return err
		}
		for i, r := range rows {
			r.AsPasted = &both[i]
			h.judge(r, none)
		}
	}
}

// judge drops a row that does harm as it will be, and then all of its kind that send as much: with
// no longer delay and no smaller budget. It drops one that brings too little alone.
func (h *Hedging) judge(r *HedgeRow, none *Effects) {
	_, worst := gain(&r.AsPasted.Present, &none.Present)
	harms := !harmless(r.AsPasted, none)
	r.Dropped = harms || worst < 100*worthIt
	for i := range h.Rows {
		x := &h.Rows[i]
		if harms && x.GRPC == r.GRPC && x.Gates == r.Gates && x.DelayMS <= r.DelayMS && x.Ratio >= r.Ratio {
			x.Dropped = true
		}
	}
}

// choose decides by the rows.
func (s *Sizing) choose(h *Hedging) {
	h.Chosen, h.GRPC = h.best(), pick(h.Rows, asPolicy)
	h.Recommended = h.Chosen != nil || h.GRPC != nil
	if !h.Recommended {
		h.Reasons = append(h.Reasons, s.whyNot(h))
		return
	}
	if c := h.Chosen; c != nil && !c.Gates {
		h.reason("in Go the gates are left out, since they would hold back hedges that pay here: what they guard against is a surge, a standstill, a second in which calls are refused or wait, and hedges that do not win; the budget and the limit are left")
	}
	switch {
	case h.Chosen != nil:
	case s.few():
		h.reason("too few calls to tell for Go, whose gates open as they see hedges win: %s", s.enough())
	default:
		h.reason("in Go nothing that was tried helps without harm: only the service config hedges")
	}
	if h.GRPC == nil {
		h.reason("a gRPC hedgingPolicy has no gates, and none that was tried helps without harm at either load: the service config has none")
	}
	switch more := s.utilisation(heavier * s.Rate); {
	case s.Input.Capacity == 0:
		h.reason("the capacity is not known: where there is none to spare, hedging does not help")
	case more >= busy:
		h.reason("at 1.5 × the load the calls alone take %.0f %% of the capacity: there is little to spare for hedges", 100*more)
	}
	if !s.Input.Correlation.Known {
		h.reason("it is not known whether calls are slow together: if they are, hedging does not help")
	}
	if s.few() {
		h.reason("it rests on few calls: %s", s.enough())
	}
	if dropped := h.count(func(r *HedgeRow) bool { return r.AsPasted != nil && r.Dropped }); dropped > 0 {
		h.reason("%d that did better behind a fixed limit did harm, or brought too little, behind the limit that moves", dropped)
	}
}

// whyNot is why hedging is not recommended.
func (s *Sizing) whyNot(h *Hedging) string {
	pays := func(r *HedgeRow) bool { return r.GainPercent >= 100*worthIt }
	harmlessly := func(r *HedgeRow) bool { return pays(r) && r.Harmless }
	used := s.utilisation(s.Rate)
	c := &s.Input.Correlation
	dropped := h.count(func(r *HedgeRow) bool { return r.AsPasted != nil && r.Dropped })
	switch {
	case !s.Idempotent:
		return "a call may not be carried out twice: " + cmp.Or(s.Doubt, "it is not known to be idempotent")
	case c.Correlated:
		return fmt.Sprintf("calls are slow together: of those that begin when a hedge would, %.0f %% are slow as well (5 %% by chance), so a hedge meets what it is to avoid", 100*c.Together)
	case used >= busy:
		return fmt.Sprintf("there is no capacity to spare: the calls alone take %.0f %% of it", 100*used)
	case s.few():
		h.TooFew = true
		return "too few calls to tell: " + s.enough()
	case dropped > 0:
		return fmt.Sprintf("behind the limit that moves, all of the %d that were tried did harm or brought less than %.0f %%, though they did better behind a fixed one", dropped, 100*worthIt)
	case h.count(harmlessly) > 0:
		return fmt.Sprintf("seeds disagree: %s, so it hangs on chance; more -calls tell", h.disagreement(harmlessly))
	case h.count(pays) > 0:
		return fmt.Sprintf("each delay and budget that cuts the 99th percentile by %.0f %% does harm at one of the loads: more failures or a higher 99th percentile", 100*worthIt)
	}
	return fmt.Sprintf("no delay and budget cut the 99th percentile by %.0f %% without harm at either load; without a queue it is %.1f × the median",
		100*worthIt, s.Input.Latency.Quantile(0.99)/s.Input.Latency.Quantile(0.5))
}

// few tells that the calls are too few to say that hedging will not help.
func (s *Sizing) few() bool { return s.judged() < 100*minBeyond }

// enough says how many would do.
func (s *Sizing) enough() string {
	why := fmt.Sprintf("%.0f are beyond the 99th percentile in all simulations of a row, and %d are needed", s.judged()/100, minBeyond)
	if float64(s.Calls) > longest.Seconds()*s.Rate {
		return fmt.Sprintf("%s; a simulation ends after %v of its own time, so more -seeds tell", why, longest)
	}
	return fmt.Sprintf("%s; -calls %d tells", why, int(math.Ceil(100*minBeyond/float64(len(s.Seeds)))))
}

// disagreement tells of the row of a kind whose mean is best.
func (h *Hedging) disagreement(kind func(*HedgeRow) bool) string {
	var best *HedgeRow
	for i := range h.Rows {
		if r := &h.Rows[i]; kind(r) && (best == nil || r.GainPercent > best.GainPercent) {
			best = r
		}
	}
	return fmt.Sprintf("with %s p99 is %.0f %% lower on average, and %.0f %% with the worst seed", best.Name(), best.GainPercent, best.WorstGainPercent)
}

func (h *Hedging) count(of func(*HedgeRow) bool) int {
	n := 0
	for i := range h.Rows {
		if of(&h.Rows[i]) {
			n++
		}
	}
	return n
}

func (h *Hedging) reason(format string, args ...any) {
	h.Reasons = append(h.Reasons, fmt.Sprintf(format, args...))
}

// Name says what it is in a few words, and whether it is of gRPC.
func (r *HedgeRow) Name() string {
	if r.GRPC {
		return "gRPC policy, " + r.Short()
	}
	return r.Short()
}

// Short is Name without the latter.
func (r *HedgeRow) Short() string {
	delay := percentile(r.Quantile)
	if r.Fixed {
		delay = fmt.Sprintf("%.4g ms", r.DelayMS)
	}
	switch {
	case r.GRPC:
		return delay
	case !r.Gates:
		return fmt.Sprintf("no gates, %s, budget %g %%", delay, 100*r.Ratio)
	}
	return fmt.Sprintf("%s, budget %g %%", delay, 100*r.Ratio)
}
