package main

// benchFaults break what the main job and `peers` count and judge, and the check that work at the
// server never exceeds the permits. All tests of the bench take minutes, so each names its own.
var benchFaults = []fault{
	// The check must see permits that come back before the work has ended.
	{
		name: "a loser that should drain is cancelled", law: "L2", file: "hedgedlimit/losers.go",
		old: "	drained := policy.kind == drains && beaten\n", new: "	drained := policy.kind == drains && !beaten\n",
		packages: []string{"bench"}, tests: []string{"TestCheckSeesUncoveredWork"},
	},
	{
		name: "the permit of a loser comes back when its call is decided", law: "L2", file: "hedgedlimit/losers.go",
		old: "	t.permit.Abandon()\n", new: "	t.permit.Release(permit.Ignored)\n",
		packages: []string{"bench"}, tests: []string{"TestCheckSeesUncoveredWork"},
	},
	{
		name: "a grant one above the limit is none", law: "L5", file: "bench/analyse.go",
		old: "a.Grant.InFlight > a.Grant.Limit {", new: "a.Grant.InFlight > a.Grant.Limit+1 {",
		tests: []string{"TestMeasurementRow"},
	},
	{
		name: "what was cancelled is checked", law: "the check", file: "bench/analyse.go",
		old: "	l.Enforced = m.experiment.Covered\n", new: "	l.Enforced = true\n",
		tests: []string{"TestMeasurementLaw"},
	},
	{
		name: "a clock that was set back proves something", law: "the check", file: "bench/analyse.go",
		old: "m.clockStep.Abs() > maxClockStep", new: "m.clockStep > maxClockStep",
		tests: []string{"TestMeasurementLaw"},
	},
	{
		name: "stamps of the hedger prove what was above the limit", law: "the check", file: "bench/analyse.go",
		old:   "	for i := range m.attempts {\n		a := &m.attempts[i]\n		l.Grants++\n",
		new:   "	var held []sweep.Interval\n	defer func() { l.PeakAboveLimit = max(l.PeakAboveLimit, sweep.Peak(held)-m.maxLimit) }()\n	for i := range m.attempts {\n		a := &m.attempts[i]\n		held = append(held, hold(a))\n		l.Grants++\n",
		tests: []string{"TestMeasurementLaw"},
	},
	{
		name: "attempts may be more than the limit ever was", law: "L5", file: "bench/analyse.go",
		old: "max(0, sweep.Peak(w.attempts)-m.maxLimit)", new: "max(0, sweep.Peak(w.attempts)-2*m.maxLimit)",
		tests: []string{"TestMeasurementLaw"},
	},

	// The attempts under way, and the permits that the ledger has out for them.
	{
		name: "every permit comes back before its work begins", law: "L2", file: "hedgedlimit/attempt.go",
		old: "	t.permit, t.granted = p, p.GrantedAt()\n", new: "	t.permit, t.granted = p, p.GrantedAt()\n	p.Release(permit.Success)\n",
		packages: []string{"bench"}, tests: []string{"TestCheckSeesUncoveredWork"},
	},
	{
		name: "an abandoned permit frees its place", law: "L2", file: "permit/permit.go",
		old:      "		x.witness.record.tag.CompareAndSwap(tag|held, tag|abandoned)\n",
		new:      "		x.witness.record.tag.CompareAndSwap(tag|held, tag|abandoned)\n		x.Release(Canceled)\n",
		packages: []string{"bench"}, tests: []string{"TestCheckSeesUncoveredWork"},
	},
	{
		name: "nobody looks when an attempt ends", law: "the check", file: "bench/underway.go",
		old: "	a.ended = true\n	u.lookLocked()\n", new: "	a.ended = true\n",
		tests: []string{"TestUnderWaySeesPermitsThatComeBackEarly"},
	},
	{
		name: "an attempt is looked at when it is no more", law: "the check", file: "bench/underway.go",
		old: "	u.lookLocked()\n	u.n--\n", new: "	u.n--\n	u.lookLocked()\n",
		tests: []string{"TestUnderWaySeesPermitsThatComeBackEarly"},
	},
	{
		name: "what is under way when all is over is not looked at", law: "the check", file: "bench/underway.go",
		old: "	u.lookLocked()\n	return u.log\n", new: "	return u.log\n",
		tests: []string{"TestUnderWaySeesPermitsThatComeBackEarly"},
	},
	{
		name: "an attempt that is read and closed ends twice", law: "the check", file: "bench/underway.go",
		old: "	if a.ended {\n", new: "	if a.ended && u.n < 0 {\n",
		tests: []string{"TestUnderWaySeesPermitsThatComeBackEarly"},
	},
	{
		name: "an attempt ends with its headers", law: "the check", file: "bench/underway.go",
		old: "	response.Body = &underWayBody{response.Body, a}\n", new: "	a.end()\n",
		tests: []string{"TestUnderWayBaseEndsWithTheBody"},
	},
	{
		name: "attempts without a permit are a note", law: "the check", file: "bench/verdict.go",
		old: "		if l.Bare > 0 {\n", new: "		if l.Bare > 0 && l.Excess > 0 {\n",
		tests: []string{"TestJudge"},
	},
	{
		name: "the log is read before the last attempt is in it", law: "the check", file: "bench/recorder.go",
		old: "		if len(got) == want {\n", new: "		if len(got) <= want {\n",
		tests: []string{"TestRecorderWaitsForTheLastAttempt"},
	},
	{
		name: "the highest limit is the last", law: "L5", file: "bench/recorder.go",
		old: "	r.maxLimit = max(r.maxLimit, limit)\n", new: "	r.maxLimit = limit\n",
		tests: []string{"TestRecorderKeepsTheHighestLimit"},
	},
	{
		name: "the row that drains is not checked", law: "the check", file: "bench/experiment.go",
		old: "Losers: \"drained\", Covered: true,", new: "Losers: \"drained\",",
		tests: []string{"TestWhatCancelsNothingIsCovered"},
	},
	{
		name: "one visit beyond the permits is forgiven", law: "the check", file: "bench/verdict.go",
		old: "		if l.Enforced && l.Excess > 0 {\n", new: "		if l.Enforced && l.Excess > 1 {\n",
		tests: []string{"TestJudge"},
	},
	{
		name: "rows that cancel break the law", law: "the check", file: "bench/verdict.go",
		old: "		if l.Enforced && l.Excess > 0 {\n", new: "		if l.Excess > 0 {\n",
		tests: []string{"TestJudge"},
	},
	{
		name: "a clock that was set hides what it did", law: "the check", file: "bench/verdict.go",
		old: "		if l.Enforced && l.ClockStepped {\n", new: "		if l.Enforced && l.ClockStepped && l.Excess > 0 {\n",
		tests: []string{"TestJudge"},
	},

	// What is counted.
	{
		name: "the requests of the warm-up count", law: "extra requests", file: "bench/analyse.go",
		old: "		if v.Call < m.firstCall {\n", new: "		if v.Call+1 < m.firstCall {\n",
		tests: []string{"TestMeasurementRow"},
	},
	{
		name: "a second attempt is no extra request", law: "extra requests", file: "bench/analyse.go",
		old: "		if v.Attempt > 1 {\n", new: "		if v.Attempt > 2 {\n",
		tests: []string{"TestMeasurementRow"},
	},
	{
		name: "a refusal is an answer", law: "rejected", file: "bench/analyse.go",
		old:   "		case s.err == nil:\n			record(latency, s.latency)\n		case errors.Is(s.err, limiter.ErrLimitExceeded):\n			r.Rejected++\n",
		new:   "		case s.err == nil || errors.Is(s.err, limiter.ErrLimitExceeded):\n			record(latency, s.latency)\n",
		tests: []string{"TestMeasurementRow"},
	},
	{
		name: "errors bring the caller something", law: "errors", file: "bench/verdict.go",
		old: "share(r.Rejected+r.Errors, max(r.Calls, 1))", new: "share(r.Rejected, max(r.Calls, 1))",
		tests: []string{"TestJudge"},
	},
	{
		name: "the target is met by turning callers away", law: "targets", file: "bench/verdict.go",
		old: " && v.MoreFailed <= targetFailed\n", new: "\n",
		tests: []string{"TestJudge"},
	},
	{
		name: "the target is met at any load", law: "targets", file: "bench/verdict.go",
		old: " && v.ExtraPercent <= targetExtra && ", new: " && ",
		tests: []string{"TestJudge"},
	},
	{
		name: "any shorter tail meets the target", law: "targets", file: "bench/verdict.go",
		old: "	targetRatio = 0.5\n", new: "	targetRatio = 1\n",
		tests: []string{"TestJudge"},
	},
	{
		name: "a tail that was not judged is good", law: "targets", file: "bench/verdict.go",
		old: "	v.TargetMet = met && v.NotJudged == \"\"\n", new: "	v.TargetMet = met\n",
		tests: []string{"TestJudge"},
	},
	{
		name: "half of the calls may fail", law: "targets", file: "bench/verdict.go",
		old: "	mostFailed = 10\n", new: "	mostFailed = 50\n",
		tests: []string{"TestJudge"},
	},
	{
		name: "a starved baseline is a baseline", law: "targets", file: "bench/verdict.go",
		old: "cmp.Or(none.late(), adaptive.late())", new: "adaptive.late()",
		tests: []string{"TestJudge"},
	},
	{
		name: "a peer's refusals are errors", law: "rejected", file: "bench/peers_run.go",
		old: "limiter.ErrLimitExceeded), errors.Is(s.err, adaptivelimiter.ErrExceeded):", new: "limiter.ErrLimitExceeded), s.err == adaptivelimiter.ErrExceeded:",
		tests: []string{"TestPeerRow"},
	},
	{
		name: "a peer's refusals are fast answers", law: "rejected", file: "bench/peers_run.go",
		old: "			r.Rejected++\n", new: "			r.Rejected++\n			record(latency, s.latency)\n",
		tests: []string{"TestPeerRow"},
	},
	{
		name: "the warm-up of a peer counts", law: "extra requests", file: "bench/peers_run.go",
		old: "		if v.Call >= end {\n", new: "		if v.Call > end {\n",
		tests: []string{"TestPeerRow"},
	},
	{
		name: "a peer's third attempt alone is extra", law: "extra requests", file: "bench/peers_run.go",
		old: "		if v.Attempt > 1 {\n", new: "		if v.Attempt > 2 {\n",
		tests: []string{"TestPeerRow"},
	},
	{
		name: "extra requests are a share of all", law: "extra requests", file: "bench/peers_run.go",
		old: "n := r.Requests - r.ExtraRequests; n > 0", new: "n := r.Requests; n > 0",
		tests: []string{"TestPeerRow"},
	},
	{
		name: "one contender is always the first", law: "turns", file: "bench/peers_run.go",
		old: "			i := (k + b) % len(runs) //", new: "			i := k //",
		tests: []string{"TestPeers"},
	},
}
