package storm

import (
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// admission is what becomes of an attempt.
type admission uint8

const (
	admitted admission = iota
	refused            // by the server
	unsent             // refused by the client
)

// gate is what an attempt has to pass.
type gate interface {
	// begin begins a tick, and wait lets time go on within it.
	begin(now time.Time)
	wait(until time.Time)
	// offer decides on an attempt.
	offer(number int) admission
	// served is told of the n that were admitted first and are not done yet.
	served(n int, fresh bool)
	// timedOut is told of the n that were admitted first and are waited for still.
	timedOut(n int)
}

// newGate returns the gate of a case, in front of the queue.
func newGate(c *Case, q *queue) (gate, error) {
	switch {
	case c.Limit != "":
	case c.MaxQueue > 0:
		return &bounded{queue: q, max: c.MaxQueue}, nil
	default:
		return open{}, nil
	}
	l, err := limiter.New(limiter.Config{Name: c.Name})
	if err != nil {
		return nil, err
	}
	h := held{limiter: l}
	switch c.Limit {
	case AtClient:
		return &atClient{h}, nil
	case AtServer:
		return &atServer{held: h}, nil
	default:
		return &atServer{held: h, marked: newMarkedWindow(c.Marked)}, nil
	}
}

// open lets everybody pass, and needs no clock.
type open struct{}

func (open) begin(time.Time)     {}
func (open) wait(time.Time)      {}
func (open) offer(int) admission { return admitted }
func (open) served(int, bool)    {}
func (open) timedOut(int)        {}

// bounded lets pass what has room in the queue.
type bounded struct {
	open
	queue *queue
	max   int
}

func (g *bounded) offer(int) admission {
	if g.queue.n < g.max {
		return admitted
	}
	return refused
}

// held is a limiter and the permits out, the oldest first.
type held struct {
	limiter *limiter.Limiter
	permits []limiter.Permit
}

func (h *held) begin(now time.Time)  { h.wait(now) }
func (h *held) wait(until time.Time) { time.Sleep(time.Until(until)) }

func (h *held) acquire(kind limiter.Kind) bool {
	p, ok := h.limiter.TryAcquire(kind)
	if ok {
		h.permits = append(h.permits, p)
	}
	return ok
}

// release releases the n oldest permits.
func (h *held) release(n int, o permit.Outcome) {
	for _, p := range h.permits[:n] {
		p.Release(o)
	}
	h.permits = h.permits[n:]
}

// kind tells a retry from the first attempt of a call.
func kind(number int) limiter.Kind {
	if number > 0 {
		return limiter.Retry
	}
	return limiter.Primary
}

// atClient is a limiter that knows of an answer, or that none came in time.
type atClient struct{ held }

func (g *atClient) offer(number int) admission {
	if g.acquire(kind(number)) {
		return admitted
	}
	return unsent
}

func (g *atClient) served(n int, fresh bool) {
	if fresh {
		g.release(n, permit.Success)
	}
}

func (g *atClient) timedOut(n int) { g.release(n, permit.Expired) }

// atServer is a limiter that knows of the work, and nothing of who waits for it.
type atServer struct {
	held
	marked *markedWindow // nil if the header is not looked at
}

func (g *atServer) begin(now time.Time) {
	g.held.begin(now)
	if g.marked != nil {
		g.marked.next()
	}
}

func (g *atServer) offer(number int) admission {
	ok := false
	switch {
	case g.marked == nil:
		ok = g.acquire(limiter.Primary) // one call is like another
	case number == 0:
		ok = g.acquire(limiter.Primary)
		g.marked.call()
	case g.marked.room():
		ok = g.acquire(limiter.Hedge) // which leaves the reserve to the others
		if ok {
			g.marked.retry()
		}
	}
	if !ok {
		return refused
	}
	return admitted
}

func (g *atServer) served(n int, _ bool) { g.release(n, permit.Success) }
func (g *atServer) timedOut(int)         {}

// markedWindow counts the calls that came in the last ticks, and the marked retries that were
// let in. Retries that were not are no reason to let others in, so they count for nothing.
type markedWindow struct {
	Marked
	calls, retries []int // rings
	tick           int
	sumCalls       int
	sumRetries     int
}

func newMarkedWindow(m Marked) *markedWindow {
	return &markedWindow{Marked: m, calls: make([]int, m.Window), retries: make([]int, m.Window)}
}

// next begins a tick.
func (w *markedWindow) next() {
	w.tick = (w.tick + 1) % w.Window
	w.sumCalls -= w.calls[w.tick]
	w.sumRetries -= w.retries[w.tick]
	w.calls[w.tick], w.retries[w.tick] = 0, 0
}

// room tells whether a retry may be let in.
func (w *markedWindow) room() bool {
	n := float64(w.sumRetries + 1)
	return n <= float64(w.Floor) || n <= w.Ratio*float64(w.sumCalls)
}

func (w *markedWindow) call() {
	w.calls[w.tick]++
	w.sumCalls++
}

func (w *markedWindow) retry() {
	w.retries[w.tick]++
	w.sumRetries++
}
