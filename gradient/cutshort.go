package gradient

import "math"

// leastSample reads a window of which so much was cut short that the quartile is not
// known. Then a quarter of the calls has not ended by itself at any latency that was
// seen, so the quartile lies beyond what a quarter of them lasted for, by a risk set that
// is as good as that of the quartile itself. This bound stands for the latency where a
// longer one would mean the same or more, which is a queue, and nowhere else. Who leaves
// after a millisecond says that it takes a millisecond or more, and that is none.
//
// It returns false if there is no throughput either, or nothing was cut short.
func leastSample(w *Window, s sample) (sample, bool) {
	s.q = w.Latency.seen(1 - quantile).Seconds()
	if w.Latency.Censored() == 0 || s.completed <= 0 || !(s.elapsed > 0) || !(s.n > 0) || s.q <= 0 {
		return s, false
	}
	s.cutShort = true
	s.x = float64(s.completed) / s.elapsed
	s.t = s.n / s.x
	return s, !math.IsInf(s.t, 0)
}

// unread decides after a window whose latency is not known. Callers that leave before
// they are answered make such windows where all wait for longer than they care to, so
// the limit would stay too high for as long as they come: a queue that there is at least
// counts like one that was measured. Nothing is learnt, and the limit does not grow.
func (g *Gradient) unread(at float64, w *Window, s sample) Decision {
	least, readable := leastSample(w, s)
	e := estimate{}
	if readable && !g.first {
		// Those who left kept no worker busy that a queue would have to feed.
		served := 1 - float64(w.Latency.Censored())/float64(w.Latency.Count())
		e = g.base.queue(least, g.target(served*least.x))
		e.queue = e.quartile // those who left early make the mean what they like
	}
	// Without need only what is beyond doubt counts, as in step.
	queued := e.queue > e.target && (s.saturated || e.queue >= 2*e.target)
	// With no baseline any latency may be a queue. A probe finds out, and gives back the
	// limit if it does not.
	unknown := readable && g.first && s.saturated
	switch {
	case s.bad():
		// Nothing came through but drops: there is no latency to measure, and no
		// traffic that a floor would protect.
		g.probe.abort()
		g.knee.running = false
		return g.decide(ReasonDrops, g.cut(s))
	case g.probe.running && (queued || unknown) && g.limit > 2 && g.probe.stage+1 < maxStages:
		return g.probeOn(least)
	case g.probe.running:
		return g.giveUp(at)
	case g.knee.running:
		g.knee.stop(at)
		return g.decide(ReasonKneeEnd, move{to: g.knee.centre, force: true})
	case g.ceiling.exceeded(s):
		return g.decide(ReasonLatency, move{to: g.ceiling.cut(s, g.limit)})
	case queued:
		g.last = least
		reason, m := g.shorten(least, e)
		g.prev.saturated = false // it was under another limit
		return g.decide(reason, m)
	case unknown && g.limit >= 2 && at >= g.schedule.next:
		g.last = least
		return g.startProbe(at, least)
	}
	return g.decide(ReasonHold, move{to: g.limit})
}
