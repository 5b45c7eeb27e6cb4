package storm

import (
	"context"
	"time"

	front "github.com/holdfast-go/holdfast/internal/gate"
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
		return &atServer{h}, nil
	default:
		return &atServerMarked{atServer{h}, front.New(l, c.Marked)}, nil
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
type atServer struct{ held }

func (g *atServer) offer(int) admission {
	if g.acquire(limiter.Primary) { // one attempt is like another
		return admitted
	}
	return refused
}

func (g *atServer) served(n int, _ bool) { g.release(n, permit.Success) }
func (g *atServer) timedOut(int)         {}

// atServerMarked is the gate that the servers of httpmw and grpcmw have in common.
type atServerMarked struct {
	atServer
	door *front.Gate
}

// offer says of a retry what the header with its number says: that it is not the first
// attempt. For all that the server knows it is a hedge then. The limiter lets nobody wait,
// so Enter does not block.
func (g *atServerMarked) offer(number int) admission {
	kind := limiter.Primary
	if number > 0 {
		kind = limiter.Hedge
	}
	p, why := g.door.Enter(context.Background(), kind)
	if why != front.None {
		return refused
	}
	g.permits = append(g.permits, p)
	return admitted
}

func (g *atServerMarked) served(n int, fresh bool) {
	g.atServer.served(n, fresh)
	for range n {
		g.door.Leave()
	}
}
