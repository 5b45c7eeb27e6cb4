package main

// permitBookFaults break what is written about a permit, and how it ends.
var permitBookFaults = []fault{
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
		old: "	for w := p.nextLocked(); w != nil && p.load().fits(w.n, 0); w = p.nextLocked() {\n",
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
		new: "	var g gate\n	for {\n		if n > 1 {\n" + wide + "		}\n		g = p.load()\n		if g&barred != 0 || !g.fits(n, reserve) {\n",
	},
}
