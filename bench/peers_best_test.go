package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Without hedges the tail is that of the service, and more hedges never make it longer.
func TestBestTailFallsWithHedges(t *testing.T) {
	const calls = 20_000
	b := newBestTail(defaultSettings().Profile, 1, calls)
	if got, want := b.p99(0), b.longest[calls*99/100]; got != want {
		t.Errorf("without hedges %v, the service alone %v", got, want)
	}
	last := b.p99(0)
	for _, hedges := range []int{1, 100, 400, 1000, 1800, 5000, calls - 1, calls, calls + 1} {
		got := b.p99(hedges)
		if got > last {
			t.Errorf("%d hedges: %v, and fewer: %v", hedges, got, last)
		}
		last = got
	}
	// At 9 % of the requests a fourth of the tail is left, which is what bhope/hedge publishes
	// (64.3 to 17.0 ms at 8.9 %).
	if got := b.p99(calls * 9 / 100); got < 15*time.Millisecond || got > 17*time.Millisecond {
		t.Errorf("at 9 %%: %v", got)
	}
}

// Hedges that are sent at one time for some of the calls and at another for the rest, or not at
// all, leave no shorter a tail than as many that are all sent at the same.
func TestNoMixtureOfDelaysIsBetter(t *testing.T) {
	b := newBestTail(defaultSettings().Profile, 2, 50_000)
	r := rand.New(rand.NewPCG(3, 4))
	for _, late := range []time.Duration{10 * time.Millisecond, 12 * time.Millisecond, 20 * time.Millisecond, time.Hour} {
		for _, early := range []time.Duration{6 * time.Millisecond, 8 * time.Millisecond, 9 * time.Millisecond} {
			for _, share := range []float64{0.2, 0.5, 0.8, 0.95} {
				got, hedges := b.hedged(func(int) time.Duration {
					if r.Float64() < share {
						return early
					}
					return late
				})
				// As many hedges are found to one, and so the tail to the distance of two calls.
				if best := b.p99(hedges); got < best-50*time.Microsecond {
					t.Errorf("%.2f after %v, the rest after %v: %d hedges, p99 %v; all after the same: %v", share, early, late, hedges, got, best)
				}
			}
		}
	}
}
