package promlimit

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

const defaultNamespace = "holdfast"

// Config says what a collector shows.
type Config struct {
	// Namespace stands before every name. Empty means holdfast.
	Namespace string

	// Hedger is the hedger to show, with its limiter. It may be nil.
	Hedger *hedgedlimit.Hedger

	// Limiter is the limiter to show, without hedging. Exactly one of Hedger and
	// Limiter must be set.
	Limiter *limiter.Limiter

	_ struct{}
}

// Collector is a prometheus.Collector over one limiter or hedger. It must be made
// by NewCollector and is safe for concurrent use.
type Collector struct {
	limiter *limiter.Limiter
	hedger  *hedgedlimit.Hedger // nil if only the limiter is shown

	limit, inFlight, waiting, overhang   *prometheus.Desc
	oldest                               *prometheus.Desc
	acquired, released, rejected, leaked *prometheus.Desc
	shadowed                             *prometheus.Desc

	calls, hedged, wins, denied, canceled *prometheus.Desc
	started, ended, skipped               *prometheus.Desc
	delay, balance, panics                *prometheus.Desc
	share, winRate, congestion, lag       *prometheus.Desc
}

// NewCollector returns a collector. It fails, and returns nil, if not exactly one
// of Hedger and Limiter is set, or if Namespace is not a valid prefix.
func NewCollector(config Config) (*Collector, error) {
	switch {
	case config.Hedger == nil && config.Limiter == nil:
		return nil, errors.New("promlimit: neither Hedger nor Limiter is set")
	case config.Hedger != nil && config.Limiter != nil:
		return nil, errors.New("promlimit: both Hedger and Limiter are set")
	}
	if config.Namespace == "" {
		config.Namespace = defaultNamespace
	}
	if !validNamespace(config.Namespace) {
		return nil, fmt.Errorf("promlimit: Namespace %q is not made of letters, digits and underscores, or begins with a digit", config.Namespace)
	}
	c := &Collector{limiter: config.Limiter, hedger: config.Hedger}
	if c.hedger != nil {
		c.limiter = c.hedger.Limiter()
	}
	constant := prometheus.Labels{"limiter": c.limiter.Name()}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(config.Namespace, "", name), help, labels, constant)
	}
	c.limit = desc("limit", "How many permits may be out.")
	c.inFlight = desc("in_flight", "How many permits are out.")
	c.waiting = desc("waiting", "How many callers wait for a permit.")
	c.overhang = desc("overhang", "How many permits are held by attempts that nobody waits for any more.")
	c.oldest = desc("oldest_permit_seconds", "For how long the oldest permit in flight has been out.")
	c.leaked = desc("leaked_total", "Permits whose holder lost them without a release.")
	c.acquired = desc("acquired_total", "Permits handed out.")
	c.released = desc("released_total", "Permits that came back, by the outcome of the work.", "outcome")
	c.rejected = desc("rejected_total", "Attempts that got no permit, by reason.", "reason")
	c.shadowed = desc("shadowed_total", "Attempts that got a permit outside the limit of a limiter that only shadows.")
	if c.hedger == nil {
		return c, nil
	}
	c.calls = desc("calls_total", "Calls, by how they ended.", "result")
	c.hedged = desc("hedged_requests_total", "Calls for which at least one hedge was sent.")
	c.wins = desc("hedge_wins_total", "Hedges whose result was returned.")
	c.denied = desc("hedge_budget_denied_total", "Hedges and retries that were due and not sent because the budget was used up.")
	c.canceled = desc("hedge_canceled_total", "Attempts that lost: they still ran when their call was decided.", "kind")
	c.started = desc("hedge_started_total", "Attempts started, by kind.", "kind")
	c.ended = desc("hedge_attempts_total", "Attempts that have ended, by kind and outcome. At rest, their sum over outcomes is hedge_started_total.", "kind", "outcome")
	c.skipped = desc("hedge_skipped_total", "Hedges and retries that were due and not sent, by reason.", "reason")
	c.delay = desc("hedge_delay_seconds", "How long a call waits for its first hedge. Absent while that is not known.")
	c.balance = desc("hedge_budget_balance", "How many extra attempts the budget allows now.")
	c.share = desc("hedge_gate_share", "The share of hedges that the win gate lets through.")
	c.winRate = desc("hedge_win_rate", "The smoothed share of hedges that win.")
	c.congestion = desc("hedge_congestion", "The median latency of primaries over its baseline, less a deadband, at least 1.")
	c.lag = desc("hedge_cancel_lag_seconds_total", "For how long losers held their permits after they had lost. Over hedge_canceled_total this is the mean.")
	c.panics = desc("panics_total", "Panics in attempts and callbacks.")
	return c, nil
}

