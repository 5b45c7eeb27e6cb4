package permit

import "fmt"

// CheckInvariants compares the ledger with the formulas beside its fields.
func (p *Pool) CheckInvariants() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var released uint64
	for _, n := range p.released {
		released += n
	}
	queued := 0
	for w := p.queue.head; w != nil; w = w.next {
		queued++
		if !w.queued {
			return fmt.Errorf("a waiter in the queue is marked as not queued")
		}
	}
	switch {
	case p.limit < 1:
		return fmt.Errorf("limit %d < 1", p.limit)
	case p.inFlight < 0:
		return fmt.Errorf("in flight %d < 0", p.inFlight)
	case p.overhang < 0 || p.overhang > p.inFlight:
		return fmt.Errorf("overhang %d is not between 0 and in flight %d", p.overhang, p.inFlight)
	case p.granted != uint64(p.inFlight)+released:
		return fmt.Errorf("granted %d != in flight %d + released %d", p.granted, p.inFlight, released)
	case queued != p.queue.len:
		return fmt.Errorf("queue.len %d, but %d are linked", p.queue.len, queued)
	case p.queue.len > 0 && p.inFlight < p.limit:
		return fmt.Errorf("%d wait although in flight %d < limit %d", p.queue.len, p.inFlight, p.limit)
	case p.closed && p.queue.len > 0:
		return fmt.Errorf("%d wait in a closed pool", p.queue.len)
	}

	for t := p.free; t != nil; t = t.next {

		if t.abandoned {
			return fmt.Errorf("a free token is abandoned")
		}
	}
	return nil
}
