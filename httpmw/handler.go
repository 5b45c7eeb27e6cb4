package httpmw

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/shed"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A Handler is an http.Handler that limits how many requests another one serves at once,
// by a limit that adapts. It must be made by NewHandler, may be used by any number of
// goroutines, and starts none.
type Handler struct {
	// Immutable after NewHandler.
	next       http.Handler
	limiter    *limiter.Limiter
	exempt     func(*http.Request) bool // nil: no request is
	maxTimeout time.Duration            // 0: the header is not read
	reports    bool
	retryAfter []string // the value of the header, shared by all refusals

	shedder *shed.Shedder // has its own lock

	// live is twice the number of requests inside, those that wait included, and 1 more
	// once closed. Requests that find it odd leave at once.
	live atomic.Int64
	// idle closes quiet. Invariant: quiet is closed only if live has been 1.
	idle  sync.Once
	quiet chan struct{}

	refused  [numRefusals]atomic.Uint64
	exempted atomic.Uint64
}

// NewHandler returns a Handler in front of next. Without options it has a limiter of its
// own, under which 64 requests may wait, each for 100 ms at most, and the newest first
// once the oldest has waited for half of that. A server should rather refuse than let a
// client wait longer than its next server would take. On a nil next and a bad option it
// returns nil and an error that names it.
func NewHandler(next http.Handler, opts ...HandlerOption) (*Handler, error) {
	if isNil(next) {
		return nil, errors.New("httpmw: the next Handler is nil; http.DefaultServeMux may be what is meant")
	}
	o, err := newHandlerOptions(opts)
	if err != nil {
		return nil, err
	}
	floor := extraFloor
	if o.maxExtra == 0 {
		floor = 0
	}
	return &Handler{
		next:       next,
		limiter:    o.limiter,
		exempt:     o.exempt,
		maxTimeout: o.maxTimeout,
		reports:    o.reports,
		retryAfter: seconds(o.retryAfter),
		shedder:    shed.New(o.maxExtra, floor),
		quiet:      make(chan struct{}),
	}, nil
}

// ServeHTTP has the next handler serve the request under a permit, or refuses it; see the
// package comment. The permit is released when the next handler has returned, also by a
// panic, whose value goes on unchanged, or by runtime.Goexit, and never before.
//
// The ResponseWriter is passed on as it is, and so is the request unless AcceptReports
// or DeadlineFromHeader gives it another context. A request that is let in costs some
// 0.4 µs and no allocation; reports bring that to 1 µs and three allocations, a deadline
// to 2 µs and five. A refusal takes some 0.2 µs and allocates nothing: BenchmarkServeHTTP.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.exempt != nil && h.exempt(r) {
		h.exempted.Add(1)
		h.next.ServeHTTP(w, r)
		return
	}
	if !h.enter() {
		h.refuse(w, r, refusedClosed)
		return
	}
	// Runs after the permit has been released: so Close returns after that too.
	defer h.leave()
	ctx, derived := r.Context(), false
	if d, ok := h.timeout(r); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
		derived = true
	}
	p, why := h.acquire(ctx, attempt(r) > 1)
	if why != notRefused {
		h.refuse(w, r, why)
		return
	}
	var said *report
	if h.reports {
		said = new(report)
		ctx = context.WithValue(ctx, reportKey{}, said)
		derived = true
	}
	inner := r
	if derived {
		inner = withContext(ctx, r)
	}
	h.serve(w, r, inner, said, p)
}

// acquire takes a permit, or says why there is none to be had.
func (h *Handler) acquire(ctx context.Context, extra bool) (limiter.Permit, refusal) {
	if !extra {
		h.shedder.Primary(time.Now())
		p, err := h.limiter.Acquire(ctx, limiter.Primary)
		return p, reason(err, refusedFull)
	}
	// The share is asked first: to take a permit only to give it back might have a
	// primary refused that came in between.
	ticket, ok := h.shedder.Extra(time.Now())
	if !ok {
		return limiter.Permit{}, refusedExtraShare
	}
	p, err := h.limiter.Acquire(ctx, limiter.Hedge)
	if err != nil {
		h.shedder.Refund(ticket)
	}
	return p, reason(err, refusedExtraFull)
}

