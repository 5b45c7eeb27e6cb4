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
	// Known is false if there was no order of time, or too few slow calls.
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

// correlate looks at the answers in their order, of which there are rate a second, if that is
// known.
func correlate(samples []Sample, order Order, rate float64) Correlation {
	if order == Unordered || len(samples) < minSamples {
		return Correlation{}
	}
	latencies := make([]float64, len(samples))
	for i, s := range samples {
		latencies[i] = s.Latency.Seconds()
	}
	slices.Sort(latencies)
	limit := latencies[int(slowQuantile*float64(len(latencies)))-1]
	c := Correlation{SlowMS: 1000 * limit}
	pairs, both := 0, 0
	for i, s := range samples {
		if s.Latency.Seconds() <= limit {
			continue
		}
		c.Slow++
		from := i + max(1, int(math.Round(limit*rate)))
		if order == Timed {
			// The first that begins when the hedge would.
			begins := s.Start + seconds(limit)
			from, _ = slices.BinarySearchFunc(samples, begins, func(s Sample, at time.Duration) int { return int(min(max(s.Start-at, -1), 1)) })
			from = max(from, i+1)
		}
		for j := from; j < min(from+followers, len(samples)); j++ {
			pairs++
			if samples[j].Latency.Seconds() > limit {
				both++
			}
		}
	}
	if c.Slow < minSlow || pairs == 0 {
		return c
	}
	share := float64(c.Slow) / float64(len(samples))
	c.Known = true
	c.Together = float64(both) / float64(pairs)
	c.Autocorrelation = (c.Together - share) / (1 - share)
	// The followers of one call may be slow together by chance as well, so they count as one.
	c.Error = math.Sqrt(share * (1 - share) / float64(c.Slow))
	c.Correlated = c.Together >= maxTogether && c.Together > share+surely*c.Error
	return c
}
