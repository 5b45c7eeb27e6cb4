package main

// stormFaults break the model of a retry storm. Each names its test, since TestRows runs all of it.
var stormFaults = []fault{
	// Time-outs and the server.
	{
		name: "a storm's attempt times out in its last tick", law: "time-outs", file: "bench/internal/storm/run.go",
		old: "	r.queue.timedOut(r.tick-r.Timeout-1, func", new: "	r.queue.timedOut(r.tick-r.Timeout, func",
		tests: []string{"TestSimulateAgreesWithNaiveModel"},
	},
	{
		name: "an answer in the last tick comes too late", law: "time-outs", file: "bench/internal/storm/run.go",
		old: "	fresh := r.tick-b.tick <= r.Timeout\n", new: "	fresh := r.tick-b.tick < r.Timeout\n",
		tests: []string{"TestSimulateAgreesWithNaiveModel"},
	},
	{
		name: "an outage takes a tick longer", law: "outage", file: "bench/internal/storm/run.go",
		old: "r.tick < r.Start+r.Outage }", new: "r.tick <= r.Start+r.Outage }",
		tests: []string{"TestSimulateAgreesWithNaiveModel"},
	},
	{
		name: "an outage ends with half of a request done", law: "outage", file: "bench/internal/storm/run.go",
		old: "		r.free = 0 // what", new: "		// what",
		tests: []string{"TestServerWorksOneAfterTheOther"},
	},
	{
		name: "a server works while nothing is there", law: "capacity", file: "bench/internal/storm/run.go",
		old: "		r.free = at\n", new: "		r.free = min(r.free, at)\n",
		tests: []string{"TestServerWorksOneAfterTheOther"},
	},
	{
		name: "what the client kept back came to the server", law: "counts", file: "bench/internal/storm/run.go",
		old: "		r.client.unsent(number)\n	} else {\n		r.figures.come(r.tick, 1)\n	}\n", new: "		r.client.unsent(number)\n	}\n	r.figures.come(r.tick, 1)\n",
		tests: []string{"TestUnsentAttempts"},
	},
	{
		name: "the calls of a tick come before its retries", law: "a tick", file: "bench/internal/storm/run.go",
		old: "		if share += calls; share >= all {\n			share -= all\n", new: "		if share++; share <= calls {\n",
		tests: []string{"TestRows"},
	},
	{
		name: "the queue forgets who waits", law: "queue", file: "bench/internal/storm/queue.go",
		old: "	n := min(q.head, q.waited)\n", new: "	n := max(q.head, q.waited)\n",
		tests: []string{"TestInsideOfATick"},
	},

	// Layers, budgets and back-off.
	{
		name: "a storm's budget allows all", law: "L9", file: "bench/internal/storm/client.go",
		old: "			if !l.budget.Withdraw(x.now) {\n", new: "			if !l.budget.Withdraw(x.now) && false {\n",
		tests: []string{"TestLayersTryFromTheInside"},
	},
	{
		name: "time pays into a storm's budget", law: "L9", file: "bench/internal/storm/client.go",
		old: "PerSecond: -1, ", new: "PerSecond: 1, ",
		tests: []string{"TestTimePaysNothingIn"},
	},
	{
		name: "a retry above pays nothing in below", law: "budgets", file: "bench/internal/storm/client.go",
		old: "x.deposit(x.layers[i+1:]) || bounded", new: "bounded",
		tests: []string{"TestRetriesPayInBelow"},
	},
	{
		name: "a retry that was not sent is not paid back", law: "L9", file: "bench/internal/storm/client.go",
		old: "			l.budget.Refund(x.now)\n", new: "",
		tests: []string{"TestUnsentRetryIsPaidBack"},
	},
	{
		name: "one token pays for all that failed", law: "L9", file: "bench/internal/storm/client.go",
		old: "		case bounded:\n", new: "		case bounded && n == 1:\n",
		tests: []string{"TestSimulateAgreesWithNaiveModel"},
	},
	{
		name: "a storm's back-off grows in a line", law: "back-off", file: "bench/internal/storm/client.go",
		old: "		w *= b.Multiplier\n", new: "		w += b.Multiplier\n",
		tests: []string{"TestBackoffSpreadsEvenlyAndLosesNothing"},
	},
	{
		name: "a back-off loses who does not divide evenly", law: "back-off", file: "bench/internal/storm/client.go",
		old: "n / (most + 1 - i)", new: "n / (most + 1)",
		tests: []string{"TestBackoffSpreadsEvenlyAndLosesNothing"},
	},

	// Gates.
	{
		name: "a client's permit ends with work that it gave up", law: "gates of a storm", file: "bench/internal/storm/gate.go",
		old: "	if fresh {\n		g.release(n, permit.Success)\n	}\n", new: "	_ = fresh\n	g.release(min(n, len(g.permits)), permit.Success)\n",
		tests: []string{"TestGates"},
	},
	{
		name: "a client's permit outlives its time-out", law: "gates of a storm", file: "bench/internal/storm/gate.go",
		old: "{ g.release(n, permit.Expired) }", new: "{}",
		tests: []string{"TestGates"},
	},
	{
		name: "a server's permit ends with the client's time-out", law: "L2", file: "bench/internal/storm/gate.go",
		old: "func (g *atServer) timedOut(int)         {}", new: "func (g *atServer) timedOut(n int)       { g.release(min(n, len(g.permits)), permit.Expired) }",
		tests: []string{"TestGates"},
	},
	{
		name: "a time-out is a success to the limit in front", law: "L12", file: "bench/internal/storm/gate.go",
		old: "{ g.release(n, permit.Expired) }", new: "{ g.release(n, permit.Success) }",
		tests: []string{"TestTimeoutsLowerTheLimit"},
	},
	{
		name: "a marked retry takes the reserve", law: "L4", file: "bench/internal/storm/gate.go",
		old: "		kind = limiter.Hedge\n", new: "		kind = limiter.Primary\n",
		tests: []string{"TestGates"},
	},
	{
		name: "a queue of the server holds one more", law: "queue", file: "bench/internal/storm/gate.go",
		old: "	if g.queue.n < g.max {\n", new: "	if g.queue.n <= g.max {\n",
		tests: []string{"TestRows"},
	},

	// Figures and targets.
	{
		name: "a retry that is answered is a first try", law: "figures", file: "bench/internal/storm/figures.go",
		old: "; b.number == 0 && after >= 0", new: "; after >= 0",
		tests: []string{"TestRows"},
	},
	{
		name: "work that nobody waits for is no waste", law: "figures", file: "bench/internal/storm/figures.go",
		old: "		f.Wasted += b.n\n", new: "",
		tests: []string{"TestSimulateAgreesWithNaiveModel"},
	},
	{
		name: "a queue that fits into a time-out is too long", law: "figures", file: "bench/internal/storm/figures.go",
		old: "		if n > c.Capacity*c.Timeout {\n", new: "		if n >= c.Capacity*c.Timeout {\n",
		tests: []string{"TestFigures"},
	},
	{
		name: "calls that still fail at the end have stopped", law: "figures", file: "bench/internal/storm/figures.go",
		old: "max(c.Length-1-c.Timeout-f.lastFailure, 0)", new: "max(c.Length-1-f.lastFailure, 0)",
		tests: []string{"TestFigures"},
	},
	{
		name: "a queue that is short for the last seconds is over", law: "figures", file: "bench/internal/storm/figures.go",
		old: "	if f.Healthy >= Health {\n", new: "	if f.Healthy > 0 {\n",
		tests: []string{"TestFigures"},
	},
	{
		name: "a minute without failures is told from its first second", law: "figures", file: "bench/internal/storm/figures.go",
		old: "	if f.Unfailing >= Health {\n", new: "	if f.Unfailing > 0 {\n",
		tests: []string{"TestFigures"},
	},
	{
		name: "what is not told was never", law: "figures", file: "bench/internal/storm/figures.go",
		old: "	if seconds == nil && sound > 0 {\n", new: "	if seconds == nil && sound > Health {\n",
		tests: []string{"TestNotTold"},
	},
	{
		name: "a budget bounds what a limit in front refuses", law: "the work of a row", file: "bench/internal/storm/case.go",
		old: "			if c.Limit != AtClient {\n", new: "			if c.Limit != AtServer {\n",
		tests: []string{"TestOneByOneBoundsTheWork"},
	},
	{
		name: "a budget costs no time", law: "the work of a row", file: "bench/internal/storm/case.go",
		old: "			asked = true\n", new: "",
		packages: []string{"bench"}, tests: []string{"TestParseStormFlagsErrors"},
	},
	{
		name: "a server without a queue has recovered, whatever it answers", law: "targets", file: "bench/internal/storm/rows.go",
		old: "*f.Recovered <= r.Within && f.Answering != nil && *f.Answering <= r.Within\n", new: "*f.Recovered <= r.Within\n",
		tests: []string{"TestJudge"},
	},
}
