package grpcmw

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// A Client limits, hedges and retries the calls of the channels that it is installed in.
// It must be made by NewClient, and may be used by any number of channels and goroutines.
// Calls to one target share one limit, whichever channel they take. It starts no goroutine
// but those of the attempts, and one for each stream that is hedged or retried, until that
// is decided.
//
// Beside what the channel costs, a unary call that is sent once allocates once, 80 B, and one
// that may be hedged 16 times, 1 KB, with its copies of small messages (BenchmarkUnary). gRPC
// allocates 15 times more, 1.4 KiB, under any StatsHandler, that of DialOptions included
// (BenchmarkGRPC of bench).
type Client struct {
	// Immutable after NewClient.
	options options
	targets *targets

	unhedgeable atomic.Uint64
	watch       watch
}

// NewClient returns a Client. Without options every call is limited, and none is sent
// twice. On a bad option it returns nil and an error that names it.
func NewClient(opts ...Option) (*Client, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	c := &Client{options: o}
	c.watch.report = o.retry
	if c.targets, err = newTargets(&c.options); err != nil {
		return nil, err
	}
	return c, nil
}

// DialOptions returns what a channel needs to have its calls limited, hedged and retried:
//
//	options, err := grpcmw.DialOptions(grpcmw.WithServiceConfig(config))
//	…
//	conn, err := grpc.NewClient(target, append(options, credentials)...)
//
// It is NewClient and its DialOptions in one. Use NewClient if Stats or Close are wanted.
func DialOptions(opts ...Option) ([]grpc.DialOption, error) {
	c, err := NewClient(opts...)
	if err != nil {
		return nil, err
	}
	return c.DialOptions(), nil
}

// DialOptions returns the interceptors and the StatsHandler, without the channel's own
// retries, and with what the service config says to the channel. Interceptors that are
// chained after them run inside, once for each attempt; those before run once for each call,
// as do those of grpc.WithUnaryInterceptor and grpc.WithStreamInterceptor, wherever they stand.
//
// What the service config says to the channel is a grpc.WithDefaultServiceConfig, of which
// the channel obeys the last that it is given, so another one after these options takes its
// place, and one before them is lost. A config that says nothing to the channel, as one that
// was made in Go, is not handed over, and one before them counts.
//
// The channel's retries are off for streams of clients too, which this package does not
// send again. Transparent retries, of what never reached the application of a server, stay
// the channel's. A service config that a resolver supplies takes the place of the one
// given here in the channel: its load balancing is obeyed, its retries and hedging are not,
// and its timeout then bounds each attempt. grpc.WithDisableServiceConfig keeps it out.
func (c *Client) DialOptions() []grpc.DialOption {
	list := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(c.UnaryInterceptor()),
		grpc.WithChainStreamInterceptor(c.streams(true)),
		grpc.WithStatsHandler(c.StatsHandler()),
		grpc.WithDisableRetry(),
	}
	if json := c.options.service.ChannelJSON(); json != "{}" {
		list = append(list, grpc.WithDefaultServiceConfig(json))
	}
	return list
}

// UnaryInterceptor returns the interceptor for unary calls, for channels that are put
// together by hand. Streams need the other one, and go unlimited without it. Such a channel
// should have grpc.WithDisableRetry, and must not be given the policies and timeouts of
// the service config.
func (c *Client) UnaryInterceptor() grpc.UnaryClientInterceptor { return c.unary }

// StreamInterceptor returns the interceptor for streams; see UnaryInterceptor.
func (c *Client) StreamInterceptor() grpc.StreamClientInterceptor { return c.streams(false) }

// route says how the calls of a method are sent.
type route struct {
	timeout time.Duration // 0 is none
	hedger  *hedger       // nil if the method has no policy and is not allowed to be hedged
	once    bool          // the call is sent once, in spite of a hedger; for streams
}

// unaryRoute returns the route of a unary method.
func (c *Client) unaryRoute(t *target, method string) route {
	var r route
	if i, ok := c.options.service.index(method); ok {
		r.timeout, r.hedger = c.options.service.methods[i].Timeout, t.hedgers.configs[i].unary
	}
	if r.hedger == nil && c.options.hedgeable[method] {
		r.hedger = t.hedgers.allowed.unary
	}
	return r
}

