package main

import (
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	// conservativeDelay is above the 95th percentile of the service, which is at
	// 18 ms; aggressiveDelay is near its median, which is below 5 ms.
	conservativeDelay = 25 * time.Millisecond
	aggressiveDelay   = 6 * time.Millisecond

	// learntQuantile is below the share of requests that do not straggle, 95 %: on
	// that edge itself the quantile may be anything between the two kinds.
	learntQuantile = 0.9

	// largeLimit is so high that the limit never counts.
	largeLimit = 1000

	// maxWaiting and maxWait are the defaults of httpmw and grpcmw.
	maxWaiting = 64
	maxWait    = 100 * time.Millisecond

	// drainBound is far above the longest service time, the queue included, so
	// that every loser ends by itself.
	drainBound = 30 * time.Second
)

// Names of the rows that the verdict compares.
const (
	rowNone     = "no hedging"
	rowAdaptive = "adaptive"
)

// experiment is one row: a set-up of the client.
type experiment struct {
	// Name is what the tables call it; the rest says in words how it is set up.
	Name   string `json:"name"`
	Delay  string `json:"delay"`
	Budget string `json:"budget"`
	Limit  string `json:"limit"`
	Losers string `json:"losers"`
	// Covered tells that no attempt is cancelled, so that every stay in the
	// server lies within a permit: the server's count must not exceed the permits
	// then. A cancelled attempt ends for the client before the server knows.
	Covered bool `json:"covered"`

	algorithm func() (gradient.Algorithm, error)
	hedging   func(*hedgedlimit.Config) error
}

// experiments returns the rows in the order of the tables.
func experiments() []experiment {
	return []experiment{
		{
			Name: rowNone, Delay: "never", Budget: "none", Limit: "fixed, large", Losers: "none", Covered: true,
			algorithm: fixedLimit,
			hedging: func(c *hedgedlimit.Config) error {
				c.MaxAttempts = 1
				return nil
			},
		},
		{
			Name: "conservative", Delay: "fixed, 25 ms", Budget: "unlimited", Limit: "fixed, large", Losers: "cancelled",
			algorithm: fixedLimit,
			hedging:   fixedDelay(conservativeDelay),
		},
		{
			Name: "aggressive", Delay: "fixed, 6 ms", Budget: "unlimited", Limit: "fixed, large", Losers: "cancelled",
			algorithm: fixedLimit,
			hedging:   fixedDelay(aggressiveDelay),
		},
		{
			Name: "budget", Delay: "90th percentile, learnt", Budget: "10 % of the calls", Limit: "fixed, large", Losers: "cancelled",
			algorithm: fixedLimit,
			hedging:   learntDelay,
		},
		{
			Name: rowAdaptive, Delay: "90th percentile, learnt", Budget: "10 % of the calls", Limit: "gradient", Losers: "drained", Covered: true,
			algorithm: gradientLimit,
			hedging: func(c *hedgedlimit.Config) error {
				c.Losers = hedgedlimit.Drain(drainBound)
				return learntDelay(c)
			},
		},
	}
}

func fixedLimit() (gradient.Algorithm, error) { return gradient.NewFixed(largeLimit) }

func gradientLimit() (gradient.Algorithm, error) { return gradient.New(gradient.Config{}) }

func fixedDelay(d time.Duration) func(*hedgedlimit.Config) error {
	return func(c *hedgedlimit.Config) error {
		c.Delay = hedgedlimit.Fixed(d)
		c.Budget = hedgedlimit.Unlimited
		return nil
	}
}

func learntDelay(c *hedgedlimit.Config) error {
	c.Delay = hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: learntQuantile})
	b, err := hedgedlimit.NewRatioBudget(hedgedlimit.RatioConfig{Ratio: 0.1})
	c.Budget = b
	return err
}

// configure sets up the hedger and limiter of one host, and lets the recorder
// watch them. It is the function of WithConfig of httpmw and of grpcmw.
func (e experiment) configure(rec *recorder) func(host string, c *hedgedlimit.Config) error {
	return func(host string, c *hedgedlimit.Config) error {
		algorithm, err := e.algorithm()
		if err != nil {
			return err
		}
		c.Limiter, err = limiter.New(limiter.Config{
			Name: host, Algorithm: algorithm,
			MaxWaiting: maxWaiting, MaxWait: maxWait,
			OnLimitChange: rec.limitChanged,
		})
		if err != nil {
			return err
		}
		rec.limitWas(c.Limiter.Limit())
		rec.underWay.watch(c.Limiter.InFlight)
		c.OnAttempt = rec.attemptEnded
		c.Gates = hedgedlimit.NoGates // the rows show what budget and limit do by themselves
		c.Losers = hedgedlimit.Cancel()
		return e.hedging(c)
	}
}
