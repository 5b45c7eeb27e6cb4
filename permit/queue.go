package permit

// waiter is one caller in the queue. Its fields are guarded by the mu of the
// pool; ready is closed under it.
type waiter struct {
	ready      chan struct{} // closed when the waiter has left the queue by a grant or by Close
	permit     Permit        // set before ready is closed, if granted
	prev, next *waiter
	queued     bool // Invariant: queued ⇔ it is in the queue.
}

// queue is a doubly linked list, so that a waiter in the middle that gives up
// costs no more than one at the head. The zero value is empty.
type queue struct {
	head, tail *waiter
	len        int
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
}

// pop removes and returns the head, or nil if the queue is empty.
func (q *queue) pop() *waiter {
	w := q.head
	if w != nil {
		q.remove(w)
	}
	return w
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
}
