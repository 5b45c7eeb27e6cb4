package httpmw

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// A Transport is an http.RoundTripper that limits and hedges what another one
// sends. It must be made by NewTransport, and may be used by any number of
// goroutines if its base may. It starts no goroutine but those of the attempts.
type Transport struct {
	// Immutable after NewTransport.
	base    http.RoundTripper
	options options
	groups  *groups
	discard hedgedlimit.CallOption[*http.Response] // of losers' answers

	lost lostBodies // has its own lock
}

// NewTransport returns a Transport that sends its requests through base, which is
// used as it is and never changed. Without options, each host has its own limiter
// and hedger with their defaults: a request that may be sent again is hedged if its answer
// takes long, and retried at once if it fails. Users with a retry layer of their own set
// MaxAttempts to 1 by WithConfig. On a nil base and a bad option it returns nil
// and an error that names it.
func NewTransport(base http.RoundTripper, opts ...Option) (*Transport, error) {
	if isNil(base) {
		return nil, errors.New("httpmw: the base RoundTripper is nil; http.DefaultTransport may be what is meant")
	}
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	t := &Transport{base: base, options: o}
	t.lost.tell = o.lostBody
	t.discard = hedgedlimit.Discard(t.dispose)
	if t.groups, err = newGroups(&t.options); err != nil {
		return nil, err
	}
	return t, nil
}

// RoundTrip sends the request as one call of the hedger of its host, and returns
// the first good answer. The permit of its attempt is held until the body of the
// response is at its end, has failed, or has been closed; see the package comment.
//
// It returns no response, and
//   - limiter.ErrLimitExceeded if the host's limit had no room for the request,
//     and limiter.ErrClosed after Close; nothing was sent then. http.Client wraps
//     both so that errors.Is finds them;
//   - context.Cause(req.Context()) if the context has ended first, as http.Transport
//     does, which is req.Context().Err() if there is no other cause. A deadline that
//     has just passed may be told as context.DeadlineExceeded whatever its cause;
//   - the error of the base if one attempt was sent, and a
//     *hedgedlimit.AttemptsError if more were, and there was no answer to return.
//
// It panics if the base does, with the same value. In every case the body of the
// request is closed, as http.RoundTripper demands, though perhaps later.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.lost.sweep()
	c := &call{transport: t, request: req, ctx: req.Context(), method: req.Method}
	defer c.finish()
	if req.URL == nil {
		return nil, errors.New("httpmw: the request has no URL")
	}
	c.key = t.groups.key(req)
	g, err := t.groups.enter(c.key)
	if err != nil {
		return nil, err
	}
	defer g.leave()
	c.group = g

	var key hedgedlimit.CallOption[*http.Response] // none
	if f := t.options.delayBy; f != nil {
		key = hedgedlimit.Key[*http.Response](bounded(f(req)))
	}
	again := repeatable(req)
	c.firstByte = again && t.options.delayFrom == FirstByte
	if !again || !t.options.hedgeable(req) {
		r, err := hedgedlimit.Do(c.ctx, g.hedger, c.attempt, t.discard, key, hedgedlimit.NoHedge[*http.Response]())
		return r, plainError(c.ctx, err)
	}
	c.attempts = g.hedger.MaxAttempts()
	c.retries = c.attempts > 1
	r, err := hedgedlimit.Do(c.ctx, g.hedger, c.attempt, t.discard, key)
	if err != nil {
		if kept := c.kept(err); kept != nil {
			return kept, nil
		}
		return nil, plainError(c.ctx, err)
	}
	return r, nil
}

// CloseIdleConnections calls the method of that name of the base, if it has one.
// http.Client.CloseIdleConnections calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close lets no request through any more, wakes those that wait for a permit with
// limiter.ErrClosed, and waits until the work of all attempts has ended, losers
// and response bodies included; bodies that are lost meanwhile are closed. It returns nil then, or ctx.Err() if ctx ends
// before; the Transport stays closed, and Close may be called again to go on
// waiting. It does not close the base, nor the limiter of a hedger that was given
// by WithHedger, and so waits for no attempt of that one.
func (t *Transport) Close(ctx context.Context) error {
	t.lost.sweep()
	t.groups.close()
	if t.groups.shared != nil {
		return nil
	}
	all, _, _ := t.groups.snapshot()
	all = append(all, t.groups.overflow)
	// Close does its first half even under a context that has ended. So every
	// limiter is shut before the wait for any.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, h := range all {
		_ = h.hedger.Limiter().Close(ended) // asked again below
	}
	for _, h := range all {
		if err := t.await(ctx, h.hedger.Limiter()); err != nil {
			return err
		}
	}
	return nil
}

// sweepEvery is how long Close waits before it looks for lost bodies again: nobody else
// uses the Transport any more who would, and who finds them must not wake it; see
// lostBodies.
const sweepEvery = 100 * time.Millisecond

// await waits until nothing of a limiter that was shut is in flight any more.
func (t *Transport) await(ctx context.Context, l *limiter.Limiter) error {
	for {
		step, cancel := context.WithTimeout(ctx, sweepEvery)
		err := l.Close(step)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		t.lost.sweep()
	}
}

// HostStats is a snapshot of what is kept for one host, or for one string of LimitBy.
type HostStats struct {
	// Host is the lower-case URL.Host, or what LimitBy has returned; one of more than
	// 300 bytes is cut off and ends in a hash. It is empty for a hedger given by
	// WithHedger and for the one that hosts beyond MaxHosts share.
	Host    string
	Hedging hedgedlimit.Stats
	Limiter limiter.Stats
}

// Stats is a snapshot of a Transport.
type Stats struct {
	// Hosts are those that are kept, the one used last first: at most MaxHosts.
	// Counts of a host that was dropped are gone.
	Hosts []HostStats
	// Overflow is what hosts share for which there was no room, and Overflowed
	// how many requests were sent by it.
	Overflow   HostStats
	Overflowed uint64
	// DroppedHosts counts the idle hosts that made room for others.
	DroppedHosts uint64
	// LostBodies counts the bodies that the garbage collector found unclosed. It
	// should be 0: each kept a permit until then.
	LostBodies uint64
}

// Stats returns a snapshot. The hosts are read one after the other. It never
// fails and may be called at any time, also after Close.
func (t *Transport) Stats() Stats {
	lost := t.lost.count.Load() // before the sweep: what is counted is being closed
	t.lost.sweep()
	all, overflowed, dropped := t.groups.snapshot()
	s := Stats{
		Hosts:        make([]HostStats, 0, len(all)),
		Overflowed:   overflowed,
		DroppedHosts: dropped,
		LostBodies:   lost,
	}
	for _, h := range all {
		s.Hosts = append(s.Hosts, h.stats())
	}
	if t.groups.overflow != nil {
		s.Overflow = t.groups.overflow.stats()
	}
	return s
}

func (x *group) stats() HostStats {
	return HostStats{Host: x.name, Hedging: x.hedger.Stats(), Limiter: x.hedger.Limiter().Stats()}
}