// streamRoute returns the route of a streaming method. Only a server's stream can be sent
// again, since its request is there at once.
func (c *Client) streamRoute(t *target, method string, desc *grpc.StreamDesc) route {
	r := route{hedger: c.streamHedger(t, method)}
	i, ok := c.options.service.index(method)
	if ok {
		r.timeout = c.options.service.methods[i].Timeout
	}
	retried := ok && c.options.service.methods[i].Retry != nil
	r.once = r.hedger == nil || !retried && !c.options.streams[method] || desc.ClientStreams || !desc.ServerStreams
	return r
}

// streamHedger returns the hedger of a streaming method, or nil.
func (c *Client) streamHedger(t *target, method string) *hedger {
	if i, ok := c.options.service.index(method); ok {
		if h := t.hedgers.configs[i].stream; h != nil {
			return h
		}
	}
	if c.options.streams[method] {
		return t.hedgers.allowed.stream
	}
	return nil
}

// targetOf returns the name of a channel's target. Interceptors may be called without a
// channel in tests.
func targetOf(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}

// Close lets no call begin any more, wakes those that wait for a permit with UNAVAILABLE
// and limiter.ErrClosed, and waits until the work of all attempts has ended, losers and
// streams included. It returns nil then, or ctx.Err() if ctx ends before; the Client stays
// closed, and Close may be called again to go on waiting. It cancels nothing and closes no
// channel.
func (c *Client) Close(ctx context.Context) error {
	all := c.targets.close()
	// Close does its first half even under a context that has ended. So every limiter is
	// shut before the wait for any.
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, t := range all {
		_ = t.limiter.Close(ended) // asked again below
	}
	for _, t := range all {
		if err := t.limiter.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stats is a snapshot of a Client.
type Stats struct {
	// Targets are those that are kept, the one used last first: at most MaxTargets.
	// Counts of a target that was dropped are gone.
	Targets []TargetStats
	// Overflow is what targets share for which there was no room, and Overflowed how many
	// calls were sent by it.
	Overflow   TargetStats
	Overflowed uint64
	// DroppedTargets counts the idle targets that made room for others.
	DroppedTargets uint64
	// Unhedgeable counts the calls of methods that are hedged or retried which were sent
	// once all the same, since the type of their messages is not known; see WithMessages.
	Unhedgeable uint64
	// Attempts counts what the channels have sent, as the StatsHandler sees it, without the
	// TransparentRetries. ChannelRetries are those of them that the channel, or an
	// interceptor inside, has sent again by itself.
	Attempts, TransparentRetries, ChannelRetries uint64
}

// TargetStats is a snapshot of what is kept for one target.
type TargetStats struct {
	// Target is ClientConn.Target, and empty for what targets beyond MaxTargets share.
	Target  string
	Limiter limiter.Stats
	// Hedging are the hedgers: that of Hedgeable and HedgeStreams first, then those of
	// the policies in their order in the service config.
	Hedging []HedgingStats
}

// HedgingStats is a snapshot of one hedger.
type HedgingStats struct {
	// Methods are those that the policy names. There are none for the methods of Hedgeable
	// and HedgeStreams.
	Methods []MethodName
	// Unary and Streams count the calls of either kind. They are the same if there is no
	// retryThrottling, since one hedger serves both then.
	Unary, Streams hedgedlimit.Stats
}

// Stats returns a snapshot. The targets are read one after the other. It never fails and
// may be called at any time, also after Close.
func (c *Client) Stats() Stats {
	all, overflowed, dropped := c.targets.snapshot()
	s := Stats{
		Targets:            make([]TargetStats, 0, len(all)),
		Overflow:           c.targets.overflow.stats(c.options.service),
		Overflowed:         overflowed,
		DroppedTargets:     dropped,
		Unhedgeable:        c.unhedgeable.Load(),
		Attempts:           c.watch.attempts.Load(),
		TransparentRetries: c.watch.transparent.Load(),
		ChannelRetries:     c.watch.retries.Load(),
	}
	for _, t := range all {
		s.Targets = append(s.Targets, t.stats(c.options.service))
	}
	return s
}

func (t *target) stats(s *ServiceConfig) TargetStats {
	stats := TargetStats{Target: t.name, Limiter: t.limiter.Stats(), Hedging: []HedgingStats{t.hedgers.allowed.stats(nil)}}
	for i, p := range t.hedgers.configs {
		if p.unary != nil {
			stats.Hedging = append(stats.Hedging, p.stats(s.methods[i].Names))
		}
	}
	return stats
}

func (p pair) stats(methods []MethodName) HedgingStats {
	return HedgingStats{Methods: methods, Unary: p.unary.Stats(), Streams: p.stream.Stats()}
}
