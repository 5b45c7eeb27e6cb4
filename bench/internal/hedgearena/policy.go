package hedgearena

import (
	"context"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// Policy is a way to make calls.
type Policy struct {
	Name string `json:"name"`
	// About says how it is set up.
	About string `json:"about"`
	// Alone tells that it asks no limiter. It is then run without a limit only.
	Alone bool `json:"alone"`
	// Limited tells that it is something else without a limit. It is run behind one only.
	Limited bool `json:"limited"`

	new func(setup) (caller, error)
}

// The names of the policies that others are compared with, and of the one that is
// judged.
const (
	NoneName    = "none"
	PlaceboName = "placebo"
	OurName     = "ours"
)

// placeboShare of the calls is hedged at once, whatever happens.
const placeboShare = 0.0005

// Policies returns all policies, in order.
func Policies() []Policy {
	library := func(change func(*hedgedlimit.Config)) func(setup) (caller, error) {
		return Library("", "", func(c *hedgedlimit.Config) error {
			change(c)
			return nil
		}).new
	}
	return []Policy{
		{Name: NoneName, About: "no hedging: limiter.Limiter.Do", new: func(s setup) (caller, error) {
			return unhedged{s.limiter}, nil
		}},
		{Name: PlaceboName, About: "0.05 % of the calls, picked at random, are hedged at once", new: func(s setup) (caller, error) {
			h, err := library(func(c *hedgedlimit.Config) {
				ungated(c)
				c.Delay, c.Budget = hedgedlimit.Fixed(0), hedgedlimit.Unlimited
			})(s)
			if err != nil {
				return nil, err
			}
			return &placebo{h.(*hedged), s.draws}, nil
		}},
		{Name: "hand", Alone: true, About: "by hand: a hedge after the true 95th percentile, first success wins, no limit", new: func(s setup) (caller, error) {
			return byHand{s.scenario.Delay()}, nil
		}},
		{Name: "failsafe", Alone: true, About: "hedgepolicy of failsafe-go with the same delay, no limit", new: func(s setup) (caller, error) {
			return newFailsafe(s.scenario.Delay()), nil
		}},
		{Name: "unlimited", Alone: true, About: "the library without gates, budget and limit: quantile delay alone", new: library(func(c *hedgedlimit.Config) {
			ungated(c)
			c.Budget = hedgedlimit.Unlimited
		})},
		{Name: "budget", Alone: true, About: "the library without gates and limit: quantile delay and budget", new: library(func(c *hedgedlimit.Config) {
			ungated(c)
		})},
		{Name: "limiter", Limited: true, About: "the library without gates and budget: quantile delay behind the limit", new: library(func(c *hedgedlimit.Config) {
			ungated(c)
			c.Budget = hedgedlimit.Unlimited
		})},
		{Name: OurName, About: "the library on its defaults, behind the limit", new: library(func(*hedgedlimit.Config) {})},
	}
}

// Library is the library, set up by change: for each simulation anew, since budgets and gates
// have a state. What change is given is on its defaults, behind the limiter of the case.
func Library(name, about string, change func(*hedgedlimit.Config) error) Policy {
	return Policy{Name: name, About: about, new: func(s setup) (caller, error) {
		c := hedgedlimit.Config{Limiter: s.limiter, Rand: s.draws.sequence(drawGate), OnPanic: func(v any, _ []byte) { panic(v) }}
		if err := change(&c); err != nil {
			return nil, err
		}
		h, err := hedgedlimit.New(c)
		if err != nil {
			return nil, err
		}
		return &hedged{hedger: h}, nil
	}}
}

// ungated turns the gates off that ask whether a hedge would pay or hurt.
func ungated(c *hedgedlimit.Config) { c.Gates = hedgedlimit.NoGates }

// setup is what a policy is made for.
type setup struct {
	scenario *Scenario
	limiter  *limiter.Limiter
	draws    *draws
}

// attempt runs an attempt, number 1 being the primary.
type attempt func(ctx context.Context, number int) error

// caller makes calls. It is used by many goroutines.
type caller interface {
	// do makes a call and returns nil, the error of ctx, or limiter.ErrLimitExceeded.
	do(ctx context.Context, call int, run attempt) error
	// stats returns the counts of the library, if it is the library.
	stats() (hedgedlimit.Stats, bool)
}

// unhedged makes one attempt under a permit.
type unhedged struct{ limiter *limiter.Limiter }

func (u unhedged) do(ctx context.Context, _ int, run attempt) error {
	return u.limiter.Do(ctx, func(ctx context.Context) error { return run(ctx, 1) })
}

func (unhedged) stats() (hedgedlimit.Stats, bool) { return hedgedlimit.Stats{}, false }

// hedged is the library.
type hedged struct{ hedger *hedgedlimit.Hedger }

func (h *hedged) do(ctx context.Context, _ int, run attempt) error {
	return h.call(ctx, run)
}

func (h *hedged) call(ctx context.Context, run attempt, options ...hedgedlimit.CallOption[struct{}]) error {
	_, err := hedgedlimit.Do(ctx, h.hedger, func(ctx context.Context, a hedgedlimit.Attempt) (struct{}, error) {
		return struct{}{}, run(ctx, a.Number())
	}, options...)
	return err
}

func (h *hedged) stats() (hedgedlimit.Stats, bool) { return h.hedger.Stats(), true }

// placebo is a change that can do nothing by itself: what differs from no hedging under it
// is chance.
type placebo struct {
	*hedged
	draws *draws
}

func (p *placebo) do(ctx context.Context, call int, run attempt) error {
	if p.draws.placebo(call, placeboShare) {
		return p.call(ctx, run)
	}
	return p.call(ctx, run, hedgedlimit.NoHedge[struct{}]())
}
