package main

// learningFaults break what the delay and the budget remember.
var learningFaults = []fault{
	{
		name: "a latency that was cut short counts as a full one", law: "L12", file: "hedgedlimit/window.go",
		old: "w.now.AddCensored(latency)", new: "w.now.Add(latency)",
	},
	{
		name: "a latency that was cut short is left out", law: "L12", file: "hedgedlimit/window.go",
		old: "		w.now.AddCensored(latency)\n", new: "",
	},
	{
		name: "an unknown delay is taken for none", law: "L12", file: "hedgedlimit/quantile.go",
		old: "	e.estimate, e.known = d, known\n", new: "	e.estimate, e.known = d, known || true\n",
	},
	{
		name: "hedges teach the delay", law: "L12", file: "hedgedlimit/attempt.go",
		old: "	if t.kind == limiter.Primary {\n		c.delay", new: "	if t.kind != limiter.Bypass {\n		c.delay",
	},
	{
		name: "hedges are sent before there are enough samples", law: "L12", file: "hedgedlimit/quantile.go",
		old: "	if e.window.count() < e.minSamples() {\n		return // Only", new: "	if e.window.count() < 1 {\n		return // Only",
	},
	{
		name: "a slow trickle never has enough samples", law: "QuantileConfig", file: "hedgedlimit/window.go",
		old: "(n >= enough && now.Sub(w.began) >= windowAge)", new: "(n > 0 && now.Sub(w.began) >= windowAge)",
	},
	{
		name: "the delay never forgets", law: "QuantileConfig", file: "hedgedlimit/window.go",
		old: "		w.now.Reset()\n", new: "",
	},
	{
		name: "the delay is not bounded by Max", law: "QuantileConfig", file: "hedgedlimit/quantile.go",
		old: "		d = min(d, e.config.Max)\n", new: "",
	},
	{
		name: "the time after cancellation counts as latency", law: "L12", file: "hedgedlimit/answer.go",
		old: "		end = t.canceled // from there on it was not service any more\n", new: "",
	},
	{
		name: "the account has no cap", law: "L9", file: "hedgedlimit/budget.go",
		old: "	b.balance = min(b.balance+b.deposit, b.cap)\n", new: "	b.balance += b.deposit\n",
	},
	{
		name: "a refund makes more than was taken", law: "L9", file: "hedgedlimit/budget.go",
		old: "	b.balance = min(b.balance+token, b.cap)\n", new: "	b.balance = min(b.balance+2*token, b.cap)\n",
	},
	{
		name: "the account goes below zero", law: "L9", file: "hedgedlimit/budget.go",
		old: "	if b.balance < token {", new: "	if b.balance <= 0 {",
	},
	{
		name: "a withdrawal costs nothing", law: "L9", file: "hedgedlimit/budget.go",
		old: "	b.balance -= token\n", new: "",
	},
	{
		name: "a clock that goes to and fro pays", law: "L9", file: "hedgedlimit/budget.go",
		old: "	if d <= 0 {\n		return\n	}\n	b.last = now\n", new: "	b.last = now\n	if d <= 0 {\n		return\n	}\n",
	},
	{
		name: "small payments of time are lost", law: "L9", file: "hedgedlimit/budget.go",
		old: "	b.rest = rest\n", new: "	_ = rest\n",
	},
}
