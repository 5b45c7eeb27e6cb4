package main

// limiterFaults break the statistics of windows, and what the limiter puts around the
// ledger.
var limiterFaults = []fault{
	{
		name: "a cell that is collected keeps what it has counted", law: "Window", file: "limiter/meter.go",
		old: "c.out, c.times, c.admitted, c.waited, c.completed, c.drops, c.maxInFlight, c.saturated = 0, 0, 0, 0, 0, 0, 0, false",
		new: "c.out, c.times, c.admitted, c.waited, c.drops, c.maxInFlight, c.saturated = 0, 0, 0, 0, 0, 0, false",
	},
	{
		name: "the latencies of a cell are lost when it is collected", law: "Window", file: "limiter/meter.go",
		old: "		c.taught = 0\n		m.emptyLocked(c)\n", new: "		c.taught = 0\n		c.n = 0\n",
	},
	{
		name: "a cell that makes room throws its latencies away", law: "Window", file: "limiter/meter.go",
		old: "	c.mu.Lock()\n	m.emptyLocked(c)\n	c.mu.Unlock()\n", new: "	c.mu.Lock()\n	c.n = 0\n	c.mu.Unlock()\n",
	},
	{
		name: "one cell is never collected", law: "Window", file: "limiter/meter.go",
		old: "	for i := range m.cells {\n		c := &m.cells[i]\n		c.mu.Lock()\n", new: "	for i := range m.cells[1:] {\n		c := &m.cells[i]\n		c.mu.Lock()\n",
	},
	{
		name: "refusals are counted in every window again", law: "Window", file: "limiter/meter.go",
		old: "		c.collected = refused\n", new: "",
	},
	{
		name: "the attempts that go on are left out of the mean in flight", law: "Window", file: "limiter/meter.go",
		old: "return m.times + int64(at)*int64(m.out)", new: "return m.times",
	},
	{
		name: "the mean in flight forgets what began before the window", law: "Window", file: "limiter/meter.go",
		old: "	m.area = m.areaLocked(m.start)\n", new: "	m.area = m.times\n",
	},
	{
		name: "the time of a grant is not entered", law: "Window", file: "limiter/cell.go",
		old: "	c.times -= int64(grant.At)\n", new: "",
	},
	{
		name: "the greatest in flight begins at 0 in each window", law: "Window", file: "limiter/meter.go",
		old: "	m.maxInFlight = max(m.out, 0)\n", new: "	m.maxInFlight = 0\n",
	},
	{
		name: "attempts of an older epoch teach", law: "Window", file: "limiter/meter.go",
		old: "of.teaches() && of.epoch() == m.epoch.Load()", new: "of.teaches()",
	},
	{
		name: "hedges teach", law: "Window", file: "limiter/meter.go",
		old: "of.teaches() && of.epoch()", new: "of.epoch()",
	},
	{
		name: "a new epoch does not throw away what came before", law: "Window", file: "limiter/meter.go",
		old: "	if d.NewEpoch || d.Settle > 0 {\n", new: "	if d.Settle > 0 {\n",
	},
	{
		name: "the window begins when somebody comes, not when settling ends", law: "Window", file: "limiter/meter.go",
		old: "	m.resetLocked(time.Duration(at))\n", new: "	m.resetLocked(now)\n",
	},
	{
		name: "what happened before the end of settling counts", law: "Window", file: "limiter/meter.go",
		old: "	m.resetLocked(time.Duration(at))\n", new: "	m.start = time.Duration(at)\n",
	},
	{
		name: "a burst of drops waits for the window to be old enough", law: "Window", file: "limiter/meter.go",
		old: "look := c.drops != drops || int64(c.taught)", new: "look := c.drops < drops || int64(c.taught)",
	},
	{
		name: "a window is not looked at when it has its latencies", law: "Window", file: "limiter/meter.go",
		old: " || int64(c.taught) >= m.quota.Load()", new: "",
	},
	{
		name: "a cell looks only when all the latencies that are missing are in it", law: "Window", file: "limiter/meter.go",
		old: "quota = (need - n + cells - 1) / cells", new: "quota = need - n + cells - cells",
	},
	{
		name: "a window that grows old is not looked at", law: "Window", file: "limiter/meter.go",
		old: "		looks = least(int64(elapsed), func(e int64) bool { return due(e, need-1) })\n", new: "",
	},
	{
		name: "an expired attempt counts as a full latency", law: "L12", file: "limiter/cell.go",
		old: "		c.drops++\n		c.add(^int64(max(latency, 0)))\n", new: "		c.drops++\n		c.add(int64(max(latency, 0)))\n",
	},
	{
		name: "a refusal by the other side counts as throughput", law: "Window", file: "limiter/meter.go",
		old: "	if o != permit.Overload {\n		c.completed++\n	}\n", new: "	c.completed++\n",
	},
	{
		name: "who had to wait is no demand", law: "Window", file: "limiter/cell.go",
		old: "			c.waited++\n", new: "			c.waited += 0\n",
	},
	{
		name: "a hedge in the last place saturates", law: "Window", file: "limiter/cell.go",
		old: "	if kind.teaches() {\n		c.admitted++\n", new: "	c.saturated = c.saturated || grant.InFlight >= grant.Limit\n	if kind.teaches() {\n		c.admitted++\n",
	},
	{
		name: "refusals that come seldom do not read the clock", law: "LastPressure", file: "limiter/cell.go",
		old: "		stride = 1\n", new: "		stride = min(max(2*stride, 1), maxStride)\n",
	},
	{
		name: "a refused primary never finds a window due", law: "Window", file: "limiter/limiter.go",
		old: "	if l.meter.mayBeDue(now) {\n		l.closeWindow(now)\n	}\n", new: "",
	},
	{
		name: "those ahead in the queue are left out of the deadline", law: "Acquire", file: "limiter/pace.go",
		old: "position := waiting + 1 + inFlight - limit", new: "position := 1 + inFlight - limit",
	},
	{
		name: "the median latency is left out of the deadline", law: "Acquire", file: "limiter/pace.go",
		old: "wait+float64(l.pace.median.Load())", new: "wait",
	},
	{
		name: "a quiet window is taken for a slow service", law: "Acquire", file: "limiter/pace.go",
		old: "w.InFlight * float64(w.Elapsed)", new: "float64(w.Elapsed)",
	},
	{
		name: "a group drops a limiter that has permits out", law: "Group", file: "limiter/group.go",
		old: "limiter.InFlight() == 0", new: "limiter.InFlight() >= 0",
	},
	{
		name: "a limiter that is dropped while it is held gets a twin", law: "Group", file: "limiter/group.go",
		old: "	old := g.dropped[key].Value()", new: "	old := g.dropped[\"no key \"+key].Value()",
	},
	{
		name: "a group drops the limiter that was used last", law: "Group", file: "limiter/group.go",
		old: "	for e := g.recent.Back(); e != nil && looks < maxLooks; e = e.Prev() {", new: "	for e := g.recent.Front(); e != nil && looks < maxLooks; e = e.Next() {",
	},
	{
		name: "who runs outside the limit of a shadow teaches", law: "Shadow", file: "limiter/permit.go",
		old: "return m&outside == 0 && m.kind().teaches()", new: "return m.kind().teaches()",
	},
	{
		name: "who runs outside the limit of a shadow is not in flight", law: "L1", file: "limiter/limiter.go",
		old: "		n += l.shadow.InFlight()\n", new: "",
	},
	{
		name: "a Sampler is told of a call behind its window", law: "Sampler", file: "limiter/permit.go",
		old: "	if l.sampler != nil {\n		l.sample(p, o, latency) // before the window that the call is in may be closed\n	}\n	if due {\n		l.closeWindow(now)\n	}\n",
		new: "	if due {\n		l.closeWindow(now)\n	}\n	if l.sampler != nil {\n		l.sample(p, o, latency)\n	}\n",
	},
	{
		name: "a Sampler is told of hedges and of cache hits", law: "Sampler", file: "limiter/sample.go",
		old: "!p.mark.teaches() || ", new: "",
	},
	{
		name: "a Sampler is told of calls of another epoch", law: "Sampler", file: "limiter/sample.go",
		old: " || p.mark.epoch() != l.meter.epoch.Load()", new: "",
	},
	{
		name: "a Sampler is told of calls that were cancelled or ignored", law: "L12", file: "limiter/sample.go",
		old: "	if !dropped && o != permit.Success {\n		return\n	}\n", new: "",
	},
	{
		name: "to a Sampler a deadline that has passed is no drop", law: "Sampler", file: "limiter/sample.go",
		old: "dropped := o == permit.Overload || o == permit.Expired", new: "dropped := o == permit.Overload",
	},
	{
		name: "a panic of a Sampler comes out in the caller", law: "L10", file: "limiter/sample.go",
		old: "	defer l.catch()\n", new: "",
	},
	{
		name: "half of MaxWait is all of it", law: "LIFOAfter", file: "limiter/limiter.go",
		old: "max(config.MaxWait/2, 1)", new: "max(config.MaxWait, 1)",
	},
	{
		name: "the ledger is not told of the order of the queue", law: "LIFOAfter", file: "limiter/limiter.go",
		old: "		LIFOAfter:    config.LIFOAfter,\n", new: "",
	},
	{
		name: "who will overtake is refused for those ahead", law: "Acquire", file: "limiter/pace.go",
		old: "after > 0 && wait > float64(after)", new: "after < 0 && wait > float64(after)",
	},
	{
		name: "who will not overtake counts none of those ahead", law: "Acquire", file: "limiter/pace.go",
		old: "after > 0 && wait > float64(after)", new: "after > 0",
	},
	{
		name: "a caller makes a timer before it learns that the queue is full", law: "Allocations", file: "limiter/limiter.go",
		old: "if most := l.config.MaxWaiting; most != Unbounded && l.pool.Waiting() >= most {", new: "if most := l.config.MaxWaiting; most != Unbounded && l.pool.Waiting() > most {",
	},
}
