package main

// hedgedlimitFaults break the life of calls and attempts.
var hedgedlimitFaults = []fault{
	// Permits.
	{
		name: "the decision of the call releases a loser's permit", law: "L2", file: "hedgedlimit/losers.go",
		old: "	t.permit.Abandon()\n", new: "	t.permit.Abandon()\n	t.permit.Release(permit.Canceled)\n",
	},
	{
		name: "cancelling a loser releases its permit", law: "L2", file: "hedgedlimit/losers.go",
		old: "	c.hedger.guard(func() { t.cancel(cause) })\n",
		new: "	t.permit.Release(permit.Canceled)\n	c.hedger.guard(func() { t.cancel(cause) })\n",
	},
	{
		name: "the permit comes back before the result is discarded", law: "L1", file: "hedgedlimit/attempt.go",
		old: "	defer t.drop(permit.Success) // also", new: "	t.drop(permit.Success) // also",
	},
	{
		name: "an attempt ends in spite of a Hold", law: "L1", file: "hedgedlimit/attempt.go",
		old: "	t.holds++\n", new: "",
	},
	{
		name: "each release of a Hold counts", law: "L2", file: "hedgedlimit/attempt.go",
		old: "c.generation != generation || t.open[word]&bit == 0 {", new: "c.generation != generation {",
	},
	{
		name: "a release of a Hold that comes late reaches the next call", law: "L2", file: "hedgedlimit/attempt.go",
		old: "c.generation != generation || t.open[word]&bit == 0 {", new: "c.generation < generation || len(t.open) == 0 || t.open[word]&bit == 0 {",
	},
	{
		name: "an attempt has 64 holds", law: "L1", file: "hedgedlimit/attempt.go",
		old: "	word, bit := t.taken/64, uint64", new: "	word, bit := 0, uint64",
	},
	{
		name: "a stack that has moved is not noticed", law: "cost", file: "hedgedlimit/stack.go",
		old: "		d.deep.Store(true)\n", new: "",
	},
	{
		name: "a stack does not grow at once", law: "cost", file: "hedgedlimit/stack.go",
		old: "		roomy(0)\n", new: "",
	},
	{
		name: "all stacks grow at once", law: "cost", file: "hedgedlimit/stack.go",
		old: "	if before != now && ", new: "	if ",
	},
	{
		name: "an attempt is not told of the caller's cancellation", law: "L13", file: "hedgedlimit/context.go",
		old: "	r.stop = context.AfterFunc(r.Context, f)\n", new: "	r.stop = func() bool { return true }\n",
	},
	{
		name: "a failed attempt keeps its permit", law: "L1", file: "hedgedlimit/attempt.go",
		old: "	if t.failed() {\n		t.drop(permit.Success)\n	}\n",
		new: "	if t.failed() {\n		time.AfterFunc(time.Second, func() { t.drop(permit.Success) })\n	}\n",
	},
	{
		name: "a hedge is sent without a permit", law: "L3", file: "hedgedlimit/start.go",
		old: "	p, ok := h.config.Limiter.TryAcquire(limiter.Hedge)\n	if !ok {", new: "	p, _ := h.config.Limiter.TryAcquire(limiter.Hedge)\n	if false {",
	},
	{
		name: "a hedge takes from the reserve", law: "L4", file: "hedgedlimit/start.go",
		old: "h.config.Limiter.TryAcquire(limiter.Hedge)", new: "h.config.Limiter.TryAcquire(limiter.Primary)",
	},
	{
		name: "a hedge waits for its permit", law: "L4", file: "hedgedlimit/start.go",
		old: "	p, ok := h.config.Limiter.TryAcquire(limiter.Hedge)\n",
		new: "	p, refused := h.config.Limiter.Acquire(c.ctx, limiter.Retry)\n	ok = refused == nil\n",
	},
	{
		name: "a retry does not wait for its permit", law: "retry", file: "hedgedlimit/start.go",
		old: "h.config.Limiter.Acquire(c.ctx, limiter.Retry)", new: "h.config.Limiter.Acquire(c.ctx, limiter.Hedge)",
	},
	// Losers.
	{
		name: "a loser is not cancelled", law: "losers", file: "hedgedlimit/losers.go",
		old: "	default:\n		t.stop(ErrLost)\n	}\n", new: "	default:\n	}\n",
	},
	{
		name: "draining has no bound", law: "losers", file: "hedgedlimit/losers.go",
		old: "		t.timer = time.AfterFunc(bound, t.drained)\n", new: "		c.refs.Add(-1)\n",
	},
	{
		name: "the caller's later cancellation reaches a loser that drains", law: "losers", file: "hedgedlimit/losers.go",
		old: "		c.hedger.guard(func() { t.detach() }) // as in end\n", new: "",
	},
	{
		name: "a loser that drains outlives the caller's deadline", law: "Drain", file: "hedgedlimit/losers.go",
		old: "			bound = min(bound, deadline.Sub(now))\n", new: "			_ = deadline\n",
	},
	{
		name: "an attempt that may drain loses the cause of the caller", law: "L13", file: "hedgedlimit/context.go",
		old: "	r := &relay{Context: parent}\n	t.ctx, t.cancel = context.WithCancelCause(r)\n	t.detach = r.stop\n",
		new: "	r := &relay{Context: parent}\n	t.ctx, t.cancel = context.WithCancelCause(r)\n	t.detach = r.stop\n	if at, ok := parent.Deadline(); ok {\n		t.ctx, _ = context.WithDeadline(t.ctx, at.Add(-1))\n	}\n",
	},
	{
		name: "an attempt sees the caller's deadline pass as a cancellation", law: "L13", file: "hedgedlimit/context.go",
		old: "	r := &relay{Context: parent}\n	t.ctx, t.cancel = context.WithCancelCause(r)\n	t.detach = r.stop\n",
		new: "	t.ctx, t.cancel = context.WithCancelCause(context.WithoutCancel(parent))\n	t.detach = context.AfterFunc(parent, func() { t.cancel(context.Cause(parent)) })\n",
	},
	{
		name: "the winner's context ends with the call", law: "L13", file: "hedgedlimit/losers.go",
		old: "	t.call.mu.Lock()\n	t.won = true\n", new: "	t.cancel(nil)\n	t.call.mu.Lock()\n	t.won = true\n",
	},
	{
		name: "the context of an attempt outlives it", law: "L11", file: "hedgedlimit/attempt.go",
		old: "	t.dropContext()\n	if t.decided", new: "	if t.decided",
	},
	{
		name: "the caller waits for the losers", law: "L7", file: "hedgedlimit/call.go",
		old: "		t.lose(now, policy, !d.ctxEnded)\n",
		new: "		t.lose(now, policy, !d.ctxEnded)\n		for t.permit.Held() {\n			time.Sleep(time.Millisecond)\n		}\n",
	},
	// Decisions.
	{
		name: "the end of the caller's context does not wake it", law: "L7", file: "hedgedlimit/call.go",
		old: "		case <-c.ctx.Done():\n		}\n", new: "		case <-context.Background().Done():\n		}\n",
	},
	{
		name: "the end of the caller's context sends a hedge", law: "L7", file: "hedgedlimit/call.go",
		old: "		case <-c.ctx.Done():\n		}\n", new: "		case <-c.ctx.Done():\n			c.hedge(StartDelay)\n		}\n",
	},
	{
		name: "a fatal error counts as one that is not", law: "verdicts", file: "hedgedlimit/call.go",
		old: "case t.panicked || t.verdict != NonFatal:", new: "case t.panicked:",
	},
	{
		name: "every error is fatal", law: "verdicts", file: "hedgedlimit/call.go",
		old: "case t.panicked || t.verdict != NonFatal:", new: "case t.failed():",
	},
	{
		name: "an error hides a success of the same instant", law: "ties", file: "hedgedlimit/call.go",
		old: "	case d.winner != nil:\n	case fatal != nil:\n", new: "	case d.winner != nil && fatal == nil:\n	case fatal != nil:\n		d.winner = nil\n",
	},
	{
		name: "of two successes the last to come wins", law: "ties", file: "hedgedlimit/call.go",
		old: "if d.winner == nil || t.number < d.winner.number {", new: "if true {",
	},
	{
		name: "a skip ends the call", law: "L4", file: "hedgedlimit/call.go",
		old: "		c.hedge(c.why)\n		return decision{}, false\n",
		new: "		n := len(c.attempts)\n		c.hedge(c.why)\n		if len(c.attempts) == n {\n			return c.fail()\n		}\n		return decision{}, false\n",
	},
	{
		name: "after a skip no hedge is due any more", law: "L4", file: "hedgedlimit/start.go",
		old: "	c.arm(minRearm)\n", new: "",
	},
	{
		name: "a failure does not start the next attempt", law: "verdicts", file: "hedgedlimit/call.go",
		old: "		c.hedge(StartFailure)\n", new: "",
	},
	{
		name: "a call that cannot go on waits for its delay", law: "L8", file: "hedgedlimit/call.go",
		old: "	if c.retry(why) {", new: "	if c.retry(why) || c.ctx.Err() == nil && len(c.attempts) < c.maxAttempts {",
	},
	{
		name: "refused hedges of no delay are due without a pause", law: "L15", file: "hedgedlimit/start.go",
		old: "const minRearm = time.Millisecond", new: "const minRearm = time.Microsecond",
	},
	{
		name: "one hedge more than MaxAttempts", law: "MaxAttempts", file: "hedgedlimit/start.go",
		old: "	return len(c.attempts) < c.maxAttempts && !c.noHedge", new: "	c.maxAttempts = max(c.maxAttempts, 2)\n	return len(c.attempts) < c.maxAttempts && !c.noHedge",
	},
	{
		name: "an attempt that cannot answer before the deadline is sent", law: "deadline", file: "hedgedlimit/start.go",
		old: "	return deadline.Sub(now) <= usual\n", new: "	_ = deadline\n	_ = usual\n	return false\n",
	},
	// The budget.
	{
		name: "a hedge is sent without budget", law: "L9", file: "hedgedlimit/start.go",
		old: "	if !h.config.Budget.Withdraw(now) {", new: "	if false {",
	},
	{
		name: "a retry is sent without budget", law: "L9", file: "hedgedlimit/start.go",
		old: "	paid := room && !late && h.config.Budget.Withdraw(now)\n", new: "	paid := room && !late\n",
	},
	{
		name: "a skipped hedge does not give its budget back", law: "L9", file: "hedgedlimit/start.go",
		old: "		h.config.Budget.Refund(now)\n", new: "",
	},
	{
		name: "a retry without a permit does not give its budget back", law: "L9", file: "hedgedlimit/start.go",
		old: "		h.config.Budget.Refund(time.Now())\n", new: "",
	},
	{
		name: "primaries pay nothing in", law: "L9", file: "hedgedlimit/attempt.go",
		old: "		h.config.Budget.Deposit(t.granted) // before the end of the attempt can be told\n", new: "",
	},
	// Results.
	{
		name: "a late result is discarded twice", law: "L10", file: "hedgedlimit/attempt.go",
		old: "	t.call.hedger.guard(func() { t.call.work.discard(t.number) })\n",
		new: "	t.call.hedger.guard(func() { t.call.work.discard(t.number) })\n	t.call.hedger.guard(func() { t.call.work.discard(t.number) })\n",
	},
	{
		name: "a late result is not discarded", law: "L10", file: "hedgedlimit/attempt.go",
		old: "	if !t.failed() {\n		t.discard()\n	}\n", new: "	if !t.failed() {\n		t.drop(permit.Success)\n	}\n",
	},
	{
		name: "the other result of a tie is not discarded", law: "L10", file: "hedgedlimit/call.go",
		old: "			go t.discard()\n", new: "			t.drop(0)\n",
	},
	{
		name: "losers that were cancelled are among the errors of a call", law: "errors", file: "hedgedlimit/call.go",
		old: "		if t.seen && t.err != nil {", new: "		if t.err == nil {\n			errs = append(errs, ErrLost)\n		} else {",
	},
	// Code of the user that does not return.
	{
		name: "a panic is swallowed", law: "L10", file: "hedgedlimit/call.go",
		old: "		panic(d.panicValue)\n", new: "		return 0, ErrGoexit\n",
	},
	{
		name: "a panic is raised as text", law: "L10", file: "hedgedlimit/call.go",
		old: "		panic(d.panicValue)\n", new: "		panic(\"panic in an attempt\")\n",
	},
	{
		name: "OnPanic is not told of a panic of the function", law: "L10", file: "hedgedlimit/attempt.go",
		old: "			h.panicked(v)\n", new: "",
	},
	{
		name: "a panic counts as a success", law: "L12", file: "hedgedlimit/attempt.go",
		old: "	o := permit.Ignored\n", new: "	o := permit.Success\n",
	},
	{
		name: "Goexit of the function leaves the caller waiting", law: "L10", file: "hedgedlimit/attempt.go",
		old: "	defer t.report()\n	t.run()\n", new: "	t.run()\n	t.report()\n",
	},
	{
		name: "Goexit of a callback leaves the caller waiting", law: "L10", file: "hedgedlimit/attempt.go",
		old: "	defer t.handOver() // also if a callback of the user calls Goexit\n	if t.failed() {\n		t.drop(permit.Success)\n	}\n",
		new: "	if t.failed() {\n		t.drop(permit.Success)\n	}\n	t.handOver()\n",
	},
	{
		name: "Goexit of the function counts as a result", law: "L10", file: "hedgedlimit/attempt.go",
		old: "			t.err, t.verdict = ErrGoexit, Fatal\n", new: "			t.verdict = Fatal\n",
	},
	{
		name: "a panic in the budget leaves attempts without a caller", law: "L10", file: "hedgedlimit/call.go",
		old: "		c.lock()\n		c.end.panicked", new: "		c.end.panicked",
	},
	{
		name: "a panic in Discard ends the process", law: "L10", file: "hedgedlimit/attempt.go",
		old: "	t.call.hedger.guard(func() { t.call.work.discard(t.number) })\n", new: "	t.call.work.discard(t.number)\n",
	},
}
