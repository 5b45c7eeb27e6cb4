package storm

// batch is attempts of one number that came in one tick.
type batch struct {
	tick, number, n int
}

// queue is that of the server, and knows besides which of those in it have not timed out.
type queue struct {
	batches []batch
	n       int // of all batches
	head    int // of batches: the first that is not done
	waited  int // of batches: the first that has not timed out
}

// push adds attempts at the end.
func (q *queue) push(b batch) {
	q.n += b.n
	if last := len(q.batches) - 1; last >= 0 && q.batches[last].tick == b.tick && q.batches[last].number == b.number {
		q.batches[last].n += b.n
		return
	}
	q.batches = append(q.batches, b)
}

// pop takes up to n of the first batch. The queue must not be empty.
func (q *queue) pop(n int) batch {
	for q.batches[q.head].n == 0 {
		q.head++
	}
	first := &q.batches[q.head]
	b := *first
	b.n = min(b.n, n)
	first.n -= b.n
	q.n -= b.n
	q.forget()
	return b
}

// timedOut calls f with all that came in the tick and are not done.
func (q *queue) timedOut(tick int, f func(batch)) {
	for ; q.waited < len(q.batches) && q.batches[q.waited].tick <= tick; q.waited++ {
		if b := q.batches[q.waited]; b.n > 0 {
			f(b)
		}
	}
}

// forget lets go of batches that are done and have timed out, once they are the greater part.
func (q *queue) forget() {
	n := min(q.head, q.waited)
	if n < 1024 || n < len(q.batches)/2 {
		return
	}
	q.batches = append(q.batches[:0:0], q.batches[n:]...)
	q.head -= n
	q.waited -= n
}
