package main

// hedgingFaults break what decides whether a further attempt is sent, and the record
// that a call lives in.
var hedgingFaults = []fault{
	// Gates.
	{
		name: "the no of the win gate is asked again", law: "gates", file: "hedgedlimit/start.go",
		old: "	if reason == SkipWin || reason == SkipAttempts {", new: "	if reason == SkipAttempts {",
	},
	{
		name: "a hedge passes the win gate anew after each skip", law: "gates", file: "hedgedlimit/start.go",
		old: "	if !c.passed && !h.config", new: "	if !h.config",
	},
	{
		name: "pressure is forgotten at once", law: "gates", file: "hedgedlimit/gates.go",
		old: "now.Sub(pressure) < pressureMemory", new: "now.Sub(pressure) < 0",
	},
	{
		name: "a standstill never ends", law: "gates", file: "hedgedlimit/gate_standstill.go",
		old: "	if q.starts.Load() != 0 {", new: "	if q.starts.Load() < 0 {",
	},
	{
		name: "no hedge finds out whether a standstill is one for hedges too", law: "gates", file: "hedgedlimit/gate_standstill.go",
		old: "	return ns-max(last, q.hedge.Load()) < int64(standstillProbe) || !q.probe.CompareAndSwap(last, ns)\n", new: "	return ns >= last\n",
	},
	{
		name: "a burst is taken for a standstill", law: "gates", file: "hedgedlimit/gate_standstill.go",
		old: "float64(ns-q.first.Load()) < median {", new: "float64(ns-q.first.Load()) < 0*median {",
	},
	{
		name: "an attempt that was cut short is taken for an answer", law: "gates", file: "hedgedlimit/attempt.go",
		old: "	case o != permit.Canceled && o != permit.Expired:", new: "	case o != permit.Expired:",
	},
	{
		name: "callers who cancel make a standstill", law: "gates", file: "hedgedlimit/attempt.go",
		old: "		h.config.Gates.left()\n", new: "",
	},
	{
		name: "the surge gate does not count the hedge itself", law: "gates", file: "hedgedlimit/gate_surge.go",
		old: "float64(inFlight+1) > ceiling", new: "float64(inFlight) > ceiling",
	},
	{
		name: "half of a limit that means nothing is room", law: "gates", file: "hedgedlimit/gate_surge.go",
		old: "	if l.limited(limit) {", new: "	if limit > 0 {",
	},
	{
		name: "congestion does not raise what hedges must win by", law: "gates", file: "hedgedlimit/gate_win.go",
		old: "min(winMost, winBreakEven*congestion)", new: "min(winMost, winBreakEven+0*congestion)",
	},
	{
		name: "congestion does not cut the share of hedges", law: "gates", file: "hedgedlimit/gate_win.go",
		old: "max(shareLeast, g.share()/congestion)", new: "g.share()",
	},
	{
		name: "congestion cuts the share of hedges that alone are answered", law: "gates", file: "hedgedlimit/gate_win.go",
		old: "!known || rate >= threshold(congestion)-g.doubt()", new: "!known || rate < 0",
	},
	{
		name: "hedging backs off by chance", law: "gates", file: "hedgedlimit/gate_win.go",
		old: "	case rate < least-g.doubt():", new: "	case rate < least-0*g.doubt():",
	},
	{
		name: "the share of hedges doubles", law: "gates", file: "hedgedlimit/gate_win.go",
		old: "g.share()+shareStep", new: "g.share()*2",
	},
	{
		name: "the share of hedges falls to nothing", law: "gates", file: "hedgedlimit/gate_win.go",
		old: "max(shareLeast, g.share()/2)", new: "g.share()/2",
	},
	{
		name: "the win rate begins at zero", law: "gates", file: "hedgedlimit/gate_win.go",
		old: "	return g.rate / g.weight, true\n", new: "	return g.rate, true\n",
	},
	{
		name: "an unknown median is taken for a small one", law: "L12", file: "hedgedlimit/gate_congestion.go",
		old: "c.median = math.Inf(1) // unknown", new: "c.median = 0 // unknown",
	},
	{
		name: "the baseline follows congestion at once", law: "gates", file: "hedgedlimit/gate_congestion.go",
		old: "c.baseline = min(c.median, most)", new: "c.baseline = max(c.median, 0*most)",
	},
	{
		name: "a call that its caller cancelled counts against hedging", law: "gates", file: "hedgedlimit/call.go",
		old: "t.kind == limiter.Hedge && !d.canceled && !d.panicked", new: "t.kind == limiter.Hedge",
	},
	// Losers that linger.
	{
		name: "lingering has no bound", law: "losers", file: "hedgedlimit/losers.go",
		old: "		return min(d, policy.bound)\n", new: "		return d\n",
	},
	{
		name: "lingering lasts for the bound, whatever is expected", law: "losers", file: "hedgedlimit/losers.go",
		old: "		return min(d, policy.bound)\n", new: "		return max(d, policy.bound)\n",
	},
	{
		name: "a loser does not linger", law: "losers", file: "hedgedlimit/losers.go",
		old: "time.AfterFunc(rest, t.lingered)", new: "time.AfterFunc(0*rest, t.lingered)",
	},
	{
		name: "a loser that has answered lingers on", law: "losers", file: "hedgedlimit/attempt.go",
		old: "		t.stopLingerLocked()\n", new: "",
	},
	{
		name: "an attempt whose caller has left does not linger", law: "losers", file: "hedgedlimit/attempt.go",
		old: "		t.lingerLocked(rest)\n", new: "		_ = rest\n",
	},
	// Retries.
	{
		name: "the back-off has no jitter", law: "A6", file: "hedgedlimit/backoff.go",
		old: "(1 - backoffJitter + 2*backoffJitter*random)", new: "(1 + 0*random)",
	},
	{
		name: "the back-off has no maximum", law: "A6", file: "hedgedlimit/backoff.go",
		old: "	d = min(d, float64(b.Max)) *", new: "	d = d *",
	},
	{
		name: "a pushback does not begin the back-off anew", law: "A6", file: "hedgedlimit/call.go",
		old: "	c.backoffs = 0\n", new: "",
	},
	{
		name: "a pushback that asks for no more is ignored", law: "A6", file: "hedgedlimit/call.go",
		old: "		c.frozen = true\n", new: "		c.frozen = false\n",
	},
	{
		name: "a back-off runs beyond the deadline", law: "L8", file: "hedgedlimit/call.go",
		old: "	if c.running == 0 && c.tooLate(now.Add(wait)) {", new: "	if c.running < 0 {",
	},
	{
		name: "in retry mode hedges are sent", law: "retry", file: "hedgedlimit/record.go",
		old: "	c.noHedge = h.config.Retry != nil\n", new: "",
	},
	{
		name: "layers multiply", law: "layers", file: "hedgedlimit/layer.go",
		old: "n += x.outer.usedLocked() - int(x.outer.inside[x.at])", new: "_ = x",
	},
	{
		name: "what the calls inside one attempt used is forgotten", law: "layers", file: "hedgedlimit/layer.go",
		old: "		x.outer.inside[x.at] = max(x.outer.inside[x.at], int8(x.usedLocked()))\n", new: "		x.outer.inside[x.at] = 0\n",
	},
	{
		name: "calls side by side use up each other's attempts", law: "layers", file: "hedgedlimit/layer.go",
		old: "x.outer.usedLocked() - int(x.outer.inside[x.at])", new: "x.outer.usedLocked()",
	},
	{
		name: "an extra attempt outside pays in for a primary inside", law: "L9", file: "hedgedlimit/layer.go",
		old: "		l.pays = l.first && ", new: "		l.pays = ",
	},
	{
		name: "two layers pay into one budget", law: "L9", file: "hedgedlimit/layer.go",
		old: "(h.comparable == nil || h.comparable != p.layer.hedger.comparable)", new: "h != nil",
	},
	// Budgets.
	{
		name: "the throttle is open at half of its tokens", law: "A6", file: "hedgedlimit/throttle.go",
		old: "2*t.tokens.Load() > t.most", new: "2*t.tokens.Load() >= t.most",
	},
	{
		name: "a loser that was cancelled takes a token", law: "A6", file: "hedgedlimit/attempt.go",
		old: "	if h.follower != nil && !canceled && !byCaller {", new: "	if _, _ = canceled, byCaller; h.follower != nil {",
	},
	{
		name: "a composite keeps what it withdrew before the no", law: "L9", file: "hedgedlimit/budgets.go",
		old: "			refund(now, a.budgets[:taken])\n", new: "			_ = taken\n",
	},
	{
		name: "a budget is not told of ends", law: "L9", file: "hedgedlimit/attempt.go",
		old: "		h.guard(func() { h.follower.Ended(time.Now(), t.kind != limiter.Primary) })\n", new: "",
	},
	{
		name: "checking and taking are two steps", law: "L9", file: "hedgedlimit/budgets.go",
		old: "	if b.mostLocked()-b.extras < 1 {\n		return false\n	}\n",
		new: "	if b.mostLocked()-b.extras < 1 {\n		return false\n	}\n	b.mu.Unlock()\n	time.Sleep(time.Millisecond)\n	b.mu.Lock()\n",
	},
	// Records.
	{
		name: "an Attempt that is kept holds a later call", law: "L2", file: "hedgedlimit/attempt.go",
		old: "	if c.generation != a.generation || t.holds == 0 {", new: "	if t.holds == 0 {",
	},
	{
		name: "a record is used again while a loser runs", law: "L1", file: "hedgedlimit/attempt.go",
		old: "	c.refs.Add(2) // one for", new: "	c.refs.Add(1) // one for",
	},
	// The rest.
	{
		name: "a call that is held back is hedged", law: "holdback", file: "hedgedlimit/record.go",
		old: "c.heldBack, c.noHedge = true, true", new: "c.heldBack = true",
	},
	{
		name: "Close does not wait", law: "L7", file: "hedgedlimit/hedger.go",
		old: "	if h.live.Or(1)>>1 == 0 {", new: "	if h.live.Or(1) >= 0 {",
	},
	{
		name: "a closed hedger lets calls begin", law: "Close", file: "hedgedlimit/hedger.go",
		old: "	h.leave()\n	return false\n", new: "	return true\n",
	},
	{
		name: "keys are kept without bound", law: "PerKey", file: "hedgedlimit/perkey.go",
		old: "	if len(p.byKey) >= p.most {", new: "	if len(p.byKey) < 0 {",
	},
	{
		name: "the key that was used last is forgotten", law: "PerKey", file: "hedgedlimit/perkey.go",
		old: "		p.recent.MoveToFront(e)\n", new: "",
	},
	{
		name: "the observer is told before the losers have ended", law: "Observer", file: "hedgedlimit/record.go",
		old: "	if c.refs.Add(-1) > 0 {\n		return\n	}\n	h := c.hedger\n",
		new: "	h := c.hedger\n	if n := c.refs.Add(-1); n > 0 {\n		if n == 2 && h.config.Observer != nil {\n			h.config.Observer(c.event(time.Now()))\n		}\n		return\n	}\n",
	},
	{
		name: "all hedges that are due probe a standstill", law: "gates", file: "hedgedlimit/gate_standstill.go",
		old: " || !q.probe.CompareAndSwap(last, ns)\n", new: "\n",
	},
	{
		name: "a pushback is forgotten when another attempt fails", law: "A6", file: "hedgedlimit/call.go",
		old: "	case t.pushed || wait > 0:", new: "	case t.pushed:",
	},
	{
		name: "a caller who cancels takes a token", law: "A6", file: "hedgedlimit/attempt.go",
		old: "	byCaller := o == permit.Canceled || ", new: "	byCaller := ",
	},
	{
		name: "a part of a budget that panics ends the others' books", law: "L9", file: "hedgedlimit/budgets.go",
		old: "	defer each(budgets[1:], f)\n	f(budgets[0])\n", new: "	f(budgets[0])\n	each(budgets[1:], f)\n",
	},
	{
		name: "a retry whose context panics keeps its budget", law: "L9", file: "hedgedlimit/start.go",
		old: "		if !granted { // no permit,", new: "		if recover() == nil && !granted { // no permit,",
	},
	{
		name: "the next call inherits the end of hedging", law: "records", file: "hedgedlimit/record.go",
		old: "c.hedged, c.frozen, c.passed, c.shut, c.armed = false, false, false, false, false, false, false", new: "c.hedged, c.passed, c.shut, c.armed = false, false, false, false, false, false",
	},
	{
		name: "the next call inherits the disposal of results", law: "records", file: "hedgedlimit/record.go",
		old: "	r.fn, r.discarded, r.others = nil, nil, nil\n", new: "	r.fn, r.others = nil, nil\n",
	},
}
