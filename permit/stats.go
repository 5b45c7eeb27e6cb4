package permit

// Stats is a snapshot of a pool, all of one instant: it obeys
// Granted == InFlight + Σ Released and 0 ≤ Overhang ≤ InFlight.
type Stats struct {
	// Limit is how many permits may be out.
	Limit int
	// InFlight is how many are out. It exceeds Limit only after a Resize
	// downwards, until holders release.
	InFlight int
	// Waiting is how many callers wait for one.
	Waiting int
	// Overhang is how many of those in flight nobody waits for any more.
	Overhang int
	// Granted counts all permits ever handed out.
	Granted uint64
	// Released counts the permits that came back, by outcome. One that was given
	// up in the instant of its grant is among the Ignored.
	Released [NumOutcomes]uint64
	// Closed says that no permit will be granted any more.
	Closed bool
}

// Stats returns one consistent snapshot. It never fails and may be called at any
// time, also after Close.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Limit:    p.limit,
		InFlight: p.inFlight,
		Waiting:  p.queue.len,
		Overhang: p.overhang,
		Granted:  p.granted,
		Released: p.released,
		Closed:   p.closed,
	}
}

// Limit returns the limit in force.
func (p *Pool) Limit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// InFlight returns how many permits are out.
func (p *Pool) InFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inFlight
}
