package arena

import "time"

// event is the end of a call.
type event struct {
	at   time.Duration
	seq  uint64 // of two in one instant, the one that was foreseen first comes first
	call int32
	// server tells that a worker, or a place in contention, becomes free with it.
	server bool
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// events is a binary heap, the next event first. The one of the standard library
// would put each event into an interface.
type events struct {
	heap []event
	seq  uint64
}

func (q *events) push(e event) {
	e.seq = q.seq
	q.seq++
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.heap[i].before(&q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *events) pop() event {
	first := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	i := 0
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.heap[child].before(&q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// fifo is a queue of calls.
type fifo struct {
	calls []int32
	head  int
}

func (q *fifo) len() int     { return len(q.calls) - q.head }
func (q *fifo) push(c int32) { q.calls = append(q.calls, c) }

func (q *fifo) pop() int32 {
	c := q.calls[q.head]
	q.head++
	if q.head > 1024 && 2*q.head > len(q.calls) {
		q.calls = q.calls[:copy(q.calls, q.calls[q.head:])]
		q.head = 0
	}
	return c
}
