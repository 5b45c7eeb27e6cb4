package main

// wide is time between two steps of a fault that should be one: enough that others get
// between them for sure, on a busy machine too.
const wide = "		for range 10000 {\n			p.load()\n		}\n"

// permitFaults break the ledger: who is let in, and who waits.
var permitFaults = []fault{
	// Those who wait.
	{
		name: "a permit given up in the instant of its grant is lost", law: "L6", file: "permit/wait.go",
		old: "	w.permit.Release(Ignored)\n", new: "	_ = w.permit\n",
	},
	{
		name: "a caller who leaves gives back a permit that it never had", law: "L2", file: "permit/wait.go",
		old: "	if w.queued {\n		p.dropLocked(w, nil)\n", new: "	if w.queued {\n		p.dropLocked(w, nil)\n		p.gate.Add(-uint64(w.n))\n",
	},
	{
		name: "a waiter that gives up stays in the queue and is handed a permit", law: "L6", file: "permit/wait.go",
		old: "	if w.queued {\n		p.dropLocked(w, nil)\n", new: "	if false {\n		p.dropLocked(w, nil)\n",
	},
	{
		name: "a permit granted in the instant in which its context ends is kept", law: "Acquire", file: "permit/wait.go",
		old: "	if err := ctx.Err(); err != nil {\n		return Permit{}, err // leave", new: "	if err := ctx.Err(); err != nil && !woken {\n		return Permit{}, err // leave",
	},
	{
		name: "a context that panics while it waits loses its permit", law: "L10", file: "permit/wait.go",
		old: "		if !left {\n			p.leave(w)\n		}\n", new: "		if !left && recover() == nil {\n			p.leave(w)\n		}\n",
	},
	{
		name: "a context that is done without a reason gets a permit that is nobody's", law: "L10", file: "permit/wait.go",
		old: "	if !woken {\n", new: "	if !woken && w.err != nil {\n",
	},
	{
		name: "raising the limit wakes one waiter only", law: "L6", file: "permit/pool.go",
		old: "	p.wakeLocked()\n	return nil\n",
		new: "	if w := p.queue.head; w != nil && p.load().fits(w.n, 0) {\n		if x, _, ok := p.admit(w.n, 0, holder); ok {\n			x.seen |= grantWaited\n			w.permit = x\n			p.dropLocked(w, nil)\n			close(w.ready)\n		}\n	}\n	return nil\n",
	},
	{
		name: "raising the limit wakes nobody", law: "L6", file: "permit/pool.go",
		old: "	p.wakeLocked()\n	return nil\n", new: "	return nil\n",
	},
	{
		name: "a release wakes nobody", law: "L6", file: "permit/admit.go",
		old: "	p.wakeLocked()\n	if g := p.load(); g&gateClosed", new: "	if g := p.load(); g&gateClosed",
	},
	{
		name: "a release does not look whether somebody waits", law: "L6", file: "permit/admit.go",
		old: "	if g&(gateWaiting|gateClosed) != 0 {\n", new: "	if g&gateClosed != 0 {\n",
	},
	{
		name: "a release looks whether somebody waits before it makes room", law: "L6", file: "permit/admit.go",
		old: "	g := gate(p.gate.Add(-uint64(n)))\n", new: "	g := p.load()\n" + wide + "	p.gate.Add(-uint64(n))\n",
	},
	{
		name: "whatever makes room wakes one waiter only", law: "L6", file: "permit/wait.go",
		old: "		p.dropLocked(w, nil)\n		close(w.ready)\n	}\n", new: "		p.dropLocked(w, nil)\n		close(w.ready)\n		return\n	}\n",
	},
	{
		name: "a waiter is woken and no permit taken for it", law: "L5", file: "permit/wait.go",
		old: "		w.permit = x\n", new: "		w.permit = x\n		p.gate.Add(-uint64(w.n))\n",
	},
	{
		name: "a waiter is not told that it waited", law: "Grant", file: "permit/wait.go",
		old: "		x.seen |= grantWaited\n", new: "",
	},
	{
		name: "the last to come is served first", law: "L6", file: "permit/wait.go",
		old: "	if p.config.LIFOAfter == 0 || q.head == q.tail || q.heavy > 0 {\n		return q.head\n	}\n", new: "	if p.config.LIFOAfter == 0 || q.head == q.tail || q.heavy > 0 {\n		return q.tail\n	}\n",
	},
	{
		name: "those behind one who leaves are forgotten", law: "L6", file: "permit/queue.go",
		old: "		w.prev.next = w.next\n", new: "		w.prev.next = nil\n",
	},
	{
		name: "a waiter is queued and the gate does not show it", law: "L6", file: "permit/wait.go",
		old: "!p.swap(g, g|gateWaiting)", new: "!p.swap(g, g)",
	},
	{
		name: "the decision to sleep is not a swap of the word that refused", law: "L6", file: "permit/wait.go",
		old: "			if p.queue.len == 0 && !p.swap(g, g|gateWaiting) {\n				continue\n			}\n", new: wide + "			p.gate.Or(uint64(gateWaiting))\n",
	},
	{
		name: "the gate shows a waiter for ever", law: "L6", file: "permit/wait.go",
		old: "	if p.queue.len == 0 {\n		p.gate.And", new: "	if false {\n		p.gate.And",
	},
	{
		name: "the gate shows no waiter while there still are some", law: "L6", file: "permit/wait.go",
		old: "	if p.queue.len == 0 {\n		p.gate.And", new: "	if true {\n		p.gate.And",
	},
	{
		name: "the gate shows no waiter before the last one has its permit", law: "L6", file: "permit/wait.go",
		old: "		x, _, ok := p.admit(w.n, 0, holder)\n", new: "		if p.queue.len == 1 {\n			p.gate.And(^uint64(gateWaiting))\n		}\n" + wide + "		x, _, ok := p.admit(w.n, 0, holder)\n",
	},
	{
		name: "the bound of the queue is off by one", law: "AcquireWithin", file: "permit/wait.go",
		old: "if p.queue.len >= maxWaiting {", new: "if p.queue.len > maxWaiting {",
	},
	{
		name: "the queue has no bound", law: "AcquireWithin", file: "permit/wait.go",
		old: "if p.queue.len >= maxWaiting {", new: "if false {",
	},

	// Newcomers.
	{
		name: "TryAcquire takes a permit while others wait", law: "L6", file: "permit/pool.go",
		old: "	for !g.refuses(n, reserve) {\n		x, refused, ok := p.admit(n, reserve, newcomer)",
		new: "	for g&gateClosed == 0 && g.fits(n, reserve) {\n		x, refused, ok := p.admit(n, reserve, gateClosed|gateFrozen)",
	},
	{
		name: "Acquire takes a permit while others wait", law: "L6", file: "permit/pool.go",
		old: "	if !p.crowded.Load() {\n		if x, _, ok := p.admit(1, 0, newcomer); ok {\n			return x, nil\n		}\n	}\n	return p.wait(ctx, 1, math.MaxInt)", new: "	if x, _, ok := p.admit(1, 0, gateClosed|gateFrozen); ok {\n		return x, nil\n	}\n	return p.wait(ctx, 1, math.MaxInt)",
	},
	{
		name: "AcquireWithin takes a permit while others wait", law: "L6", file: "permit/pool.go",
		old: "	if !p.crowded.Load() {\n		if x, _, ok := p.admit(1, 0, newcomer); ok {\n			return x, nil\n		}\n	}\n	return p.wait(ctx, 1, maxWaiting)", new: "	if x, _, ok := p.admit(1, 0, gateClosed|gateFrozen); ok {\n		return x, nil\n	}\n	return p.wait(ctx, 1, maxWaiting)",
	},
	{
		name: "a caller who comes to the queue does not queue behind those who wait", law: "L6", file: "permit/wait.go",
		old: "		case p.queue.len > 0 || !g.fits(n, 0):\n", new: "		case !g.fits(n, 0):\n",
	},
	{
		name: "whoever asks is granted when in flight equals the limit", law: "L5", file: "permit/gate.go",
		old: "	free := g.limit() - g.inFlight() //", new: "	free := g.limit() - g.inFlight() + 1 //",
	},
	{
		name: "Acquire grants when in flight equals the limit", law: "L5", file: "permit/admit.go",
		old: "		if g&barred != 0 || !g.fits(n, reserve) {\n", new: "		if g&barred != 0 || !g.fits(n-1, reserve) {\n",
	},
	{
		name: "TryAcquire grants when in flight equals the limit", law: "L5", file: "permit/pool.go",
		old: "	for !g.refuses(n, reserve) {\n		x, refused, ok := p.admit(n, reserve, newcomer)\n",
		new: "	for !g.refuses(n-1, reserve) {\n		p.gate.Add(1 << gateLimitShift)\n		x, refused, ok := p.admit(n, reserve, newcomer)\n		p.gate.Add(^uint64(1<<gateLimitShift - 1))\n",
	},
	{
		name: "a waiter is granted when in flight equals the limit", law: "L5", file: "permit/wait.go",
		old: "p.load().fits(w.n, 0); w = p.nextLocked() {\n		x, _, ok := p.admit(w.n, 0, holder)\n",
		new: "p.load().fits(w.n-1, 0); w = p.nextLocked() {\n		p.gate.Add(1 << gateLimitShift)\n		x, _, ok := p.admit(w.n, 0, holder)\n		p.gate.Add(^uint64(1<<gateLimitShift - 1))\n",
	},
	{
		name: "the gate is looked at once and swapped later whatever it is then", law: "L5", file: "permit/admit.go",
		old: "		if p.swap(g, g+gate(n)) {\n			break\n		}\n", new: wide + "		for ; !p.swap(g, g+gate(n)); g = p.load() {\n		}\n		break\n",
	},
	{
		name: "an admission adds to the gate instead of swapping it", law: "L5", file: "permit/admit.go",
		old: "		if p.swap(g, g+gate(n)) {\n			break\n		}\n", new: wide + "		p.gate.Add(uint64(n))\n		break\n",
	},
	{
		name: "an admission overwrites what came between", law: "L1", file: "permit/admit.go",
		old: "		if p.swap(g, g+gate(n)) {\n			break\n		}\n", new: "		p.gate.Store(uint64(g + gate(n)))\n		break\n",
	},
	{
		name: "a grant shows the ledger before it", law: "Grant", file: "permit/admit.go",
		old: "seen: g + gate(n)}", new: "seen: g}",
	},
	{
		name: "the reserve is ignored", law: "L4", file: "permit/pool.go",
		old: "p.try(1, max(reserve, 0))", new: "p.try(1, 0)",
	},
	{
		name: "the reserve is one too small", law: "L4", file: "permit/pool.go",
		old: "p.try(1, max(reserve, 0))", new: "p.try(1, max(reserve-1, 0))",
	},
	{
		name: "the reserve is looked at once, and the place taken later", law: "L4", file: "permit/pool.go",
		old: "		x, refused, ok := p.admit(n, reserve, newcomer)\n", new: wide + "		x, refused, ok := p.admit(n, 0, newcomer)\n",
	},
	{
		name: "the reserve is ignored while Stats reads", law: "L4", file: "permit/pool.go",
		old: "		x, refused, ok := p.admit(n, reserve, newcomer)\n		if ok {\n			return x, true\n		}\n		if g = refused; g&gateFrozen != 0 {\n			// Stats is reading: mu is free as soon as it has done so.\n			p.mu.Lock()\n			x, g, ok = p.admit(n, reserve, newcomer)",
		new: wide + "		x, refused, ok := p.admit(n, reserve, newcomer)\n		if ok {\n			return x, true\n		}\n		if g = refused; g&gateFrozen != 0 {\n			p.mu.Lock()\n			x, g, ok = p.admit(n, 0, newcomer)",
	},
	{
		name: "TryAcquire refuses while Stats reads, although a permit is free", law: "TryAcquire", file: "permit/pool.go",
		old: "		if g = refused; g&gateFrozen != 0 {\n", new: "		if g = refused; g&gateFrozen != 0 {\n			break\n",
	},
	{
		name: "Acquire gives a permit to a caller who has gone", law: "L6", file: "permit/pool.go",
		old: "never starts.\n	if err := ctx.Err(); err != nil {", new: "never starts.\n	if err := error(nil); err != nil {",
	},
	{
		name: "AcquireWithin gives a permit to a caller who has gone", law: "L6", file: "permit/pool.go",
		old: "	if err := ctx.Err(); err != nil {\n		return Permit{}, err\n	}\n	if maxWaiting <= 0 {", new: "	if maxWaiting <= 0 {",
	},
	{
		name: "AcquireN gives permits to a caller who has gone", law: "L6", file: "permit/pool.go",
		old: "	if err := ctx.Err(); err != nil {\n		return Permit{}, err\n	}\n	return p.wait(ctx, n,", new: "	return p.wait(ctx, n,",
	},
	{
		name: "a call that is turned away is not counted", law: "Stats", file: "permit/pool.go",
		old: "	p.cell().refused.Add(1)\n	return Permit{}, false\n}\n\n// Acquire takes", new: "	return Permit{}, false\n}\n\n// Acquire takes",
	},
	{
		name: "a caller turned away at the queue is not counted", law: "Stats", file: "permit/wait.go",
		old: "			p.cell().refused.Add(1)\n			return Permit{}, err\n", new: "			return Permit{}, err\n",
	},
}
