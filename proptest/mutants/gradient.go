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
		old: "	case !s.saturated && e.quartile < 2*e.target:", new: "	case !s.saturated && e.quartile < 0:",
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
		old: "b.deviation(s.samples) - b.q; below < 0 {", new: "b.deviation(s.samples) - b.q; below != 0 {",
	},
	{
		name: "a longer latency in a probe is believed as it is", law: "an overload is never normal", file: "gradient/probe.go",
		old: "	up = max(leastRise, 1+2*b.deviation(s.samples)/b.q)\n", new: "	up = slowerRise\n",
	},
	{
		name: "a slower service is never believed", law: "a slower service is found", file: "gradient/reference.go",
		old: "now < throughputLost*r.best {", new: "now < 0*r.best {",
	},
	{
		name: "the reference is forgotten in a pause", law: "a slower service is found", file: "gradient/reference.go",
		old: "	r.best = max(r.best*math.Exp(-s.elapsed/fadeSeconds), r.free/luck)", new: "	r.best = r.free / luck",
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
		name: "an unread probe keeps the limit down", law: "probes give back", file: "gradient/cutshort.go",
		old: "		return g.giveUp(at)\n", new: "		return g.decide(ReasonHold, move{to: g.limit})\n",
	},
	{
		name: "a probe measures what was admitted before it", law: "field case B26", file: "gradient/probe.go",
		old: "	return g.decide(ReasonProbe, move{to: depth * min(g.limit, s.n+1), force: true})", new: "	g.limit = depth * min(g.limit, s.n+1)\n	g.epochLimit = g.limit\n	return g.decide(ReasonProbe, move{to: g.limit})",
	},
	{
		name: "a target for the queue in seconds and not in requests", law: "any service settles", file: "gradient/target.go",
		old: "quartile: s.x * max(0, s.q-b.q),", new: "quartile: 1000 * max(0, s.q-b.q),",
	},
	{
		name: "no more queue near the critical load", law: "a drift is no overload", file: "gradient/target.go",
		old: "	critical := 1 + criticalGain*max(0, 1-rejected/criticalShare)\n", new: "	critical := 1 + 0*rejected\n",
	},
	{
		name: "a ceiling only cuts", law: "MaxLatency", file: "gradient/step.go",
		old: "	to := min(g.limit+growth, most)\n", new: "	to := max(g.limit+growth, most*0)\n",
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
	{
		name: "any loss of throughput is believed to be ten times", law: "fleets do not creep", file: "gradient/probe.go",
		old: "		return min(slowerRise, slower), false\n", new: "		return slowerRise, false\n",
	},
	{
		name: "the luckiest window is the reference", law: "fleets do not creep", file: "gradient/reference.go",
		old: "	luck := 1 + freeDeviations*", new: "	luck := 1 + 0*freeDeviations*",
	},
	{
		name: "few calls are proof of a loss", law: "fleets do not creep", file: "gradient/reference.go",
		old: "	cv2 = max(lostCV2, cv2)\n", new: "	cv2 *= 0\n",
	},
	{
		name: "one window without need is trusted", law: "fleets do not creep", file: "gradient/baseline.go",
		old: "		case !b.trusted && g.prev.clean && b.agree(s, g.prev):", new: "		case !b.trusted:",
	},
	{
		name: "a first window is taken as it is", law: "fleets do not creep", file: "gradient/baseline.go",
		old: "	if s.elapsed >= oldAge.Seconds() && s.fast > 0 {", new: "	if s.elapsed < 0 && s.fast > 0 {",
	},
	{
		name: "a first probe ends by chance", law: "fleets do not creep", file: "gradient/probe.go",
		old: "	if !g.base.trusted {\n		// What is learnt now", new: "	if g.first {\n		// What is learnt now",
	},
	{
		name: "noise lowers the baseline", law: "any service settles", file: "gradient/baseline.go",
		old: "below := s.q + b.deviation(s.samples) - b.q;", new: "below := s.q - b.q;",
	},
	{
		name: "the mean is always believed", law: "a mix is no queue", file: "gradient/mean.go",
		old: "	if m.binding {\n", new: "	if e.target > 0 {\n",
	},
	{
		name: "the mean is never believed", law: "a bypass hides no queue", file: "gradient/mean.go",
		old: "	case m.odds < -decisiveOdds && !m.binding && ", new: "	case m.odds < -100 && !m.binding && ",
	},
	{
		name: "the mean of a heavy tail is believed", law: "a mix is no queue", file: "gradient/mean.go",
		old: " && g.base.cv2 < steadyCV2:", new: ":",
	},
	{
		name: "a cut is evidence for a queue", law: "a mix is no queue", file: "gradient/mean.go",
		old: " && e.queue <= e.target && grown > 0) {", new: " && e.queue <= e.target) {",
	},
	{
		name: "evidence against the mean is not heard", law: "a mix is no queue", file: "gradient/mean.go",
		old: "	if g.mean.binding && g.mean.odds > decisiveOdds {", new: "	if g.mean.binding && g.mean.odds > 100 {",
	},
	{
		name: "a probe does not release the mean", law: "a mix is no queue", file: "gradient/probe.go",
		old: "		b.m = max(b.m, s.t)\n		g.mean.release()\n", new: "		b.m = max(b.m, s.t)\n",
	},
	{
		name: "comparisons are taken the wrong way round", law: "contention is found", file: "gradient/knee.go",
		old: "	followed := math.Log(k.high.x / k.low.x)\n", new: "	followed := math.Log(k.low.x / k.high.x)\n",
	},
	{
		name: "a comparison goes on with drops", law: "drops never raise", file: "gradient/knee.go",
		old: "	if s.bad() {\n		// Drops cut", new: "	if s.bad() && k.arms < 0 {\n		// Drops cut",
	},
	{
		name: "a comparison does not notice that the server has changed", law: "contention is found", file: "gradient/knee.go",
		old: "	gone := !k.lowArm() && ", new: "	gone := k.arms < 0 && ",
	},
	{
		name: "a verdict of a comparison is for ever", law: "contention is found", file: "gradient/knee.go",
		old: "		k.gain += kneeForgets * (1 - k.gain)\n", new: "		k.gain += 0 * kneeForgets\n",
	},
	{
		name: "clients compare in step", law: "fleets do not creep", file: "gradient/knee.go",
		old: "math.Modf(second*1e6*golden + float64(n)*golden)", new: "math.Modf(0*second + float64(n)*golden)",
	},
	{
		name: "small limits use a raised target", law: "fleets do not creep", file: "gradient/knee.go",
		old: "	highest := min(mostGain, mostSlack*k.centre/max(target/k.gain, 1e-9))", new: "	highest := min(mostGain, 1e9*k.centre/max(target/k.gain, 1e-9))",
	},
	{
		name: "limits grow by chance bursts", law: "fleets are fair", file: "gradient/step.go",
		old: "	if s.unmet == 0 && s.n < freeShare*math.Floor(g.limit) {", new: "	if s.unmet < 0 && s.n < freeShare*math.Floor(g.limit) {",
	},
	{
		name: "there is no probe while a share is refused", law: "failures do not ratchet", file: "gradient/gradient.go",
		old: "	case s.bad() && !(s.expiredShare <= dropLimit && ", new: "	case s.bad() && !(s.expiredShare < 0 && ",
	},
	{
		name: "who leaves late holds the limit up", law: "an overload is never normal", file: "gradient/cutshort.go",
		old: "	case queued:\n", new: "	case queued && false:\n", packages: []string{"gradient", "httpmw"},
	},
	{
		name: "who leaves early lowers the limit", law: "L12", file: "gradient/cutshort.go",
		old: "w.Latency.seen(1 - quantile)", new: "w.Latency.longest()",
	},
	{
		name: "with no baseline the limit stays too high for who leaves", law: "an overload is never normal", file: "gradient/cutshort.go",
		old: "	unknown := readable && g.first && s.saturated\n", new: "	unknown := false\n",
	},
	{
		name: "a probe compares with what nobody waited for", law: "the step before a probe counts", file: "gradient/probe.go",
		old: "	if p.last.cutShort && ", new: "	if p.last.cutShort && !p.last.cutShort && ",
	},
	{
		name: "refusals make a probe unreadable", law: "failures do not ratchet", file: "gradient/probe.go",
		old: "s.expiredShare > failedShare\n", new: "s.dropShare > failedShare\n",
	},
}
