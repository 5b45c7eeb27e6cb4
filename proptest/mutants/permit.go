package main

// permitFaults break the ledger.
var permitFaults = []fault{
	{
		name: "a permit given up in the instant of its grant is lost", law: "L6", file: "permit/pool.go",
		old: "p.releaseLocked(w.permit, Ignored)", new: "_ = w.permit",
	},
	{
		name: "a waiter that gives up stays in the queue and is handed a permit", law: "L6", file: "permit/pool.go",
		old: "	case w.queued:\n", new: "	case false:\n",
	},
	{
		name: "a context that panics while it waits loses its permit", law: "L10", file: "permit/pool.go",
		old: "		if !left {\n			p.leave(w)\n		}\n", new: "		if !left && recover() == nil {\n			p.leave(w)\n		}\n",
	},
	{
		name: "raising the limit wakes one waiter only", law: "L6", file: "permit/pool.go",
		old: "	p.limit = n\n	p.wakeLocked()\n",
		new: "	p.limit = n\n	if w := p.queue.head; w != nil && p.inFlight < p.limit {\n		p.queue.remove(w)\n		w.permit = p.grantLocked(true)\n		close(w.ready)\n	}\n",
	},
	{
		name: "raising the limit wakes nobody", law: "L6", file: "permit/pool.go",
		old: "	p.limit = n\n	p.wakeLocked()\n", new: "	p.limit = n\n",
	},
	{
		name: "a release wakes nobody", law: "L6", file: "permit/pool.go",
		old: "	t.next, p.free = p.free, t\n	p.wakeLocked()\n", new: "	t.next, p.free = p.free, t\n",
	},
	{
		name: "a waiter is woken and no permit taken for it", law: "L5", file: "permit/pool.go",
		old: "		w.permit = p.grantLocked(true)\n", new: "		w.permit = p.grantLocked(true)\n		p.inFlight--\n",
	},
	{
		name: "the last to come is served first", law: "L6", file: "permit/queue.go",
		old: "	w := q.head\n	if w != nil {\n		q.remove(w)", new: "	w := q.tail\n	if w != nil {\n		q.remove(w)",
	},
	{
		name: "Acquire does not queue behind those who wait", law: "L6", file: "permit/pool.go",
		old: "case p.queue.len == 0 && p.inFlight < p.limit:", new: "case p.queue.len > 0 || p.inFlight < p.limit:",
	},
	{
		name: "TryAcquire takes a permit while others wait", law: "L6", file: "permit/pool.go",
		old: "if p.closed || p.queue.len > 0 || p.limit-p.inFlight <= reserve {",
		new: "if p.closed || p.queue.len == 0 && p.limit-p.inFlight <= reserve {",
	},
	{
		name: "Acquire grants when in flight equals the limit", law: "L5", file: "permit/pool.go",
		old: "case p.queue.len == 0 && p.inFlight < p.limit:", new: "case p.queue.len == 0 && p.inFlight <= p.limit:",
	},
	{
		name: "TryAcquire grants when in flight equals the limit", law: "L5", file: "permit/pool.go",
		old: "p.limit-p.inFlight <= reserve", new: "p.limit-p.inFlight < reserve",
	},
	{
		name: "a waiter is granted when in flight equals the limit", law: "L5", file: "permit/pool.go",
		old: "	for p.inFlight < p.limit {", new: "	for p.inFlight <= p.limit {",
	},
	{
		name: "the reserve is ignored", law: "L4", file: "permit/pool.go",
		old: "p.limit-p.inFlight <= reserve", new: "p.limit-p.inFlight <= 0",
	},
	{
		name: "lowering the limit takes permits back", law: "L5", file: "permit/pool.go",
		old: "	p.limit = n\n", new: "	p.limit = n\n	p.inFlight = min(p.inFlight, n)\n",
	},
	{
		name: "a second release counts", law: "L2", file: "permit/pool.go",
		old: "	t := x.token\n	if t.gen != x.gen {", new: "	t := x.token\n	if t.gen < x.gen {",
	},
	{
		name: "an old handle speaks for the permit after it", law: "L2", file: "permit/pool.go",
		old: "	t.gen++\n", new: "",
	},
	{
		name: "abandoning a permit releases it", law: "L2", file: "permit/permit.go",
		old: "		x.pool.overhang++\n", new: "		x.pool.overhang++\n		x.pool.releaseLocked(x, Canceled)\n",
	},
	{
		name: "overhang does not come back", law: "L11", file: "permit/pool.go",
		old: "		p.overhang--\n", new: "",
	},
	{
		name: "a permit may be abandoned twice", law: "L2", file: "permit/permit.go",
		old: " && !x.token.abandoned {", new: " {",
	},
	{
		name: "a token comes back abandoned", law: "L11", file: "permit/pool.go",
		old: "		t.abandoned = false\n", new: "",
	},
	{
		name: "a caller who has gone is granted a permit", law: "L6", file: "permit/pool.go",
		old: "	if err := ctx.Err(); err != nil {\n		return Permit{}, err\n	}\n	p.mu.Lock()\n	switch {",
		new: "	p.mu.Lock()\n	switch {",
	},
	{
		name: "the bound of the queue is off by one", law: "AcquireWithin", file: "permit/pool.go",
		old: "case p.queue.len >= maxWaiting:", new: "case p.queue.len > maxWaiting:",
	},
	{
		name: "Close forgets those who wait", law: "Close", file: "permit/pool.go",
		old: "w != nil; w = p.queue.pop() {\n		close(w.ready)", new: "w != nil; w = p.queue.pop() {",
	},
	{
		name: "Close wakes one waiter only", law: "Close", file: "permit/pool.go",
		old: "	for w := p.queue.pop(); w != nil; w = p.queue.pop() {", new: "	if w := p.queue.pop(); w != nil {",
	},
	{
		name: "Close is not told of the last release", law: "L7", file: "permit/pool.go",
		old: "		close(p.idle)\n", new: "",
	},
	{
		name: "a closed pool grants permits", law: "Close", file: "permit/pool.go",
		old: "if p.closed || p.queue.len > 0 ||", new: "if p.queue.len > 0 ||",
	},
	{
		name: "a release is not counted", law: "Stats", file: "permit/pool.go",
		old: "	p.released[o]++\n", new: "",
	},
}
