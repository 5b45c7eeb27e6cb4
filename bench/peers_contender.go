package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cristalhq/hedgedhttp"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// Names of the rows that others are compared with.
const (
	peerPlain   = "plain"
	peerOurs    = "holdfast"
	peerDefault = "holdfast-default"
)

// contender is a client that takes part in the comparison.
type contender struct {
	Name string `json:"name"`
	// About says how it is set up, the version of its module included.
	About string `json:"about"`

	// wrap hedges what goes through base, after a delay for those that have to be told one.
	wrap func(base http.RoundTripper, delay time.Duration) (http.RoundTripper, error)
}

// contenders returns the rows in the order of the table. A delay that has to be told is the one
// that ours learnt beforehand, or that of -delay, which is more than a user can know.
func contenders() []contender {
	failsafe := "failsafe-go " + moduleVersion("github.com/failsafe-go/failsafe-go")
	return []contender{
		{peerPlain, "net/http, no hedging", func(base http.RoundTripper, _ time.Duration) (http.RoundTripper, error) { return base, nil }},
		{
			"hedgedhttp", "hedgedhttp " + moduleVersion("github.com/cristalhq/hedgedhttp") + ", one hedge after a fixed delay",
			func(base http.RoundTripper, delay time.Duration) (http.RoundTripper, error) {
				return hedgedhttp.NewRoundTripper(delay, 2, base)
			},
		},
		{
			"failsafe", failsafe + ", hedge policy with a fixed delay",
			func(base http.RoundTripper, delay time.Duration) (http.RoundTripper, error) {
				return failsafehttp.NewRoundTripper(base, hedgeAfter(hedgepolicy.NewBuilderWithDelay[*http.Response](delay))), nil
			},
		},
		{
			"failsafe-learnt", failsafe + ", hedge policy with the 90th percentile as it learns it",
			func(base http.RoundTripper, _ time.Duration) (http.RoundTripper, error) {
				return failsafehttp.NewRoundTripper(base, hedgeAfter(learntByFailsafe())), nil
			},
		},
		{
			"failsafe-budget", failsafe + ", the same with its budget: a tenth of what is in flight, and one hedge at least",
			func(base http.RoundTripper, _ time.Duration) (http.RoundTripper, error) {
				tenth := budget.NewBuilder().WithMaxRate(0.1).WithMinConcurrency(1).Build()
				return failsafehttp.NewRoundTripper(base, hedgeAfter(learntByFailsafe().WithBudget(tenth))), nil
			},
		},
		{
			"failsafe-limiter", failsafe + ", hedge policy with a fixed delay, in front of its adaptive limiter",
			func(base http.RoundTripper, delay time.Duration) (http.RoundTripper, error) {
				return failsafehttp.NewRoundTripper(base, hedgeAfter(hedgepolicy.NewBuilderWithDelay[*http.Response](delay)), adaptivelimiter.NewWithDefaults[*http.Response]()), nil
			},
		},
		oursContender(),
		{peerDefault, "this module as httpmw.NewTransport sets it up: the 95th percentile, gates, losers drained for a while", byDefault},
	}
}

// oursContender cancels its losers, as the others do, so that nothing but its own hedging, budget
// and limit tells it from them. What is not named is the default of httpmw.
func oursContender() contender {
	return contender{peerOurs, "this module: hedges after the 90th percentile as it learns it, a budget of 10 %, a gradient limit; no gates, losers cancelled", ours}
}

const (
	// learntAge and learntSamples let failsafe-go look back about as far as ours does, and wait
	// for as many samples.
	learntAge     = 1000
	learntSamples = 100
)

func learntByFailsafe() hedgepolicy.Builder[*http.Response] {
	return hedgepolicy.NewBuilderWithDelayQuantile[*http.Response](learntQuantile, learntAge, learntSamples)
}

// hedgeAfter lets one hedge be sent, and a failure not end the call while the other attempt
// runs: by default the limiter's refusal of a hedge would.
func hedgeAfter(b hedgepolicy.Builder[*http.Response]) hedgepolicy.HedgePolicy[*http.Response] {
	return b.WithMaxHedges(1).CancelIf(func(_ *http.Response, err error) bool { return err == nil }).Build()
}

func ours(base http.RoundTripper, _ time.Duration) (http.RoundTripper, error) {
	return httpmw.NewTransport(base, httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Gates = hedgedlimit.NoGates
		c.Losers = hedgedlimit.Cancel()
		return learntDelay(c)
	}))
}

func byDefault(base http.RoundTripper, _ time.Duration) (http.RoundTripper, error) {
	return httpmw.NewTransport(base)
}

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "(version not known)" // in a test
}

// stamper is below each contender: it numbers the attempts of a call, for the service time
// depends on the number, and sends each to the next replica.
type stamper struct {
	base      http.RoundTripper
	addresses []string
	seed      uint64
}

// attemptsKey is that of a counter in the context of a call.
type attemptsKey struct{}

func (s *stamper) RoundTrip(r *http.Request) (*http.Response, error) {
	attempts, ok := r.Context().Value(attemptsKey{}).(*atomic.Int64)
	if !ok {
		return nil, fmt.Errorf("bench: %s lost the context of its call", r.URL)
	}
	n := attempts.Add(1)
	r = r.Clone(r.Context())
	r.Header.Set(downstream.AttemptHeader, strconv.FormatInt(n, 10))
	call, err := strconv.ParseUint(r.Header.Get(downstream.CallHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("bench: the number of the call: %w", err)
	}
	first := downstream.Rand(s.seed, replicaStream, call).IntN(len(s.addresses))
	r.URL.Host = s.addresses[(first+int(n)-1)%len(s.addresses)]
	return s.base.RoundTrip(r)
}

// peerClient makes the calls of a contender.
type peerClient struct {
	http *http.Client
	base *http.Transport
	// ours is nil in other rows.
	ours *httpmw.Transport
}

func newPeerClient(c contender, addresses []string, seed uint64, delay time.Duration) (*peerClient, error) {
	base := newBase()
	rt, err := c.wrap(&stamper{base: base, addresses: addresses, seed: seed}, delay)
	if err != nil {
		return nil, err
	}
	p := &peerClient{http: &http.Client{Transport: rt}, base: base}
	p.ours, _ = rt.(*httpmw.Transport)
	return p, nil
}

// do makes one call and reads its answer to the end.
func (p *peerClient) do(ctx context.Context, call uint64) error {
	return doCall(context.WithValue(ctx, attemptsKey{}, new(atomic.Int64)), p.http, call)
}

// learnt is the delay that ours has learnt.
func (p *peerClient) learnt() (time.Duration, error) {
	if p.ours != nil {
		for _, h := range p.ours.Stats().Hosts {
			if h.Hedging.DelayKnown {
				return h.Hedging.Delay, nil
			}
		}
	}
	return 0, fmt.Errorf("no delay was learnt")
}

// close waits until the attempts of ours have ended, and closes the connections. What others
// left behind ends with them.
func (p *peerClient) close(ctx context.Context) error {
	defer p.base.CloseIdleConnections()
	if p.ours == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.ours.Close(ctx)
}
