package main

// wide is time between two steps of a fault that should be one: enough that others get
// between them for sure, on a busy machine too.
const wide = "		for range 2000 {\n			p.load()\n		}\n"

// permitFaults break the ledger: who is let in, who waits, and how it ends.
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
		old: "	for w := p.queue.head; w != nil && p.load().fits(w.n, 0); w = p.queue.head {", new: "	for w := p.queue.tail; w != nil && p.load().fits(w.n, 0); w = p.queue.tail {",
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
		old: "p.load().fits(w.n, 0); w = p.queue.head {\n		x, _, ok := p.admit(w.n, 0, holder)\n",
		new: "p.load().fits(w.n-1, 0); w = p.queue.head {\n		p.gate.Add(1 << gateLimitShift)\n		x, _, ok := p.admit(w.n, 0, holder)\n		p.gate.Add(^uint64(1<<gateLimitShift - 1))\n",
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
		old: "		if err != nil {\n			p.cell().refused.Add(1)\n		}\n", new: "",
	},

	// The end of a permit.
	{
		name: "an old handle releases the permit after it", law: "L2", file: "permit/record.go",
		old: "	tag := generation<<stateBits | held\n", new: "	tag := r.tag.Load()&^stateMask | held\n",
	},
	{
		name: "an old handle abandons the permit after it", law: "L2", file: "permit/permit.go",
		old: "		tag := x.generation << stateBits\n", new: "		tag := x.witness.record.tag.Load() &^ stateMask\n",
	},
	{
		name: "an old handle says that the permit after it is held", law: "L2", file: "permit/record.go",
		old: "	return tag == generation<<stateBits|held ||", new: "	return tag&stateMask == held ||",
	},
	{
		name: "a record comes back in the same generation", law: "L2", file: "permit/record.go",
		old: "{ c.free(r, generation+1) }", new: "{ c.free(r, generation) }",
	},
	{
		name: "two releases at once both count", law: "L2", file: "permit/record.go",
		old: "	if r.tag.CompareAndSwap(tag, tag|closing) {\n		return true", new: "	if r.tag.Load() == tag {\n		runtime.Gosched()\n		r.tag.Store(tag | closing)\n		return true",
	},
	{
		name: "a second release makes room, although it says that it does not count", law: "L2", file: "permit/admit.go",
		old: "	if !r.decide(generation) {\n", new: "	if !r.decide(generation) {\n		p.gate.Add(^uint64(0))\n",
	},
	{
		name: "abandoning a permit makes room", law: "L2", file: "permit/permit.go",
		old: "		x.witness.record.tag.CompareAndSwap(tag|held, tag|abandoned)\n", new: "		if x.witness.record.tag.CompareAndSwap(tag|held, tag|abandoned) {\n			x.witness.pool.gate.Add(^uint64(0))\n		}\n",
	},
	{
		name: "abandoning a permit that is released brings it back", law: "L2", file: "permit/permit.go",
		old: "		x.witness.record.tag.CompareAndSwap(tag|held, tag|abandoned)\n", new: "		x.witness.record.tag.Store(tag | abandoned)\n",
	},
	{
		name: "abandoning a permit does nothing", law: "Stats", file: "permit/permit.go",
		old: "		x.witness.record.tag.CompareAndSwap(tag|held, tag|abandoned)\n", new: "		_ = tag\n",
	},
	{
		name: "overhang does not come back", law: "L11", file: "permit/record.go",
		old: "	return r.tag.CompareAndSwap(tag, tag|closing)\n", new: "	return false\n",
	},
	{
		name: "an abandoned permit says that it is not held", law: "L1", file: "permit/record.go",
		old: " || tag == generation<<stateBits|abandoned\n", new: "\n",
	},
	{
		name: "overhang is counted twice", law: "Stats", file: "permit/stats.go",
		old: "				s.Overhang += n\n", new: "				s.Overhang += 2 * n\n",
	},
	{
		name: "outcomes other than success count as success", law: "Stats", file: "permit/record.go",
		old: "	if o != Success {\n", new: "	if false {\n",
	},
	{
		name: "outcomes other than success count as success too", law: "Stats", file: "permit/stats.go",
		old: "generations + moreReleased - other\n", new: "generations + moreReleased\n",
	},
	{
		name: "what is no outcome is none of the counted", law: "Stats", file: "permit/record.go",
		old: "			o = Ignored\n", new: "			o = Canceled\n",
	},
	{
		name: "lowering the limit takes permits back", law: "L1", file: "permit/pool.go",
		old: "!p.swap(g, g.withLimit(n)); g", new: "!p.swap(g, g.withLimit(n)&^MaxLimit|gate(min(g.inFlight(), n))); g",
	},
	{
		name: "a new limit overwrites what came between", law: "L1", file: "permit/pool.go",
		old: "	for g := p.load(); !p.swap(g, g.withLimit(n)); g = p.load() {\n	}\n", new: "	g := p.load()\n" + wide + "	p.gate.Store(uint64(g.withLimit(n)))\n",
	},

	// The records.
	{
		name: "two grants share one record", law: "L2", file: "permit/record.go",
		old: "tag&stateMask == free && r.tag.CompareAndSwap(tag, tag|held) {\n", new: "tag&stateMask == free {\n			runtime.Gosched()\n			r.tag.Store(tag | held)\n",
	},
	{
		name: "a record that the gate did not admit is lost", law: "L11", file: "permit/admit.go",
		old: "			r.cell.unclaim(r, generation)\n", new: "",
	},
	{
		name: "a call that is turned away counts as a grant and a success", law: "Stats", file: "permit/admit.go",
		old: "			r.cell.unclaim(r, generation)\n", new: "			r.cell.shelve(r, generation)\n",
	},
	{
		name: "a record that the gate did not admit loses its witness", law: "L2", file: "permit/admit.go",
		old: "			r.witness = w\n			r.cell.unclaim", new: "			r.cell.unclaim",
	},
	{
		name: "a record that comes back loses its witness", law: "L2", file: "permit/admit.go",
		old: "	r.witness = w\n	g := gate", new: "	g := gate",
	},
	{
		name: "a record is not put into the free list", law: "L11", file: "permit/record.go",
		old: "	if r.index >= fastRecords {\n", new: "	if r.index > fastRecords {\n",
	},
	{
		name: "a record that is found without a lock is in the free list too", law: "L2", file: "permit/record.go",
		old: "	if r.index >= fastRecords {\n", new: "	if r.index >= 0 {\n",
	},

	// Weighted permits.
	{
		name: "a light waiter overtakes a heavy one", law: "AcquireN", file: "permit/wait.go",
		old: "	for w := p.queue.head; w != nil && p.load().fits(w.n, 0); w = p.queue.head {\n",
		new: "	var next *waiter\n	for w := p.queue.head; w != nil; w = next {\n		if next = w.next; !p.load().fits(w.n, 0) {\n			continue\n		}\n",
	},
	{
		name: "a heavy head leaves, and those behind sleep on", law: "L6", file: "permit/wait.go",
		old: "		p.wakeLocked() // a head that was too heavy may have held up the rest\n", new: "",
	},
	{
		name: "AcquireN waits for more than the limit", law: "AcquireN", file: "permit/wait.go",
		old: "		case n > g.limit():\n", new: "		case false:\n",
	},
	{
		name: "AcquireN takes nothing as a weight", law: "AcquireN", file: "permit/pool.go",
		old: "checkLimit(\"AcquireN\", n); n < 1 {", new: "checkLimit(\"AcquireN\", n); n < 0 {",
	},
	{
		name: "a new limit leaves a waiter that is too heavy for it", law: "AcquireN", file: "permit/pool.go",
		old: "		if w.n > n {\n", new: "		if false {\n",
	},
	{
		name: "a new limit sends one heavy waiter away only", law: "AcquireN", file: "permit/pool.go",
		old: "			p.dropLocked(w, ErrTooMany)\n", new: "			p.dropLocked(w, ErrTooMany)\n			break\n",
	},
	{
		name: "a waiter that is sent away is not woken", law: "L6", file: "permit/wait.go",
		old: "		w.err = err\n		close(w.ready)\n", new: "		w.err = err\n",
	},
	{
		name: "a waiter that is sent away gets no error", law: "AcquireN", file: "permit/wait.go",
		old: "	x, err = w.permit, w.err\n", new: "	x, err = w.permit, nil\n",
	},
	{
		name: "a weighted grant takes one", law: "L5", file: "permit/admit.go",
		old: "p.swap(g, g+gate(n))", new: "p.swap(g, g+1)",
	},
	{
		name: "a weighted grant counts as one", law: "Stats", file: "permit/admit.go",
		old: "		c.moreGranted.Add(uint64(n - 1))\n", new: "",
	},
	{
		name: "a weighted release gives back one", law: "L11", file: "permit/admit.go",
		old: "p.gate.Add(-uint64(n))", new: "p.gate.Add(^uint64(0))",
	},
	{
		name: "a weighted release counts as one", law: "Stats", file: "permit/record.go",
		old: "		c.moreReleased.Add(n - 1)\n", new: "",
	},
	{
		name: "a weighted release counts as one of its outcome", law: "Stats", file: "permit/record.go",
		old: "		c.other[o].Add(n)\n", new: "		c.other[o].Add(1)\n",
	},
	{
		name: "a weighted permit that is abandoned counts as one", law: "Stats", file: "permit/stats.go",
		old: "				s.Overhang += n\n", new: "				s.Overhang++\n",
	},
	{
		name: "a record keeps the weight of its last permit", law: "L11", file: "permit/admit.go",
		old: "		r.cell.count(o, uint64(n))\n		r.size.Store(1)\n", new: "		r.cell.count(o, uint64(n))\n",
	},
	{
		name: "a record that the gate did not admit keeps the weight", law: "L11", file: "permit/admit.go",
		old: "	var g gate\n	for {\n		g = p.load()\n		if g&barred != 0 || !g.fits(n, reserve) {\n			r.size.Store(1)\n",
		new: "	var g gate\n	for {\n" + wide + "		g = p.load()\n		if g&barred != 0 || !g.fits(n, reserve) {\n",
	},

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
		name: "the stack of whoever woke the holder is reported", law: "OnLeak", file: "permit/wait.go",
		old: "	if p.config.StackEvery > 0 {\n		p.sample(x.", new: "	if false {\n		p.sample(x.",
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
		old: "head == nil || head.n != 1 || ", new: "head == nil || ",
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
		old: "	head.permit = x\n	p.dropLocked(head, nil)\n	p.mu.Unlock()\n", new: "	p.dropLocked(head, nil)\n	p.mu.Unlock()\n	defer func() { head.permit = x }()\n",
	},
}
