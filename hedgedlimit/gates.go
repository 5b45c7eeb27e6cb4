package hedgedlimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// pressureMemory is how long no hedge is sent after a primary was refused or had to
// wait. A quarter of it was enough for the 99th percentile and not always for
// failures: where a limiter refuses, each permit of a hedge is a refused primary.
const pressureMemory = time.Second

// Gates keep hedges from doing harm. Each hedge that is due must pass, in this
// order:
//
//   - pressure: no primary was refused, or had to wait for a permit, within the last
//     second;
//   - standstill: fewer than 10 primaries have begun since the last answer to anybody,
//     or the first of them so lately that half of the answers take longer. Where nobody
//     is answered a call is no straggler, and its hedge would only hold a permit too.
//     One a second is sent all the same, since hedges may go elsewhere;
//   - surge: the work in flight, with the hedge, is at most 10, or three times its
//     mean over 10 s, or half the limit. It is looked at before the permit is taken, so
//     hedges that are due in one instant may see the same room;
//   - win: a share of the hedges is sent, from 1/32 to 1, beginning with 1/4. It
//     grows while hedges win more often than they must, and shrinks while they do
//     not: hedging that does not pay backs off by itself and keeps probing. They
//     must win half the time, and more if the median latency of primaries has risen
//     above its baseline. A no of this gate is final for its call.
//
// Then come the budget and the permit, which are no part of it. A retry, which
// somebody waits for who has nothing else, passes no gate.
//
// A few stragglers among many calls that are merely slowish are a case that the win gate
// does not like: most hedges lose then, although those that win save much. A higher
// quantile, at which stragglers are most of what is left over, suits it and costs less.
//
// Gates learn from what the calls of a hedger show. Hedgers that share a limiter
// should share their gates too. The zero value is ready, and must not be copied
// after first use. All methods may be called from any goroutine; there is no clock
// and no goroutine.
type Gates struct {
	off bool // immutable

	base sync.Once // sets from
	from time.Time

	// seen is the time of the last look at the work in flight, by clock. It
	// saves most primaries the lock.
	seen  atomic.Int64
	quiet quiet // atomic

	mu sync.Mutex // a leaf
	// Guarded by mu.

	load       load
	congestion congestion
	win        winGate
}

// NoGates lets every hedge through: the budget and the permit alone bound them.
var NoGates = &Gates{off: true}

// started notes the start of a primary with so much in flight, itself included.
func (g *Gates) started(now time.Time, inFlight int) {
	if g.off {
		return
	}
	ns := g.clock(now)
	g.quiet.started(ns)
	if since := ns - g.seen.Load(); since >= 0 && since < int64(loadEvery) {
		return
	}
	g.seen.Store(ns)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.load.see(now, inFlight)
}

// sent notes that a hedge was sent.
func (g *Gates) sent(now time.Time) {
	if !g.off {
		g.quiet.hedge.Store(g.clock(now))
	}
}

// unsent notes that a hedge which room has let through was not sent after all.
func (g *Gates) unsent(now time.Time) {
	if !g.off {
		g.quiet.unsent(g.clock(now))
	}
}

// clock is a time in ns since some instant, on the monotonic clock if now has a reading of
// it. A step of the wall clock must not close a gate for as long as it is wide.
func (g *Gates) clock(now time.Time) int64 {
	g.base.Do(func() { g.from = now.Add(-standstillProbe) })
	return int64(now.Sub(g.from))
}

// answered notes that the other side has answered an attempt of any kind, be it with an
// error.
func (g *Gates) answered() {
	if !g.off {
		g.quiet.answered()
	}
}

// left notes that the caller of a primary has cancelled it.
func (g *Gates) left() {
	if !g.off {
		g.quiet.left()
	}
}

// observe takes the latency of a primary, as a delay does.
func (g *Gates) observe(now time.Time, latency time.Duration, censored bool, limit int) {
	if g.off {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.congestion.observe(now, latency, censored, g.load.rise(limit))
}

// decided takes in a hedge whose call has been decided.
func (g *Gates) decided(won bool) {
	if g.off {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.win.decided(won, g.congestion.factor())
}

// room asks the gates that look at the load. Pressure is when a primary was last
// refused or had to wait.
func (g *Gates) room(now, pressure time.Time, inFlight, limit int) (Skip, bool) {
	if g.off {
		return 0, true
	}
	if !pressure.IsZero() && now.Sub(pressure) < pressureMemory {
		return SkipPressure, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.quiet.standstill(g.clock(now), g.congestion.median) {
		return SkipStandstill, false
	}
	if g.load.surge(inFlight, limit) {
		return SkipSurge, false
	}
	return 0, true
}

// pays asks the win gate. Random returns a number of [0, 1); it may be the user's code,
// so it is called without the lock.
func (g *Gates) pays(random func() float64) bool {
	if g.off {
		return true
	}
	u := random()
	g.mu.Lock()
	defer g.mu.Unlock()
	return u < g.win.present(g.congestion.factor())
}

// GateStats is what the gates have learnt.
type GateStats struct {
	// Share is the share of hedges that are sent, as far as the win gate decides. While
	// WinRate is below Threshold and the share has not followed yet, fewer are sent.
	Share float64
	// WinRate is the smoothed share of decided hedges that won; 0 before any was
	// decided. Threshold is what it must reach.
	WinRate, Threshold float64
	// Congestion is the median latency of primaries over its baseline, less a
	// deadband of 15 %, and at least 1. It is +Inf while most are cut short.
	Congestion float64
	// Baseline is what the median is without load; 0 while that is not known.
	Baseline time.Duration
	// InFlight is the work in flight, smoothed over 10 s.
	InFlight float64
}

// Stats returns what the gates have learnt. Those of NoGates have learnt nothing and
// send all.
func (g *Gates) Stats() GateStats {
	if g.off {
		return GateStats{Share: 1, Congestion: 1}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	rate, _ := g.win.winRate()
	factor := g.congestion.factor()
	return GateStats{
		Share: g.win.share(), WinRate: rate, Threshold: threshold(factor),
		Congestion: factor, Baseline: time.Duration(g.congestion.baseline), InFlight: g.load.mean,
	}
}
