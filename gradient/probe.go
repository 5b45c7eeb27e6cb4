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

// schedule says when the next probe is due.
type schedule struct {
	next     float64 // on the grid
	ended    float64 // when the last one ended
	duration float64 // of the last one
	backoff  float64 // from one to the next, in durations
	highest  float64 // the limit that the last probe left, or a higher one since
}

const (
	probeDepth = 0.7 // below the knee from any limit up to 1.43 of the capacity
	// Before anything is trusted, the first step goes deeper.
	firstDepth = 0.5
	// Half way between "did not follow" (0) and "followed" (1).
	followedShare = 0.5
	maxStages     = 8
	// A probe costs at most 30 % of the throughput, so with a gap of 100 of its
	// durations at most 0.3 % in the long run. While there is something to learn
	// they come at 8.
	minBackoff, maxBackoff = 8, 100
	// throughputLost: the noise of two seconds of traffic is below 5 %.
	throughputLost = 0.85
	congestedProbe = 3   // cuts in a row that ask for a probe
	unconfirmedCut = 0.6 // of the highest limit: a slide that no probe has confirmed
)

// mayProbe reports whether a probe is due after a window outside probes, and the
// decision that came of it, which is in force already.
func (g *Gradient) mayProbe(at float64, s sample, d Decision) bool {
	sc := &g.schedule
	sc.highest = max(sc.highest, g.limit)
	rested := at >= sc.ended+minBackoff*sc.duration
	lost := g.ref.probed > 0 && at >= sc.ended+max(1, minBackoff*sc.duration) &&
		g.ref.smooth < (1-max(0.07, 3*math.Sqrt(max(0.09, g.base.cv2)/max(2*g.ref.smooth, 1e-9))))*g.ref.probed
	due := at >= sc.next || lost ||
		rested && (g.congested >= congestedProbe || g.limit < unconfirmedCut*sc.highest)
	switch {
	case !due, g.limit < 2, s.bad():
		return false
	case d.Reason == ReasonIdle, d.Reason == ReasonHold:
		return false // the limit is not needed, so the window was a probe itself
	case d.NewEpoch && g.congested < congestedProbe:
		// The limit has just moved far, and s says nothing about where it is now. A
		// probe would measure against the wrong throughput.
		return false
	case g.slowStart && g.base.trusted:
		return false // growth itself is the experiment
	case s.refused <= 0.02 && g.congested == 0 && g.base.trusted:
		return false // nobody would gain
	}
	return true
}

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
	g.planNext(at, false)
	g.probe.abort()
	return g.decide(ReasonProbeEnd, move{to: back, force: true})
}

// probed goes on with a probe after a step of it.
func (g *Gradient) probed(at float64, s sample) Decision {
	p := &g.probe
	failed := s.drops >= 2 && s.dropShare > 0.3
	// Elasticity: by how much the throughput followed the concurrency.
	followed := math.Log(p.last.x/s.x) / math.Log(p.last.n/s.n)
	if math.IsNaN(followed) || math.IsInf(followed, 0) {
		followed = 1 // Nothing moved, so nothing more can be learnt.
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
	queued := p.before.x * max(0, p.before.q-b.q)
	if p.stage > 1 {
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
	r, b, p := &g.ref, &g.base, &g.probe
	if r.best == 0 || r.smooth == 0 {
		return cleanRise, false
	}
	recent := 0.5 * (p.before.x + p.earlier.x)
	recent *= 1 + 2*math.Sqrt(max(0.25, b.cv2)/max(1, float64(p.before.completed+p.earlier.completed)))
	if min(r.smooth, recent) < throughputLost*r.best {
		return 10, false
	}
	deviation := math.Sqrt(b.spread * (1/float64(max(s.samples, 1)) + 1/max(b.weight, 1)))
	up = max(1.02, 1+2*deviation/b.q)
	if s.q > up*b.q {
		r.best *= 1.05
		bound = true
	}
	return up, bound
}

// rest ends the probe, keeps the throughput it confirmed, and plans the next one.
func (g *Gradient) rest(at float64, jumped, bound bool) {
	p, r := &g.probe, &g.ref
	switch {
	case r.best == 0 || jumped && p.stage > 1:
		r.best = r.smooth
	case !bound:
		r.best += 0.3 * (r.smooth - r.best)
	}
	g.planNext(at, jumped)
	r.probed = r.smooth
	g.congested = 0
	g.prev.saturated = false // it was under another limit
	p.abort()
}

// planNext says when the next probe is due after one that ends now: soon if there was
// something to learn, and later from one to the next if not.
func (g *Gradient) planNext(at float64, jumped bool) {
	sc := &g.schedule
	sc.backoff = min(maxBackoff, 2*sc.backoff)
	if jumped {
		sc.backoff = minBackoff
	}
	sc.duration = at - g.probe.began
	sc.ended = at
	// Clients with the same gap probe in the same instant, since they round to the
	// same grid of the wall clock. A step down together cannot stampede, and it
	// drains their server, so that each sees its true latency.
	gap := max(1, sc.backoff*sc.duration)
	grid := math.Exp2(math.Floor(math.Log2(gap)))
	sc.next = math.Ceil((at+0.75*gap)/grid) * grid
}