// serve runs the next handler under p. inner is the request, or its copy with another
// context.
func (h *Handler) serve(w http.ResponseWriter, r, inner *http.Request, said *report, p limiter.Permit) {
	// Whoever serves a tunnel may take the request's headers away.
	tunnel := isTunnel(r)
	outcome := permit.Ignored // stays so if next does not return
	defer func() {
		if inner != r {
			handBack(r, inner)
		}
		p.Release(said.outcome(outcome))
	}()
	h.next.ServeHTTP(w, inner)
	if !tunnel { // how long one was open is no latency
		outcome = ended(r, inner)
	}
}

// ended is what a request teaches the limit whose handler has returned. A deadline that
// the client has set is its own leaving, only told beforehand: were it a drop, a client
// that allows one millisecond could have the limit lowered for all.
func ended(r, inner *http.Request) permit.Outcome {
	switch {
	case errors.Is(r.Context().Err(), context.DeadlineExceeded):
		return permit.Expired
	case inner.Context().Err() != nil:
		return permit.Canceled
	}
	return permit.Success
}

func (h *Handler) enter() bool {
	if h.live.Add(2)&1 == 0 {
		return true
	}
	h.leave()
	return false
}

func (h *Handler) leave() {
	if h.live.Add(-2) == 1 {
		h.idle.Do(func() { close(h.quiet) })
	}
}

// Close refuses all further requests with the same 503, and waits until those inside have
// ended, also those that wait for a permit, which are served as ever. It returns nil then,
// or ctx.Err() if ctx ends before; the Handler stays closed, and Close may be called again
// to go on waiting. Exempt requests pass and are not waited for, so that a health check
// can say that the server is about to go. A limiter that was given is not closed.
//
// The release of the last permit synchronizes before the return of a Close that returns
// nil. As the server's own Shutdown, it does not wait for a connection that was hijacked
// and whose handler has returned.
func (h *Handler) Close(ctx context.Context) error {
	if h.live.Or(1)>>1 == 0 {
		return nil
	}
	select {
	case <-h.quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HandlerStats is a snapshot of a Handler.
type HandlerStats struct {
	// Limiter is the limiter's, also that of others if it is shared.
	Limiter limiter.Stats
	// Inside is how many requests are being served or wait, without exempt ones.
	Inside int
	// Exempt counts the requests that needed no permit.
	Exempt uint64
	// Refused counts the requests that got a 503.
	Refused Refusals
}

// Refusals counts requests that the next handler has not seen, by reason.
type Refusals struct {
	// Full: the limit had no room, and none came about in time.
	Full uint64
	// ExtraFull: a hedge or retry found no permit free beyond the reserve.
	ExtraFull uint64
	// ExtraShare: a hedge or retry was one too many for MaxExtra.
	ExtraShare uint64
	// Expired: the request's deadline passed before a permit was free.
	Expired uint64
	// Gone: the client left before that.
	Gone uint64
	// Closed: the Handler was closed, or its limiter.
	Closed uint64
}

// Stats returns a snapshot; its parts are read one after the other. It never fails and
// may be called at any time, also after Close.
func (h *Handler) Stats() HandlerStats {
	return HandlerStats{
		Limiter: h.limiter.Stats(),
		Inside:  int(h.live.Load() >> 1),
		Exempt:  h.exempted.Load(),
		Refused: Refusals{
			Full:       h.refused[refusedFull].Load(),
			ExtraFull:  h.refused[refusedExtraFull].Load(),
			ExtraShare: h.refused[refusedExtraShare].Load(),
			Expired:    h.refused[refusedExpired].Load(),
			Gone:       h.refused[refusedGone].Load(),
			Closed:     h.refused[refusedClosed].Load(),
		},
	}
}
