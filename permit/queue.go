package permit

import "time"

// waiter is one caller in the queue. Its fields are guarded by the mu of the pool,
// under which ready is closed: what was written before may be read once it is.
type waiter struct {
	ready chan struct{} // closed when the waiter has left the queue other than by its own will
	n     int           // permits wanted
	since time.Duration // when it came, since Pool.base; 0 without Config.LIFOAfter

	permit Permit // set if it was granted
	err    error  // set if it was sent away

	prev, next *waiter
	queued     bool // Invariant: queued ⇔ it is in the queue.
}

// queue is a doubly linked list, so that a waiter in the middle that gives up
// costs no more than one at the head. The zero value is empty.
type queue struct {
	head, tail *waiter
	len        int
	heavy      int // Invariant: heavy == number of waiters with n > 1.
}

func (q *queue) push(w *waiter) {
	w.queued = true
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.len++
	if w.n > 1 {
		q.heavy++
	}
}

// remove takes w, which must be queued, out of the list. Its links are cleared,
// so that a waiter that lives on keeps nobody else reachable.
func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.len--
	if w.n > 1 {
		q.heavy--
	}
}
