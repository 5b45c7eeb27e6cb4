package main

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// bestTail knows how long the attempts of a workload take, for the service draws from the seed,
// the number of the call and that of the attempt, and so how short a tail can be.
type bestTail struct {
	first, second []time.Duration // by call
	longest       []time.Duration // first, the longest last
}

// newBestTail draws for the calls from 0 on.
func newBestTail(p downstream.Profile, seed uint64, calls int) *bestTail {
	b := &bestTail{first: make([]time.Duration, calls), second: make([]time.Duration, calls)}
	for i := range calls {
		b.first[i] = p.Draw(seed, uint64(i), 1)
		b.second[i] = p.Draw(seed, uint64(i), 2)
	}
	b.longest = slices.Sorted(slices.Values(b.first))
	return b
}

// p99 is that of one hedge after a fixed delay, the one with which as many hedges are sent, if
// nothing but the service takes time. A hedge that is sent earlier for some of the calls is
// missing for others; TestNoMixtureOfDelaysIsBetter looks.
func (b *bestTail) p99(hedges int) time.Duration {
	n := len(b.first)
	var delay time.Duration // 0: a hedge for every call
	if hedges < n {
		delay = b.longest[n-1-max(hedges, 0)] // which so many are longer than
	}
	p99, _ := b.hedged(func(int) time.Duration { return delay })
	return p99
}

// hedged returns the p99 with a delay for each call, and how many hedges are sent.
func (b *bestTail) hedged(delay func(call int) time.Duration) (p99 time.Duration, hedges int) {
	latencies := slices.Clone(b.first)
	for i, first := range b.first {
		if d := delay(i); first > d {
			hedges++
			latencies[i] = min(first, d+b.second[i])
		}
	}
	slices.Sort(latencies)
	return latencies[len(latencies)*99/100], hedges
}
