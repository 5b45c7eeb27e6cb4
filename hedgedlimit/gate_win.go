package hedgedlimit

import "math"

const (
	// winWeight is the weight of one hedge in the win rate: at 1/64 its standard
	// error is at most 4.4 points, and it follows a change within some hundred
	// hedges.
	winWeight = 1.0 / 64
	// winEvery is how many decided hedges lie between two changes of the share. The
	// first is made when the filter holds 22 % of what it can, and the standard error is
	// 12.5 points.
	winEvery = 16
	// winBreakEven is the win rate at which a hedge saves the time that it costs, if
	// service times have no memory: what is left of the primary is then as long as a
	// fresh attempt, so each of the two is first half of the time. Measured without
	// queueing it was 0.6 and with stalls 0.8; at 95 % load it fell to 0.4.
	winBreakEven = 0.5
	// winMost keeps the threshold below 1, which no rate would ever pass.
	winMost = 0.95
	// winMargin is how far above the threshold, as a share of what lies above it, the
	// rate must be for more hedges to be sent. It keeps the share from going to and
	// fro with the noise.
	winMargin = 0.05

	// The share of hedges that are sent falls by half and grows by an eighth:
	// hedging too little costs little. Growing by doubling was measured too; a lucky
	// second then sent a burst that raised the 99th percentile by 5 %.
	shareStart = 1.0 / 4
	shareStep  = 1.0 / 8
	// shareLeast is the probe level: of a delay at the 95th percentile 1/32 is 0.15 %
	// more requests, which is what it costs to notice that hedging pays again.
	shareLeast = 1.0 / 32
)

// winGate lets through a share of the hedges, which grows while hedges win and
// shrinks while they lose. It is a value without a lock or a clock; zero is ready.
type winGate struct {
	// rate is the share of hedges that won, in the exponential filter, and weight
	// what the filter makes of all ones. Their quotient has no bias from the start.
	rate, weight float64
	// Invariant: shareLeast ≤ shareStart + grown ≤ 1.
	grown float64 // above shareStart, so that zero is ready
	since int     // decided hedges since the share changed last
}

// share is the probability with which a hedge that is due is sent.
func (g *winGate) share() float64 { return shareStart + g.grown }

// present is the probability with which one is sent now. If the win rate does not do under
// the present congestion, the share was earned in quieter times, and is divided by it:
// where few hedges are sent it takes long until the next step says so. It is not where
// hedges win as often as they must, as when they alone are answered.
func (g *winGate) present(congestion float64) float64 {
	rate, known := g.winRate()
	if !known || rate >= threshold(congestion)-g.doubt() {
		return g.share()
	}
	return max(shareLeast, g.share()/congestion)
}

// winRate returns the share of hedges that win, and false before any was decided.
func (g *winGate) winRate() (float64, bool) {
	if g.weight == 0 {
		return 0, false
	}
	return g.rate / g.weight, true
}

// doubt is the standard error of a win rate of a half: the filter knows as much as
// weight·(2−winWeight) / (winWeight·(2−weight)) hedges. The share does not fall for less.
// A chance that made it fall would have a long life, because at a small share few hedges
// are sent to correct it: at 30 % load, where they win six times out of ten, one start in
// five took more than 20 s.
func (g *winGate) doubt() float64 {
	known := g.weight * (2 - winWeight) / (winWeight * (2 - g.weight))
	return 0.5 / math.Sqrt(known)
}

// threshold is the win rate that hedging must reach under a congestion factor of at
// least 1. A hedge costs others what its own win rate does not show, so it must win
// the more often the more the service is slowed by its load.
func threshold(congestion float64) float64 { return min(winMost, winBreakEven*congestion) }

// decided takes in one hedge whose call has been decided.
func (g *winGate) decided(won bool, congestion float64) {
	value := 0.0
	if won {
		value = 1
	}
	g.rate += (value - g.rate) * winWeight
	g.weight += (1 - g.weight) * winWeight
	g.since++
	if g.since < winEvery {
		return
	}
	g.since = 0
	least := threshold(congestion)
	switch rate, _ := g.winRate(); {
	case rate < least-g.doubt():
		g.grown = max(shareLeast, g.share()/2) - shareStart
	case rate > least+winMargin*(1-least):
		g.grown = min(1, g.share()+shareStep) - shareStart
	}
}
