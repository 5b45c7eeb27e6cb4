package grpcmw

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// watch counts what the channels really send.
type watch struct {
	report func(method string) // nil: slog

	attempts, transparent, retries atomic.Uint64

	once sync.Once // reports
}

// StatsHandler returns a handler for grpc.WithStatsHandler that counts what is sent for
// Stats, and finds what is sent again below the interceptors. It is among the DialOptions. It
// needs the interceptors of the same Client, and sees no call without them. Two of one Client
// in a channel count as one, and each of two Clients counts for its own.
func (c *Client) StatsHandler() stats.Handler { return &statsHandler{&c.watch} }

type statsHandler struct{ watch *watch }

// TagRPC returns ctx.
func (h *statsHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC counts the beginnings of attempts.
func (h *statsHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	a, ok := ctx.Value(attemptKey{h.watch}).(*attemptContext)
	if !ok {
		return
	}
	switch event := event.(type) {
	case *stats.Begin:
		h.watch.begun(a, event)
	case *stats.End:
		a.transparent.Store(false)
	case *stats.InTrailer:
		a.answered.Store(true)
	}
}

// TagConn returns ctx.
func (h *statsHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (h *statsHandler) HandleConn(context.Context, stats.ConnStats) {}

func (w *watch) begun(a *attemptContext, event *stats.Begin) {
	if a.last.Swap(event) == event {
		return // Another handler of the Client was told.
	}
	if event.IsTransparentRetryAttempt {
		a.transparent.Store(true)
		w.transparent.Add(1)
		return
	}
	if a.transparent.Swap(false) {
		// gRPC begins a transparent retry of what was never sent twice: first as one, of which
		// it never tells the end, and then as an attempt like the first.
		return
	}
	w.attempts.Add(1)
	if a.begun.Add(1) == 1 {
		return
	}
	w.retries.Add(1)
	w.once.Do(func() {
		if w.report != nil {
			defer func() {
				if v := recover(); v != nil { // gRPC calls us with locks of its own
					slog.Error("grpcmw: panic in OnChannelRetry", "panic", v)
				}
			}()
			w.report(a.method)
			return
		}
		slog.Warn("grpcmw: an attempt was sent again below the interceptors, under the same permit: by the channel, which grpc.WithDisableRetry prevents, or by an interceptor inside", "method", a.method)
	})
}

// attemptContext is the context of one attempt. The StatsHandler finds it in the contexts
// that gRPC derives from it.
type attemptContext struct {
	context.Context
	watch  *watch
	method string
	cc     *grpc.ClientConn // nil in tests of users

	// Atomic.

	begun       atomic.Int32 // how often it was sent, transparent retries left out
	answered    atomic.Bool  // the server has ended it with a status
	transparent atomic.Bool  // a transparent retry has begun that has not ended
	last        atomic.Pointer[stats.Begin]
}

// attemptKey finds the innermost attempt of one Client.
type attemptKey struct{ watch *watch }

// callKey finds the innermost attempt of any.
type callKey struct{}

// Value returns the attempt itself for its keys, and the values around it otherwise.
func (a *attemptContext) Value(key any) any {
	if key == (attemptKey{a.watch}) || key == (callKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// apart returns the context for a call that may be made within an attempt of another, by an
// interceptor inside that fetches a token, say. That is work of its own, of which no attempt
// counts as one of the call around. A call of the same method of the same target is that
// call again, and their attempts are counted together; see package hedgedlimit.
func apart(ctx context.Context, cc *grpc.ClientConn, method string) context.Context {
	a, ok := ctx.Value(callKey{}).(*attemptContext)
	if !ok || a.method == method && targetOf(a.cc) == targetOf(cc) {
		return ctx
	}
	return hedgedlimit.Apart(ctx)
}

// local reports whether the attempt is known to have ended without an answer of the server.
// Without the StatsHandler it is not known.
func (a *attemptContext) local() bool { return a.begun.Load() > 0 && !a.answered.Load() }

// attempt returns the context of attempt number n of a call, 0 being that of a call which
// is sent once, and what frees it. The caller's metadata is not changed: it may be shared
// by many calls.
func (c *Client) attempt(ctx context.Context, cc *grpc.ClientConn, method string, n int) (*attemptContext, context.CancelFunc) {
	ctx = numbered(ctx, n)
	cancel := context.CancelFunc(func() {})
	if c.options.fraction > 0 {
		ctx, cancel = shortened(ctx, c.options.fraction)
	}
	return &attemptContext{Context: ctx, watch: &c.watch, method: method, cc: cc}, cancel
}
