package permit

import "fmt"

// CheckInvariants compares the ledger with the formulas beside its fields. Nothing may
// be going on in other goroutines.
func (p *Pool) CheckInvariants() error {
	s, ok := p.read()
	for try := 0; !ok; try++ {
		if try == 100 {
			return fmt.Errorf("the books do not balance: something stays half done (gate %#x)", p.gate.Load())
		}
		s, ok = p.read()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.load()
	queued, heavy := 0, 0
	for w := p.queue.head; w != nil; w = w.next {
		queued++
		if w.n > 1 {
			heavy++
		}
		switch {
		case !w.queued:
			return fmt.Errorf("a waiter in the queue is marked as not queued")
		case w.n > g.limit():
			return fmt.Errorf("a waiter wants %d, the limit is %d", w.n, g.limit())
		case w.next != nil && w.next.prev != w, w.next == nil && p.queue.tail != w:
			return fmt.Errorf("the queue is not linked both ways")
		}
	}
	var released uint64
	for _, n := range s.Released {
		released += n
	}
	switch {
	case g.limit() < 1:
		return fmt.Errorf("limit %d < 1", g.limit())
	case g&gateFrozen != 0:
		return fmt.Errorf("the gate is frozen, and nobody is reading")
	case (g&gateWaiting != 0) != (queued > 0):
		return fmt.Errorf("waiting flag %v, but %d wait", g&gateWaiting != 0, queued)
	case s.Overhang < 0 || s.Overhang > s.InFlight:
		return fmt.Errorf("overhang %d is not between 0 and in flight %d", s.Overhang, s.InFlight)
	case s.Granted != uint64(s.InFlight)+released:
		return fmt.Errorf("granted %d != in flight %d + released %d", s.Granted, s.InFlight, released)
	case queued != p.queue.len || heavy != p.queue.heavy:
		return fmt.Errorf("queue.len %d and heavy %d, but %d and %d are linked", p.queue.len, p.queue.heavy, queued, heavy)
	case queued > 0 && g.fits(p.nextLocked().n, 0):
		return fmt.Errorf("the next waits for %d although in flight is %d of %d", p.nextLocked().n, g.inFlight(), g.limit())
	case g&gateClosed != 0 && queued > 0:
		return fmt.Errorf("%d wait in a closed pool", queued)
	}
	return p.checkRecords(g)
}

func (p *Pool) checkRecords(g gate) error {
	size := 0
	for i := range p.cells {
		c := &p.cells[i]
		c.mu.Lock()
		defer c.mu.Unlock()
		spare := map[*record]bool{}
		for r := c.spare; r != nil; r = r.next {
			if spare[r] {
				return fmt.Errorf("a record is in the free list twice")
			}
			spare[r] = true
		}
		for j, r := range c.records {
			tag := r.tag.Load()
			state := tag & stateMask
			n := r.size.Load()
			switch state {
			case closing:
				return fmt.Errorf("a record is closing, and nobody closes it")
			case held, abandoned:
				size += int(n)
				if r.witness != nil {
					return fmt.Errorf("the pool keeps the handle of a held permit alive")
				}
			case free:
				if n != 1 {
					return fmt.Errorf("a free record has size %d", n)
				}
				if r.witness == nil {
					return fmt.Errorf("a record that is free has no witness")
				}
			}
			if want := state == free && j >= fastRecords; spare[r] != want {
				return fmt.Errorf("record %d in state %d: in the free list %v", j, state, spare[r])
			}
			if n < 1 || r.index != j || r.cell != c {
				return fmt.Errorf("record %d: size %d, index %d", j, n, r.index)
			}
		}
	}
	if size != g.inFlight() {
		return fmt.Errorf("in flight %d, but %d permits are held", g.inFlight(), size)
	}
	return nil
}

// Records returns how many records the books have.
func (p *Pool) Records() (n int) {
	for i := range p.cells {
		c := &p.cells[i]
		c.mu.Lock()
		n += len(c.records)
		c.mu.Unlock()
	}
	return n
}

// FastRecords returns how many of them are found without a lock.
func (p *Pool) FastRecords() int { return fastRecords * len(p.cells) }

// ClaimInVain has the gate of a closed pool refuse n permits for which a record was
// claimed already, as when another caller comes first.
func (p *Pool) ClaimInVain(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, _, ok := p.admit(n, 0, holder); ok {
		panic("admitted to a closed pool")
	}
}
