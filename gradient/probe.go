package gradient

import "math"

// probe measures the latency without a queue by lowering the limit step by step,
// for as long as the throughput does not follow:
//
//	       start: limit × 0.7         end of a step: X did not follow
//	idle ──────────────────────▶ running ─────────────────────────┐
//	  ▲                            │  ▲      limit × 0.7           │
//	  └── limit given back ────────┘  └────────────────────────────┘
//	      end of a step: X followed, so the queue is gone
//
// Going down while the throughput stays costs nothing, since only the queue gets
// shorter. The last step has none, so its latency is the baseline, be it lower or
// higher than the old one.
type probe struct {
	running  bool
	stage    int    // steps that have ended
	before   sample // the window before the probe
	earlier  sample // the one before that, if it was saturated, or before again
	last     sample // the step before the present one
	began    float64
	original float64 // the limit to give back
}

func (p *probe) abort() { *p = probe{} }

const (
	probeDepth = 0.7 // below the knee from any limit up to 1.43 of the capacity
	// Before anything is trusted, the first step goes deeper.
	firstDepth = 0.5
	// Half way between "did not follow" (0) and "followed" (1).
	followedShare = 0.5
	maxStages     = 8
	failedShare   = 0.3
	// A deviation of the throughput, as it is where traffic is not steady, times firstDoubt
	// is taken off from what has followed in a first probe. A whole one would keep small
	// services down for seconds longer.
	firstDoubt, firstCV2 = 0.5, 0.25
)

// startProbe lowers the limit. The one to give back is that of the step before: what
// a cut has just taken away must not come back by way of a probe.
func (g *Gradient) startProbe(at float64, s sample) Decision {
	earlier := s
	if g.prev2.saturated {
		earlier = g.prev2
	}
	g.probe = probe{running: true, before: s, earlier: earlier, last: s, began: at, original: g.limit}
	depth := probeDepth
	if !g.base.trusted {
		depth = firstDepth
	}
	return g.decide(ReasonProbe, move{to: depth * min(g.limit, s.n+1), force: true})
}

// giveUp ends a probe whose window cannot be read, because nothing completed or most
// callers did not wait. Nothing is learnt, and the limit is given back: it must not
// stay low for as long as that lasts.
func (g *Gradient) giveUp(at float64) Decision {
	back := g.probe.original
	g.prev.saturated = false // it was under another limit
	g.schedule.plan(g.probe.began, at, false)
	g.probe.abort()
	return g.decide(ReasonProbeEnd, move{to: back, force: true})
}

// probeOn lowers the limit further after a step whose throughput says nothing.
func (g *Gradient) probeOn(s sample) Decision {
	g.last = s
	g.probe.stage++
	g.probe.last = s
	return g.decide(ReasonProbe, move{to: probeDepth * min(g.limit, s.n+1), force: true})
}

// probed goes on with a probe after a step of it.
func (g *Gradient) probed(at float64, s sample) Decision {
	p := &g.probe
	// Latencies of deadlines are none of the service. Calls that were refused have left
	// none behind, and what the others took is as good as ever.
	failed := s.drops >= 2 && s.expiredShare > failedShare
	// Elasticity: by how much the throughput followed the concurrency.
	fell, lowered := math.Log(p.last.x/s.x), math.Log(p.last.n/s.n)
	if !g.base.trusted {
		// What is learnt now is believed whatever it is, so the throughput must follow
		// beyond doubt. In a fleet that starts with a long queue this goes to the bottom.
		fell -= firstDoubt * math.Sqrt(max(firstCV2, g.base.cv2)*(1/float64(max(s.completed, 1))+1/float64(max(p.last.completed, 1))))
	}
	followed := fell / lowered
	if math.IsNaN(followed) || math.IsInf(followed, 0) {
		followed = 1 // Nothing moved, so nothing more can be learnt.
	}
	if p.last.cutShort && g.limit > 2 && p.stage+1 < maxStages {
		return g.probeOn(s) // there is nothing to compare with yet
	}
	p.stage++
	if (followed < followedShare || failed) && g.limit > 2 && p.stage < maxStages {
		p.last = s
		return g.decide(ReasonProbe, move{to: probeDepth * min(g.limit, s.n+1), force: true})
	}
	back := p.original
	jumped, bound := false, false
	if !failed {
		jumped, bound, back = g.conclude(s, followed)
	}
	g.rest(at, jumped, bound)
	g.schedule.highest = back
	return g.decide(ReasonProbeEnd, move{to: back, force: true})
}

// conclude learns the baseline from the last step of a probe, and returns the
// limit to go on with.
func (g *Gradient) conclude(s sample, followed float64) (jumped, bound bool, back float64) {
	p, b := &g.probe, &g.base
	back = p.original
	if !b.trusted {
		b.set(s)
		b.trusted, jumped = true, true
		g.first = false
	} else {
		up := 1.0 // after several steps, or at the bottom: only downwards
		if followed >= followedShare && p.stage == 1 {
			up, bound = g.believe(s)
		}
		old := b.q
		jumped = b.learn(s, up)
		if jumped && b.q > 1.2*old && g.congested >= congestedProbe {
			// The cuts before were for a queue that was none: give them back.
			back = max(back, g.before)
			p.before.q = b.q
		}
	}
	if g.mean.binding && p.stage == 1 && (followed >= 0.8 || followed >= followedShare &&
		p.before.n-p.before.x*b.m > doubtedShare*g.target(p.before.x)) {
		// Fewer in flight brought fewer, so the mean's queue was none.
		b.m = max(b.m, s.t)
		g.mean.release()
	}
	queued := p.before.x * max(0, p.before.q-b.q)
	if p.stage > 1 || g.mean.binding {
		queued = max(queued, p.before.n-p.before.x*b.m)
	}
	if target := g.target(p.before.x); queued > target {
		back = max(g.limit, min(back, p.before.n-queued+target))
	}
	return jumped, bound, back
}

// believe says by how much a probe of one step may raise the baseline. Without a
// loss of throughput a longer latency is a queue of others: a fleet whose members
// took each other's queue for the service would climb without end.
func (g *Gradient) believe(s sample) (up float64, bound bool) {
	b, p := &g.base, &g.probe
	if !g.ref.known() {
		return cleanRise, false
	}
	// At the same concurrency a service that is slower by a factor loses that factor of
	// its throughput. So this is what the loss is evidence for, and no more.
	if slower := g.ref.lost(p.before, p.earlier, b.cv2); slower > 1 {
		return min(slowerRise, slower), false
	}
	up = max(leastRise, 1+2*b.deviation(s.samples)/b.q)
	return up, s.q > up*b.q
}

// rest ends the probe, and plans the next one.
func (g *Gradient) rest(at float64, jumped, bound bool) {
	g.ref.confirm(jumped && g.probe.stage > 1, bound)
	g.schedule.plan(g.probe.began, at, jumped)
	g.congested = 0
	g.prev.saturated = false // it was under another limit
	g.probe.abort()
}
