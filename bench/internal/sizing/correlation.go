package sizing

import (
	"math"
	"slices"
	"time"
)

const (
	// slowQuantile is from which on a call is slow: that is when a hedge is sent by default.
	slowQuantile = 0.95
	// maxTogether is the share of slow calls whose hedge may be slow as well. With a fifth of
	// them, one call in a hundred waits for two slow attempts, and hedging does not move the
	// 99th percentile.
	maxTogether = (1 - 0.99) / (1 - slowQuantile)
	// followers is how many calls that begin when a hedge would are looked at.
	followers = 4
	// minSlow is how many slow calls are needed to say anything.
	minSlow = 10
	// surely is how many standard errors are not chance.
	surely = 3
)

// Correlation tells whether calls that are close in time are slow together. A hedge is then as
// slow as what it is to help.
type Correlation struct {
	// Known is false if there was no order of time or no rate, or too few slow calls.
	Known bool `json:"known"`
	// SlowMS is from which latency on a call is slow, and Slow how many were.
	SlowMS float64 `json:"slow_ms"`
	Slow   int     `json:"slow"`
	// Together is the share of slow ones among the calls that began when the hedges of the slow
	// calls would have. Without correlation it is 0.05. Error is its standard error then.
	Together float64 `json:"together"`
	Error    float64 `json:"error"`
	// Autocorrelation is that of being slow, over the time that a hedge waits.
	Autocorrelation float64 `json:"autocorrelation"`
	// Correlated tells that it is more than chance, and too much for hedging to help.
	Correlated bool `json:"correlated"`
}

// known is an order as far as it tells which calls begin when a hedge would: without times and
// without a rate it does not.
func known(order Order, rate float64) Order {
	if order == Ordered && rate <= 0 {
		return Unordered
	}
	return order
}

// correlate looks at the answers in their order, of which there are rate a second, if that is
// known, and at those that begin when a hedge would by default.
func correlate(samples []Sample, order Order, rate float64) Correlation {
	if len(samples) < minSamples {
		return Correlation{}
	}
	return correlateAt(samples, order, rate, slowest(samples))
}

// slowest is from which latency on one in twenty is slow.
func slowest(samples []Sample) time.Duration {
	latencies := make([]time.Duration, len(samples))
	for i, s := range samples {
		latencies[i] = s.Latency
	}
	slices.Sort(latencies)
	return latencies[int(slowQuantile*float64(len(latencies)))-1]
}

// correlateAt looks at the answers that begin when a hedge with a delay would.
func correlateAt(samples []Sample, order Order, rate float64, delay time.Duration) Correlation {
	order = known(order, rate)
	if order == Unordered || len(samples) < minSamples {
		return Correlation{}
	}
	limit := slowest(samples)
	c := Correlation{SlowMS: 1000 * limit.Seconds()}
	pairs, both := 0, 0
	for i, s := range samples {
		if s.Latency <= limit {
			continue
		}
		c.Slow++
		if s.Latency <= delay {
			continue // it is over, and has no hedge
		}
		from := i + max(1, int(math.Round(delay.Seconds()*rate)))
		if order == Timed {
			// The first that begins when the hedge would.
			from = max(firstFrom(samples, s.Start+delay), i+1)
		}
		for j := from; j < min(from+followers, len(samples)); j++ {
			pairs++
			if samples[j].Latency > limit {
				both++
			}
		}
	}
	if pairs < followers*minSlow {
		return c
	}
	share := float64(c.Slow) / float64(len(samples))
	c.Known = true
	c.Together = float64(both) / float64(pairs)
	c.Autocorrelation = (c.Together - share) / (1 - share)
	// The followers of one call may be slow together by chance as well, so they count as one.
	c.Error = math.Sqrt(share * (1 - share) / (float64(pairs) / followers))
	c.Correlated = c.Together >= maxTogether && !c.ByChance()
	return c
}

// ByChance tells that it may be chance.
func (c *Correlation) ByChance() bool { return c.Together <= c.MostByChance() }

// MostByChance is what Together may be by chance: three standard errors more than without
// correlation.
func (c *Correlation) MostByChance() float64 { return 1 - slowQuantile + surely*c.Error }
