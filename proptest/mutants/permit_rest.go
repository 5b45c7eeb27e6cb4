package main

// permitRestFaults break what stands around the ledger: snapshots, time, leaks, Close and
// hand-over.
var permitRestFaults = []fault{
	// Close.
	{
		name: "Close forgets those who wait", law: "Close", file: "permit/pool.go",
		old: "	for p.queue.head != nil {\n", new: "	for false {\n",
	},
	{
		name: "Close wakes one waiter only", law: "Close", file: "permit/pool.go",
		old: "	for p.queue.head != nil {\n", new: "	if p.queue.head != nil {\n",
	},
	{
		name: "Close does not wait for those who work", law: "L7", file: "permit/pool.go",
		old: "	if p.load().inFlight() == 0 {\n", new: "	if true {\n",
	},
	{
		name: "Close of an idle pool waits", law: "Close", file: "permit/pool.go",
		old: "	if p.load().inFlight() == 0 {\n", new: "	if false {\n",
	},
	{
		name: "Close counts who works before it shuts the gate", law: "Close", file: "permit/pool.go",
		old: "	p.gate.Or(uint64(gateClosed))\n	for p.queue.head != nil {\n		p.dropLocked(p.queue.head, ErrClosed)\n	}\n	// A release either came before the flag, and is seen here, or finds it, and comes\n	// to mu.\n	if p.load().inFlight() == 0 {\n",
		new: "	n := p.load().inFlight()\n" + wide + "	p.gate.Or(uint64(gateClosed))\n	for p.queue.head != nil {\n		p.dropLocked(p.queue.head, ErrClosed)\n	}\n	if n == 0 {\n",
	},
	{
		name: "Close is told of the first release", law: "L7", file: "permit/admit.go",
		old: "g&gateClosed != 0 && g.inFlight() == 0 && p.idle != nil", new: "g&gateClosed != 0 && p.idle != nil",
	},
	{
		name: "Close is not told of the last release", law: "L7", file: "permit/admit.go",
		old: "		close(p.idle)\n", new: "",
	},
	{
		name: "a release does not look whether the pool is closed", law: "L7", file: "permit/admit.go",
		old: "	if g&(gateWaiting|gateClosed) != 0 {\n", new: "	if g&gateWaiting != 0 {\n",
	},
	{
		name: "a closed pool grants permits", law: "Close", file: "permit/admit.go",
		old: "	newcomer = gateClosed | gateWaiting | gateFrozen\n", new: "	newcomer = gateWaiting | gateFrozen\n",
	},
	{
		name: "a new limit opens a closed pool", law: "Close", file: "permit/pool.go",
		old: "!p.swap(g, g.withLimit(n)); g", new: "!p.swap(g, g.withLimit(n)&^gateClosed); g",
	},

	// Stats.
	{
		name: "Stats does not freeze the gate", law: "Stats", file: "permit/stats.go",
		old: "	p.gate.Or(uint64(gateFrozen))\n", new: "",
	},
	{
		name: "newcomers are admitted while Stats reads", law: "Stats", file: "permit/admit.go",
		old: "	newcomer = gateClosed | gateWaiting | gateFrozen\n", new: "	newcomer = gateClosed | gateWaiting\n",
	},
	{
		name: "Stats reads the counters last", law: "Stats", file: "permit/stats.go",
		old: "	s.Granted = generations + uint64(inUse) + moreGranted\n	s.Released[Success] += generations + moreReleased - other\n	return s, ok && size == s.InFlight && p.load() == g\n",
		new: "	ok = ok && size == s.InFlight && p.load() == g\n" + wide + "	other, moreReleased, s.Released = 0, 0, [NumOutcomes]uint64{}\n	for i := range p.cells {\n		c := &p.cells[i]\n		for o := range c.other {\n			n := c.other[o].Load()\n			s.Released[o] += n\n			other += n\n		}\n		moreReleased += c.moreReleased.Load()\n	}\n	s.Granted = generations + uint64(inUse) + moreGranted\n	s.Released[Success] += generations + moreReleased - other\n	return s, ok\n",
	},
	{
		name: "Stats looks at the gate behind the records only", law: "Stats", file: "permit/stats.go",
		old: "	return s, ok && size == s.InFlight && p.load() == g\n", new: "	s.InFlight = p.load().inFlight()\n	return s, ok && size == s.InFlight\n",
	},
	{
		name: "Stats does not compare the records with the gate", law: "Stats", file: "permit/stats.go",
		old: "ok && size == s.InFlight && ", new: "ok && ",
	},
	{
		name: "Stats takes releases that are half done", law: "Stats", file: "permit/stats.go",
		old: "			case closing:\n				ok = false\n", new: "			case closing:\n",
	},

	// Time.
	{
		name: "a released permit is the oldest", law: "Stats", file: "permit/stats.go",
		old: "			case free:\n", new: "			case free:\n				s.Oldest = max(s.Oldest, now-at)\n",
	},
	{
		name: "the last permit is the oldest", law: "Stats", file: "permit/stats.go",
		old: "s.Oldest = max(s.Oldest, now-at)", new: "s.Oldest = now - at",
	},
	{
		name: "a record keeps the time of its first permit", law: "Stats", file: "permit/record.go",
		old: "int64(now)-old >= int64(time.Millisecond) ||", new: "old == 0 ||",
	},
	{
		name: "a permit is granted at the time at which its holder was woken", law: "L12", file: "permit/wait.go",
		old: "	if p.timed {\n		x.at = ", new: "	if false {\n		x.at = ",
	},

	// Permits that are lost.
	{
		name: "the pool keeps the handle of a held permit alive", law: "L2", file: "permit/admit.go",
		old: "	r.witness = nil\n", new: "",
	},
	{
		name: "a lost permit is counted twice", law: "L2", file: "permit/leak.go",
		old: "p.leaked.Add(uint64(leak.Permits))", new: "p.leaked.Add(uint64(2 * leak.Permits))",
	},
	{
		name: "a lost permit is given back unasked", law: "L2", file: "permit/leak.go",
		old: "	if leak.Reclaimed {\n", new: "	if true {\n",
	},
	{
		name: "a lost permit is not given back", law: "ReclaimLeaks", file: "permit/leak.go",
		old: "	if leak.Reclaimed {\n", new: "	if false {\n",
	},
	{
		name: "a record that was lost once is not watched any more", law: "ReclaimLeaks", file: "permit/leak.go",
		old: "p.finish(p.newWitness(r), ", new: "p.finish(&witness{pool: p, record: r}, ",
	},
	{
		name: "an abandoned permit is never lost", law: "L2", file: "permit/leak.go",
		old: "s != held && s != abandoned", new: "s != held",
	},
	{
		name: "a lost weighted permit counts as one", law: "L2", file: "permit/leak.go",
		old: "Permits: int(r.size.Load()),", new: "Permits: 1,",
	},
	{
		name: "a lost permit was held for as long as the pool is old", law: "OnLeak", file: "permit/leak.go",
		old: "time.Since(p.config.Base)-time.Duration(r.at.Load())", new: "time.Since(p.config.Base)",
	},
	{
		name: "what watches a permit keeps the pool alive", law: "L11", file: "permit/leak.go",
		old: "runtime.AddCleanup(w, orphan.found, ", new: "runtime.AddCleanup(w, func(o orphan) {\n		o.found()\n		runtime.KeepAlive(p)\n	}, ",
	},
	{
		name: "a panic of OnLeak ends the process", law: "L10", file: "permit/leak.go",
		old: "if v := recover(); v != nil {", new: "if v := any(nil); v != nil {",
	},
	{
		name: "the stack of another permit is reported", law: "OnLeak", file: "permit/leak.go",
		old: "s != nil && s.generation == tag>>stateBits", new: "s != nil",
	},
	{
		name: "the stack of whoever woke the holder is reported", law: "L2", file: "permit/admit.go",
		old: "	if barred == newcomer {", new: "	if barred != 0 {",
	},
	{
		name: "the stack of a holder who waited is not noted", law: "StackEvery", file: "permit/wait.go",
		old: "	p.sample(x)\n	return x, nil\n}\n\n// leave", new: "	return x, nil\n}\n\n// leave",
	},
	{
		name: "every stack is sampled", law: "StackEvery", file: "permit/leak.go",
		old: "if rand.IntN(p.config.StackEvery) != 0 {", new: "if rand.IntN(p.config.StackEvery) < 0 {",
	},

	// Limits.
	{
		name: "a limit of 0 is taken", law: "L14", file: "permit/gate.go",
		old: "	case n < 1:\n", new: "	case n < 0:\n",
	},
	{
		name: "a limit above MaxLimit is taken", law: "L14", file: "permit/gate.go",
		old: "	case n > MaxLimit:\n", new: "	case false:\n",
	},
	{
		name: "a negative StackEvery is taken", law: "NewPool", file: "permit/config.go",
		old: "	if c.StackEvery < 0 {\n", new: "	if false {\n",
	},

	// Hand-over, and what goes on beside it.
	{
		name: "a permit is handed over although the limit was lowered below what is out", law: "L5", file: "permit/admit.go",
		old: " || g.inFlight() > g.limit() {", new: " || g.inFlight() < 0 {",
	},
	{
		name: "a second release through a copy hands the next holder's permit over", law: "L2", file: "permit/admit.go",
		old: "	if !r.pass(generation) {", new: "	if !r.pass(r.tag.Load() >> stateBits) {",
	},
	{
		name: "a permit that is handed over keeps its generation", law: "L2", file: "permit/record.go",
		old: "	next := (generation+1)<<stateBits | held\n", new: "	next := generation<<stateBits | held\n",
	},
	{
		name: "a hand-over forgets the outcome", law: "Stats", file: "permit/admit.go",
		old: "	r.cell.count(o, 1)\n", new: "",
	},
	{
		name: "a permit that is handed over is as old as the one before", law: "Stats", file: "permit/admit.go",
		old: "		r.stamp(time.Since(p.config.Base))\n", new: "",
	},
	{
		name: "a head that wants more is handed one", law: "AcquireN", file: "permit/admit.go",
		old: "next == nil || next.n != 1 || ", new: "next == nil || ",
	},
	{
		name: "a permit that weighs more is handed over as one", law: "AcquireN", file: "permit/admit.go",
		old: " || r.size.Load() != 1 || ", new: " || ",
	},
	{
		name: "an abandoned permit cannot be handed over", law: "L2", file: "permit/record.go",
		old: "next) ||\n		r.tag.CompareAndSwap(generation<<stateBits|abandoned, next)", new: "next)",
	},
	{
		name: "a Close that gave up leaves its channel behind", law: "Close", file: "permit/pool.go",
		old: "	if p.closers--; p.closers == 0 {\n		p.idle = nil\n	}\n", new: "	p.closers--\n",
	},
	{
		name: "a hook that ends its goroutine ends the cleanups of the process", law: "L10", file: "permit/leak.go",
		old: "	go func() {\n		defer close(done)", new: "	func() {\n		defer close(done)",
	},
	{
		name: "records of other cells are never used again", law: "L11", file: "permit/record.go",
		old: "	for i := 0; r == nil && i < len(p.cells); i++ {", new: "	for i := 0; r == nil && i < 0; i++ {",
	},
	{
		name: "a hand-over wakes before the permit is written", law: "L6", file: "permit/admit.go",
		old: "	next.permit = x\n	p.dropLocked(next, nil)\n	p.mu.Unlock()\n", new: "	p.dropLocked(next, nil)\n	p.mu.Unlock()\n	defer func() { next.permit = x }()\n",
	},
	{
		name: "last in first out whenever it was asked for", law: "L6", file: "permit/wait.go",
		old: "	if time.Since(p.base)-q.head.since > p.config.LIFOAfter {\n", new: "	if time.Since(p.base) >= 0 {\n",
	},
	{
		name: "last in first out is never", law: "L6", file: "permit/wait.go",
		old: "		return q.tail\n", new: "		return q.head\n",
	},
	{
		name: "the queue turns round an instant too early", law: "L6", file: "permit/wait.go",
		old: "q.head.since > p.config.LIFOAfter", new: "q.head.since >= p.config.LIFOAfter",
	},
	{
		name: "the pressure is measured by who came last", law: "L6", file: "permit/wait.go",
		old: "time.Since(p.base)-q.head.since", new: "time.Since(p.base)-q.tail.since",
	},
	{
		name: "who wants more than one is overtaken for ever, or holds up all", law: "AcquireN", file: "permit/wait.go",
		old: "q.head == q.tail || q.heavy > 0 {", new: "q.head == q.tail {",
	},
	{
		name: "a hand-over goes to the head whatever the order", law: "L6", file: "permit/admit.go",
		old: "w.record, p.nextLocked(), p.load()", new: "w.record, p.queue.head, p.load()",
	},
	{
		name: "a ledger without a clock does not know how long anyone has waited", law: "L6", file: "permit/pool.go",
		old: "		p.base = time.Now()\n", new: "",
	},
}
