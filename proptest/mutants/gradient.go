package main

// gradientFaults break how the limit is found. The golden traces of the package are not
// copied, since any change would show in them: these are for the properties and the tests
// of the single parts.
var gradientFaults = []fault{
	{
		name: "the limit leaves its bounds", law: "L14", file: "gradient/gradient.go",
		old: "	g.limit = g.bounds.clamp(m.to)\n", new: "	g.limit = max(1, m.to)\n",
	},
	{
		name: "what is no number gets through", law: "L14", file: "gradient/bounds.go",
		old: "	if !(l > b.min) {", new: "	if l <= b.min {",
	},
	{
		name: "a limit grows that is not needed", law: "growth needs need", file: "gradient/step.go",
		old: "	case !s.saturated && q25 < 2*target:", new: "	case !s.saturated && q25 < 0:",
	},
	{
		name: "AIMD grows without need", law: "growth needs need", file: "gradient/aimd.go",
		old: "	case w.Saturated && share <= aimdShare:", new: "	case share <= aimdShare:",
	},
	{
		name: "drops lift the limit to what is needed at once", law: "drops never raise", file: "gradient/step.go",
		old: "		most += max(0, min(gain*(target-q), floorLift*g.limit, g.ceiling.most(s, g.limit)-g.limit))", new: "		most, _ = floor, q",
	},
	{
		name: "drops have no floor", law: "failures do not ratchet", file: "gradient/step.go",
		old: "	return move{to: max(to, min(floor, most))}", new: "	_, _ = floor, most\n	return move{to: to}",
	},
	{
		name: "a burst of refusals ends a window before anything else can", law: "failures do not ratchet", file: "gradient/algorithm.go",
		old: "		need = 0\n", new: "		return true\n",
	},
	{
		name: "no baseline is taken with drops, at a limit of 1 either", law: "failures do not ratchet", file: "gradient/baseline.go",
		old: "	case g.limit < 2 && !b.trusted && s.telling():", new: "	case g.limit < 2 && !b.trusted && !s.bad():",
	},
	{
		name: "a cut latency lowers a quantile", law: "L12", file: "gradient/histogram.go",
		old: "	h.censored[h.note(d)]++\n	h.cut++\n", new: "	h.events[h.note(d)]++\n	h.cut++\n",
	},
	{
		name: "what was cut short has the mean for its quantile", law: "L12", file: "gradient/sample.go",
		old: "		late = w.Latency.longest()\n", new: "		late = w.Latency.Mean()\n",
	},
	{
		name: "busy windows raise the baseline", law: "an overload is never normal", file: "gradient/baseline.go",
		old: "	case s.q < b.q:\n", new: "	case s.q != b.q:\n",
	},
	{
		name: "a longer latency in a probe is believed as it is", law: "an overload is never normal", file: "gradient/probe.go",
		old: "	up = max(leastRise, 1+2*b.deviation(s.samples)/b.q)\n", new: "	up = slowerRise\n",
	},
	{
		name: "a slower service is never believed", law: "a slower service is found", file: "gradient/reference.go",
		old: "	return min(r.smooth, recent) < throughputLost*r.best", new: "	return min(r.smooth, recent) < 0*r.best",
	},
	{
		name: "the reference is forgotten in a pause", law: "a slower service is found", file: "gradient/reference.go",
		old: "	r.best = max(r.best*math.Exp(-s.elapsed/fadeSeconds), s.x)", new: "	r.best = s.x * math.Exp(0)",
	},
	{
		name: "a handful of calls is a baseline", law: "field case B30", file: "gradient/baseline.go",
		old: "	case s.clean && s.samples < oldSamples:", new: "	case s.clean && s.samples < 1:",
	},
	{
		name: "a probe gives back what a cut has just taken", law: "the step before a probe counts", file: "gradient/probe.go",
		old: "began: at, original: g.limit}", new: "began: at, original: s.limit}",
	},
	{
		name: "an unread probe keeps the limit down", law: "probes give back", file: "gradient/gradient.go",
		old: "		return g.giveUp(at)\n", new: "		return g.decide(ReasonHold, move{to: g.limit})\n",
	},
	{
		name: "a probe measures what was admitted before it", law: "field case B26", file: "gradient/probe.go",
		old: "	return g.decide(ReasonProbe, move{to: depth * min(g.limit, s.n+1), force: true})", new: "	g.limit = depth * min(g.limit, s.n+1)\n	g.epochLimit = g.limit\n	return g.decide(ReasonProbe, move{to: g.limit})",
	},
	{
		name: "a target for the queue in seconds and not in requests", law: "any service settles", file: "gradient/target.go",
		old: "	q25 = s.x * max(0, s.q-b.q)\n", new: "	q25 = 1000 * max(0, s.q-b.q)\n",
	},
	{
		name: "no more queue near the critical load", law: "a drift is no overload", file: "gradient/target.go",
		old: "	critical := 1 + max(0, 1-rejected/criticalShare)\n", new: "	critical := 1 + 0*rejected\n",
	},
	{
		name: "a ceiling only cuts", law: "MaxLatency", file: "gradient/step.go",
		old: "	to := min(g.limit+g.growth(s, q, target), most)\n", new: "	to := max(g.limit+g.growth(s, q, target), most*0)\n",
	},
	{
		name: "a ceiling is not looked at", law: "MaxLatency", file: "gradient/ceiling.go",
		old: "return c > 0 && s.late > float64(c) }", new: "return c < 0 && s.late > float64(c) }",
	},
	{
		name: "an outside limit is told negative latencies", law: "FromLimit", file: "gradient/fromlimit.go",
		old: "int64(max(latency, 0)), max(inFlight, 0), dropped)", new: "int64(latency), inFlight, dropped)",
	},
	{
		name: "an outside limit is put in force as it is", law: "L14", file: "gradient/fromlimit.go",
		old: "min(max(e.limit.EstimatedLimit(), 1), maxMax)", new: "max(e.limit.EstimatedLimit(), 1)",
	},
}
