package permit

import (
	"context"
	"time"
)

// enqueue is the way through mu, for whoever does not fit or found Stats reading: it
// grants, or sends away, or returns a place in the queue.
func (p *Pool) enqueue(n, maxWaiting int) (Permit, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		g := p.load()
		switch {
		case g&gateClosed != 0:
			return Permit{}, nil, ErrClosed
		case n > g.limit():
			return Permit{}, nil, ErrTooMany
		case p.queue.len > 0 || !g.fits(n, 0):
			if p.queue.len >= maxWaiting {
				return Permit{}, nil, ErrQueueFull
			}
			// The decision to sleep is a swap of the very word that refused. A release
			// either comes before it, and the swap fails, or finds the flag, and comes
			// to mu.
			if p.queue.len == 0 && !p.swap(g, g|gateWaiting) {
				continue
			}
			w, _ := p.waiters.Get().(*waiter)
			if w == nil {
				w = new(waiter)
			}
			w.ready, w.n = make(chan struct{}), n
			if p.config.LIFOAfter > 0 {
				w.since = time.Since(p.base)
			}
			p.queue.push(w)
			if p.queue.len == 1 {
				p.crowded.Store(true)
			}
			return Permit{}, w, nil
		}
		if x, _, ok := p.admit(n, 0, holder); ok {
			return x, nil, nil
		}
	}
}

func (p *Pool) wait(ctx context.Context, n, maxWaiting int) (Permit, error) {
	x, w, err := p.enqueue(n, maxWaiting)
	if w == nil {
		if err != nil {
			p.cell().refused.Add(1)
			return Permit{}, err
		}
		p.sample(x)
		return x, nil
	}

	// The context may be the user's code: it is never asked under the lock, and if
	// it panics the place in the queue, or the permit, is given back all the same.
	left := false
	defer func() {
		if !left {
			p.leave(w)
		}
	}()
	woken := false
	select {
	case <-w.ready:
		woken = true
	case <-ctx.Done():
	}
	// Both may be ready, and select chooses at random. A context that has ended
	// counts, also if it did so only after the grant.
	if err := ctx.Err(); err != nil {
		return Permit{}, err // leave sees to the permit, if there is one
	}
	if !woken {
		return Permit{}, context.Canceled // done, by a context that gives no reason
	}
	left = true
	// What closed ready had written before what is read here, and touches w no more.
	x, err = w.permit, w.err
	*w = waiter{}
	p.waiters.Put(w)
	if err != nil {
		return Permit{}, err
	}
	if p.timed {
		x.at = time.Since(p.config.Base) // the time until now was waiting too
	}
	p.sample(x)
	return x, nil
}

// leave takes w out of the queue. If it has been granted meanwhile, the permit goes
// to the next: releasing it hands it over.
func (p *Pool) leave(w *waiter) {
	p.mu.Lock()
	if w.queued {
		p.dropLocked(w, nil)
		p.wakeLocked() // a head that was too heavy may have held up the rest
	}
	p.mu.Unlock()
	w.permit.Release(Ignored)
}

// dropLocked takes a waiter out of the queue and clears the waiting flag behind the
// last. p.mu must be held.
func (p *Pool) dropLocked(w *waiter, err error) {
	p.queue.remove(w)
	if p.queue.len == 0 {
		p.gate.And(^uint64(gateWaiting))
		p.crowded.Store(false)
	}
	if err != nil {
		w.err = err
		close(w.ready)
	}
}

// nextLocked returns who is served next, and nil if nobody waits: the one who came
// first, or under pressure the one who came last. p.mu must be held.
//
// Time alone may change who that is, and wakes nobody. It need not: the choice is only
// between callers who want one permit each, so either all of them fit or none.
func (p *Pool) nextLocked() *waiter {
	q := &p.queue
	if p.config.LIFOAfter == 0 || q.head == q.tail || q.heavy > 0 {
		return q.head
	}
	if time.Since(p.base)-q.head.since > p.config.LIFOAfter {
		return q.tail
	}
	return q.head
}

// wakeLocked hands permits to who is next in the queue for as long as that one fits.
// p.mu must be held. Afterwards nobody sleeps who could run: what refused the next
// was a word with the waiting flag, so that whoever makes room later comes to mu.
func (p *Pool) wakeLocked() {
	for w := p.nextLocked(); w != nil && p.load().fits(w.n, 0); w = p.nextLocked() {
		x, _, ok := p.admit(w.n, 0, holder)
		if !ok {
			continue
		}
		x.seen |= grantWaited
		w.permit = x
		p.dropLocked(w, nil)
		close(w.ready)
	}
}