// validNamespace is the rule for a metric name without colons, which are reserved
// for recording rules.
func validNamespace(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.limit, c.inFlight, c.waiting, c.overhang, c.oldest, c.leaked, c.acquired, c.released, c.rejected, c.shadowed,
		c.calls, c.hedged, c.wins, c.denied, c.canceled,
		c.started, c.ended, c.skipped, c.delay, c.balance, c.panics,
		c.share, c.winRate, c.congestion, c.lag,
	} {
		if d != nil { // those of hedging are nil for a limiter alone
			descs <- d
		}
	}
}

// Collect implements prometheus.Collector. The series that come from the ledger
// are of one instant.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	out := sink(metrics)
	s := c.limiter.Stats()
	out.gauge(c.limit, float64(s.Ledger.Limit))
	out.gauge(c.inFlight, float64(s.Ledger.InFlight))
	out.gauge(c.waiting, float64(s.Ledger.Waiting))
	out.gauge(c.overhang, float64(s.Ledger.Overhang))
	out.gauge(c.oldest, s.Ledger.Oldest.Seconds())
	out.counter(c.leaked, s.Ledger.Leaked)
	out.counter(c.acquired, s.Ledger.Granted)
	for o, n := range s.Ledger.Released {
		out.counter(c.released, n, permit.Outcome(o).String())
	}
	out.counter(c.rejected, s.Rejected.Limit, "limit")
	out.counter(c.rejected, s.Rejected.QueueFull, "queue_full")
	out.counter(c.rejected, s.Rejected.MaxWait, "max_wait")
	out.counter(c.rejected, s.Rejected.Deadline, "deadline")
	out.counter(c.rejected, s.Rejected.Closed, "closed")
	out.counter(c.rejected, s.Rejected.Canceled, "canceled")
	out.counter(c.shadowed, s.Shadowed)
	if c.hedger != nil {
		c.collectHedger(out)
	}
}

func (c *Collector) collectHedger(out sink) {
	s := c.hedger.Stats()
	out.counter(c.calls, s.Succeeded, "succeeded")
	out.counter(c.calls, s.Failed, "failed")
	out.counter(c.calls, s.ContextEnded, "context_ended")
	out.counter(c.calls, s.Refused, "refused")
	out.counter(c.hedged, s.Hedged)
	out.counter(c.wins, s.Won[limiter.Hedge])
	out.counter(c.denied, s.Skipped[hedgedlimit.SkipBudget])
	for _, k := range []limiter.Kind{limiter.Primary, limiter.Hedge, limiter.Retry} {
		out.counter(c.canceled, s.Lost[k], k.String())
		out.counter(c.started, s.Started[k], k.String())
		for o, n := range s.Ended[k] {
			out.counter(c.ended, n, k.String(), permit.Outcome(o).String())
		}
	}
	for reason, n := range s.Skipped {
		out.counter(c.skipped, n, hedgedlimit.Skip(reason).String())
	}
	if s.DelayKnown {
		out.gauge(c.delay, s.Delay.Seconds())
	}
	out.gauge(c.balance, s.BudgetBalance)
	out.gauge(c.share, s.Gates.Share)
	out.gauge(c.winRate, s.Gates.WinRate)
	out.gauge(c.congestion, s.Gates.Congestion)
	out <- prometheus.MustNewConstMetric(c.lag, prometheus.CounterValue, s.Overhang.Seconds())
	out.counter(c.panics, s.Panics)
}

// sink sends metrics whose labels are known to fit.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(d *prometheus.Desc, v uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}
