package httpmw

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/internal/gate"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A Handler is an http.Handler that limits how many requests another one serves at once,
// by a limit that adapts. It must be made by NewHandler, may be used by any number of
// goroutines, and starts none.
type Handler struct {
	// Immutable after NewHandler.
	next       http.Handler
	gate       *gate.Gate
	exempt     func(*http.Request) bool // nil: no request is
	maxTimeout time.Duration            // 0: the header is not read
	reports    bool
	retryAfter string // the value of the header
}

// NewHandler returns a Handler in front of next. Without options it has a limiter of its
// own, under which 64 requests may wait, each for 100 ms at most, and the newest first
// once the oldest has waited for half of that. A server should rather refuse than let a
// client wait longer than its next server would take. On a nil next and a bad option it
// returns nil and an error that names it.
func NewHandler(next http.Handler, opts ...HandlerOption) (*Handler, error) {
	if f, ok := next.(http.HandlerFunc); next == nil || ok && f == nil { // other nils may work
		return nil, errors.New("httpmw: the next Handler is nil; http.DefaultServeMux may be what is meant")
	}
	o, err := newHandlerOptions(opts)
	if err != nil {
		return nil, err
	}
	return &Handler{
		next:       next,
		gate:       gate.New(o.limiter, o.maxExtra),
		exempt:     o.exempt,
		maxTimeout: o.maxTimeout,
		reports:    o.reports,
		retryAfter: seconds(o.retryAfter),
	}, nil
}

// ServeHTTP has the next handler serve the request under a permit, or refuses it; see the
// package comment. The permit is released when the next handler has returned, also by a
// panic, whose value goes on unchanged, or by runtime.Goexit, and never before.
//
// The ResponseWriter is passed on as it is, and so is the request unless AcceptReports
// or DeadlineFromHeader gives it another context. A request that is let in costs some
// 0.4 µs and no allocation; reports bring that to 1 µs and three allocations, a deadline
// to 2 µs and five. A refusal takes some 0.2 µs and one allocation, beside those of a map
// of headers that was empty: BenchmarkServeHTTP.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.exempt != nil && h.exempt(r) {
		h.gate.Exempt()
		h.next.ServeHTTP(w, r)
		return
	}
	ctx, derived := r.Context(), false
	if d, ok := h.timeout(r); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
		derived = true
	}
	p, why := h.gate.Enter(ctx, kind(r))
	if why != gate.None {
		h.refuse(w, r)
		return
	}
	// Runs after the permit has been released: so Close returns after that too.
	defer h.gate.Leave()
	var said *gate.Report
	if h.reports {
		said = new(gate.Report)
		ctx = context.WithValue(ctx, reportKey{}, said)
		derived = true
	}
	inner := r
	if derived {
		inner = withContext(ctx, r)
	}
	h.serve(w, r, inner, said, p)
}

// serve runs the next handler under p. inner is the request, or its copy with another
// context.
func (h *Handler) serve(w http.ResponseWriter, r, inner *http.Request, said *gate.Report, p limiter.Permit) {
	// Whoever serves a tunnel may take the request's headers away.
	tunnel := isTunnel(r)
	outcome := permit.Ignored // stays so if next does not return
	defer func() {
		if inner != r {
			handBack(r, inner)
		}
		p.Release(said.End(outcome))
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

// Close refuses all further requests with the same 503, and waits until those inside have
// ended, also those that wait for a permit, which are served as ever. It returns nil then,
// or ctx.Err() if ctx ends before; the Handler stays closed, and Close may be called again
// to go on waiting. Exempt requests pass and are not waited for, so that a health check
// can say that the server is about to go. A limiter that was given is not closed.
//
// The release of the last permit synchronizes before the return of a Close that returns
// nil. As the server's own Shutdown, it does not wait for a connection that was hijacked
// and whose handler has returned.
func (h *Handler) Close(ctx context.Context) error { return h.gate.Close(ctx) }

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
	// Full: the limit had no room, and none came about in time, or would have before the
	// request's deadline.
	Full uint64
	// ExtraFull: a hedge found no permit free beyond the reserve, or a retry none in time.
	ExtraFull uint64
	// ExtraShare: a hedge or retry was one too many for MaxExtra.
	ExtraShare uint64
	// Expired: the request's deadline had passed when it came, or passed while it waited.
	Expired uint64
	// Gone: the client left before that.
	Gone uint64
	// Closed: the Handler was closed, or its limiter.
	Closed uint64
}

// Stats returns a snapshot; its parts are read one after the other. It never fails and
// may be called at any time, also after Close.
func (h *Handler) Stats() HandlerStats {
	g := h.gate.Stats()
	return HandlerStats{Limiter: g.Limiter, Inside: g.Inside, Exempt: g.Exempt, Refused: Refusals(g.Refused)}
}
