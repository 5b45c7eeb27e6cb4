package grpcmw

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// watch counts what the channels really send.
type watch struct {
	report func(method string) // nil: slog

	attempts, transparent, retries atomic.Uint64

	once sync.Once // reports
}

// StatsHandler returns a handler for grpc.WithStatsHandler that counts what is sent for
// Stats, and finds channels that send an attempt again by themselves. It is among the
// DialOptions. It needs the interceptors of the same Client, and sees no call without
// them.
func (c *Client) StatsHandler() stats.Handler { return &statsHandler{&c.watch} }

type statsHandler struct{ watch *watch }

// TagRPC returns ctx.
func (h *statsHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC counts the beginnings of attempts.
func (h *statsHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	a, ok := ctx.Value(attemptKey{}).(*attemptContext)
	if !ok {
		return
	}
	switch event := event.(type) {
	case *stats.Begin:
		h.watch.begun(a, event.IsTransparentRetryAttempt)
	case *stats.InTrailer:
		a.answered.Store(true)
	}
}

// TagConn returns ctx.
func (h *statsHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (h *statsHandler) HandleConn(context.Context, stats.ConnStats) {}

func (w *watch) begun(a *attemptContext, transparent bool) {
	if transparent {
		w.transparent.Add(1)
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
		slog.Warn("grpcmw: the channel retries by itself, beyond the limit; use grpc.WithDisableRetry", "method", a.method)
	})
}

// attemptContext is the context of one attempt. The StatsHandler finds it in the contexts
// that gRPC derives from it.
type attemptContext struct {
	context.Context
	method string

	// Atomic.

	begun    atomic.Int32 // how often it was sent, transparent retries left out
	answered atomic.Bool  // the server has ended it with a status
}

type attemptKey struct{}

// Value returns the attempt itself for attemptKey, and the values around it otherwise.
func (a *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// local reports whether the attempt is known to have ended without an answer of the server.
// Without the StatsHandler it is not known.
func (a *attemptContext) local() bool { return a.begun.Load() > 0 && !a.answered.Load() }

// attempt returns the context of attempt number n of a call, 0 being that of a call which
// is sent once, and what frees it. The caller's metadata is not changed: it may be shared
// by many calls.
func (c *Client) attempt(ctx context.Context, method string, n int) (*attemptContext, context.CancelFunc) {
	if n > 0 {
		ctx = numbered(ctx, n)
	}
	cancel := context.CancelFunc(func() {})
	if c.options.fraction > 0 {
		ctx, cancel = shortened(ctx, c.options.fraction)
	}
	return &attemptContext{Context: ctx, method: method}, cancel
}
