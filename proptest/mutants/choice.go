package main

// choiceFaults break the choice of what becomes of losers, and what an attempt says of
// its own answer.
var choiceFaults = []fault{
	{
		name: "a loser that may drain is the caller's child", law: "losers", file: "hedgedlimit/losers.go",
		old: "p.kind == drains || p.kind == chooses }", new: "p.kind == drains }",
	},
	{
		name: "a policy that was chosen is not checked", law: "losers", file: "hedgedlimit/losers.go",
		old: "chosen.kind != chooses && chosen.validate() == nil", new: "true",
	},
	{
		name: "the choice is not told the delay", law: "losers", file: "hedgedlimit/start.go",
		old: "	c.waited.Store(int64(d))\n", new: "",
	},
	{
		name: "a call keeps the delay of the call before", law: "losers", file: "hedgedlimit/record.go",
		old: "	c.waited.Store(0)\n", new: "",
	},
	{
		name: "a call without losers has them chosen", law: "losers", file: "hedgedlimit/call.go",
		old: "	if len(c.attempts) > 1 || d.winner == nil {\n", new: "	{\n",
	},
	{
		name: "a loser has its policy chosen again", law: "losers", file: "hedgedlimit/attempt.go",
		old: "callerErr != nil && !t.lost()", new: "callerErr != nil",
	},
	{
		name: "a panic of the choice reaches the caller", law: "L10", file: "hedgedlimit/losers.go",
		old: "	h.guard(func() {\n		if chosen", new: "	func(f func()) { f() }(func() {\n		if chosen",
	},
	{
		name: "a choice that does not return loses the winner", law: "L10", file: "hedgedlimit/call.go",
		old: "	if len(c.attempts) > 1 || d.winner == nil {\n", new: "	decided = true\n	if len(c.attempts) > 1 || d.winner == nil {\n",
	},
	{
		name: "reading on after the answer is latency", law: "L12", file: "hedgedlimit/answer.go",
		old: "		end = min(end, t.answered)\n", new: "",
	},
	{
		name: "the last word on the answer counts", law: "L12", file: "hedgedlimit/answer.go",
		old: "		if t.answered == 0 {\n", new: "		{\n",
	},
	{
		name: "a marked result is a success for the limit", law: "mark", file: "hedgedlimit/attempt.go",
		old: "	if t.marked && o == permit.Success {\n		o = t.outcome\n	}\n", new: "",
	},
	{
		name: "a marked result is a success for the budget", law: "mark", file: "hedgedlimit/answer.go",
		old: "	case t.marked && t.err == nil && !t.panicked:\n		return AnswerNonFatal\n", new: "",
	},
	{
		name: "a marked hedge has paid", law: "mark", file: "hedgedlimit/call.go",
		old: "t == d.winner && !t.marked", new: "t == d.winner",
	},
	{
		name: "a marked result is a success for the holdback", law: "mark", file: "hedgedlimit/holdback.go",
		old: "d.winner == nil || d.winner.marked", new: "d.winner == nil",
	},
}
