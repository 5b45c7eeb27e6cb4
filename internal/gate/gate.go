// Package gate is what the servers of httpmw and grpcmw have in common: who comes in, who
// is refused and why, and when nobody is inside any more.
package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/shed"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// extraFloor is how many hedges and retries are let in within the window of package shed
// in any case, so that a server with little traffic serves a retry at all.
const extraFloor = 3

// A Gate lets requests in, each under a permit. It must be made by New, may be used by any
// number of goroutines, and starts none.
type Gate struct {
	limiter  *limiter.Limiter
	shedder  *shed.Shedder // has its own lock
	noExtras bool          // immutable after New

	// live is twice the number of requests inside, those that wait included, and 1 more
	// once closed. Requests that find it odd leave at once.
	live atomic.Int64
	// idle closes quiet. Invariant: quiet is closed only if live has been 1.
	idle  sync.Once
	quiet chan struct{}

	refused  [NumReasons]atomic.Uint64
	exempted atomic.Uint64
}

// New returns a Gate to what l limits, which lets in hedges and retries up to a share of
// maxExtra, from 0 to 1, of all requests; 0 lets in none.
func New(l *limiter.Limiter, maxExtra float64) *Gate {
	return &Gate{limiter: l, shedder: shed.New(maxExtra, extraFloor), noExtras: maxExtra == 0, quiet: make(chan struct{})}
}

// Exempt counts a request that does not come to the gate.
func (g *Gate) Exempt() { g.exempted.Add(1) }

// Enter lets a request in under a permit, or says why not, and counts that. The request
// leaves by Leave then, after its permit has been released; one that was refused is not
// inside.
//
// A limiter.Hedge must find a permit free at once and beyond the limiter's reserve, or
// nothing in flight at all; a limiter.Retry takes its permit as a limiter.Primary does.
// Neither may be one too many for the share, which is asked unless more than half of the
// permits are free: it is there for overload, and what comes to a server with so much room
// takes nothing from anybody. A limiter.Primary is never refused for the share.
func (g *Gate) Enter(ctx context.Context, kind limiter.Kind) (limiter.Permit, Reason) {
	var p limiter.Permit
	why := Closed
	if g.live.Add(2)&1 == 0 {
		p, why = g.acquire(ctx, kind)
	}
	if why != None {
		g.refused[why].Add(1)
		g.Leave()
	}
	return p, why
}

// Leave ends what an Enter has begun that said None. It must be called once.
func (g *Gate) Leave() {
	if g.live.Add(-2) == 1 {
		g.idle.Do(func() { close(g.quiet) })
	}
}

func (g *Gate) acquire(ctx context.Context, kind limiter.Kind) (limiter.Permit, Reason) {
	switch {
	case kind == limiter.Primary:
		g.shedder.Primary(time.Now())
		p, err := g.limiter.Acquire(ctx, kind)
		return p, reason(err, Full)
	case g.noExtras:
		return limiter.Permit{}, ExtraShare
	case 2*g.limiter.InFlight() < g.limiter.Limit():
		p, err := g.admit(ctx, kind)
		return p, reason(err, ExtraFull)
	}
	// The share is asked first: to take a permit only to give it back might have a
	// primary refused that came in between.
	ticket, ok := g.shedder.Extra(time.Now())
	if !ok {
		return limiter.Permit{}, ExtraShare
	}
	p, err := g.admit(ctx, kind)
	if err != nil {
		g.shedder.Refund(ticket)
	}
	return p, reason(err, ExtraFull)
}

// admit takes a permit for an extra. The reserve is of no use to anybody where nothing is
// in flight, and at a limit of 1 it would keep out every hedge for ever.
func (g *Gate) admit(ctx context.Context, kind limiter.Kind) (limiter.Permit, error) {
	if kind == limiter.Hedge && g.limiter.InFlight() == 0 && ctx.Err() == nil {
		if p, ok := g.limiter.TryAcquire(limiter.Bypass); ok { // teaches as little as a hedge
			if p.Grant().InFlight == 1 {
				return p, nil
			}
			p.Release(permit.Ignored) // another came in between
		}
	}
	return g.limiter.Acquire(ctx, kind)
}

// Close lets nobody in any more and waits until all have left. It returns nil then, or
// ctx.Err() if ctx ends before. What comes before the last Leave synchronizes before the
// return of a Close that returns nil.
func (g *Gate) Close(ctx context.Context) error {
	if g.live.Or(1)>>1 == 0 {
		return nil
	}
	select {
	case <-g.quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reason is why a request was not let in.
type Reason uint8

const (
	None Reason = iota // it was
	Full
	ExtraFull
	ExtraShare
	Expired
	Gone
	Closed
	NumReasons
)

// reason says what the error of the limiter means; full is for the limit itself.
func reason(err error, full Reason) Reason {
	switch {
	case err == nil:
		return None
	case errors.Is(err, limiter.ErrLimitExceeded):
		return full
	case errors.Is(err, limiter.ErrClosed):
		return Closed
	case errors.Is(err, context.DeadlineExceeded):
		return Expired
	}
	return Gone
}

// Stats is a snapshot of a Gate. The servers have the same fields under names and
// comments of their own.
type Stats struct {
	Limiter limiter.Stats
	Inside  int
	Exempt  uint64
	Refused Refusals
}

// Refusals counts requests by the Reason of their refusal.
type Refusals struct {
	Full, ExtraFull, ExtraShare, Expired, Gone, Closed uint64
}

// Stats returns a snapshot; its parts are read one after the other.
func (g *Gate) Stats() Stats {
	return Stats{
		Limiter: g.limiter.Stats(),
		Inside:  int(g.live.Load() >> 1),
		Exempt:  g.exempted.Load(),
		Refused: Refusals{
			Full:       g.refused[Full].Load(),
			ExtraFull:  g.refused[ExtraFull].Load(),
			ExtraShare: g.refused[ExtraShare].Load(),
			Expired:    g.refused[Expired].Load(),
			Gone:       g.refused[Gone].Load(),
			Closed:     g.refused[Closed].Load(),
		},
	}
}
