package arena

import (
	"container/heap"
	"time"
)

// event is the end of a call.
type event struct {
	at   time.Duration
	seq  uint64 // of two in one instant, the one that was foreseen first comes first
	call int32
	// server tells that a worker, or a place in contention, becomes free with it.
	server bool
}

// events is a queue, the next event first.
type events struct {
	heap eventHeap
	seq  uint64
}

func (q *events) push(e event) {
	e.seq = q.seq
	q.seq++
	heap.Push(&q.heap, e)
}

func (q *events) pop() event { return heap.Pop(&q.heap).(event) }

// eventHeap implements heap.Interface.
type eventHeap []event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *eventHeap) Push(e any) { *h = append(*h, e.(event)) }

func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
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
