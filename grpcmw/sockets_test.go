package grpcmw_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// warm is a method without a policy in any of the configs, so that nothing of its calls is
// left when they have returned. Both backends answer it at once.
const warm = "/shop.Stock/Warm"

// backends are two servers on loopback, in real time, and a channel that takes them in
// turn. No test depends on how long anything takes: where the number of the attempts counts,
// the delay is none, or so long that only a failure brings the next one.
type backends struct {
	service
	all   [2]*backend
	addrs [2]string
}

// listenTwice starts both, with a script for each, and connects to both. Methods are the
// methodConfig and what follows it in the document of the client's service config.
func listenTwice(t *testing.T, methods string, scripts [2]func(arrival) script) *backends {
	t.Helper()
	s := &backends{service: service{t: t}}
	var list []resolver.Address
	for i := range s.all {
		s.all[i] = newBackend(t, func(_ int, a arrival) script {
			if a.method == warm {
				return script{}
			}
			return scripts[i](a)
		})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.addrs[i] = l.Addr().String()
		list = append(list, resolver.Address{Addr: s.addrs[i]})
		go func() { _ = s.all[i].server.Serve(l) }() // until Stop
		t.Cleanup(s.all[i].server.Stop)
	}
	names := manual.NewBuilderWithScheme("two")
	names.InitialState(resolver.State{Addresses: list})
	var err error
	s.client, err = grpcmw.NewClient(config(t, `{"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": `+methods+`}`),
		grpcmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
			c.Limiter, c.Budget = fixedLimiter(t, 100, 0), hedgedlimit.Unlimited
			c.Losers = hedgedlimit.Cancel()
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	s.cc, err = grpc.NewClient("two:///", append(s.client.DialOptions(),
		grpc.WithResolvers(names), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cc.Close() }) // nothing runs any more
	ctx := inTime(t)
	for len(s.all[0].seen()) == 0 || len(s.all[1].seen()) == 0 {
		if err := s.invoke(ctx, warm, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range s.all {
		b.mu.Lock()
		b.arrivals = nil
		b.mu.Unlock()
	}
	return s
}

// both makes a script of two backends that do the same.
func both(s func(arrival) script) [2]func(arrival) script { return [2]func(arrival) script{s, s} }

// inTime returns a context that ends a test which hangs.
func inTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// numbers returns, in order, how many attempts came before each that has arrived.
func (b *backend) numbers() []string {
	list := []string{}
	for _, a := range b.seen() {
		list = append(list, append(a.number, "0")[0])
	}
	slices.Sort(list)
	return list
}

// settle waits until no attempt holds a permit and every handler has ended by itself.
func (s *backends) settle(t *testing.T) {
	t.Helper()
	if err := s.client.Close(inTime(t)); err != nil {
		t.Errorf("permits are out a minute after the last call: %v", err)
	}
	for _, b := range s.all {
		late := time.AfterFunc(time.Minute, func() {
			t.Errorf("%d handlers run a minute after the last call", b.now())
			b.server.Stop()
		})
		b.server.GracefulStop()
		late.Stop()
	}
}

// H19: the four attempts of one call are in the handlers of both backends at once, two in
// each, and none of them answers before that.
func TestHedgesOfOneCallReachBothBackends(t *testing.T) {
	var arrived atomic.Int64
	met := make(chan struct{})
	s := listenTwice(t, `[{"name": [{"service": "shop.Stock", "method": "Get"}], "hedgingPolicy": {"maxAttempts": 4}}]`, both(func(arrival) script {
		if arrived.Add(1) == 4 {
			close(met)
		}
		select {
		case <-met:
		case <-t.Context().Done():
		}
		return script{}
	}))
	if err := s.invoke(inTime(t), get); err != nil {
		t.Error(err)
	}
	s.settle(t)
	first, second := s.all[0].numbers(), s.all[1].numbers()
	if len(first) != 2 || len(second) != 2 {
		t.Errorf("the backends have seen the attempts %v and %v; want two each", first, second)
	}
	if all := slices.Sorted(slices.Values(append(first, second...))); !slices.Equal(all, []string{"0", "1", "2", "3"}) {
		t.Errorf("before the attempts there were %v; want 0 to 3", all)
	}
}

// H19: every call is answered by the backend that can, though every other first attempt is
// stuck in the one that cannot. What is stuck ends with its call.
func TestStalledBackendIsBeatenByTheOther(t *testing.T) {
	const stalled, healthy = 0, 1
	s := listenTwice(t, `[{"name": [{"service": "shop.Stock", "method": "Get"}], "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0.01s"}}]`, [2]func(arrival) script{
		stalled: func(arrival) script { return script{after: time.Hour} },
		healthy: func(arrival) script { return script{} },
	})
	const calls = 20
	for range calls {
		var p peer.Peer
		if err := s.invoke(inTime(t), get, grpc.Peer(&p)); err != nil {
			t.Fatal(err)
		}
		if p.Addr.String() != s.addrs[healthy] {
			t.Errorf("the answer is of %v; want that of %v", p.Addr, s.addrs[healthy])
		}
	}
	s.settle(t)
	if n := len(s.all[stalled].seen()); n == 0 {
		t.Error("no attempt was stuck, so nothing was shown")
	}
	if n := len(s.all[healthy].seen()); n != calls {
		t.Errorf("the healthy backend has seen %d attempts; want %d", n, calls)
	}
}

// T1, T2, T4, T6: over sockets too the account of ten tokens, which both methods share,
// shuts at the fifth failure, with five left, and from nothing opens at the 51st success.
func TestThrottleOfTwoBackendsShutsAtHalfAndOpensAbove(t *testing.T) {
	var code atomic.Uint32
	s := listenTwice(t, `[
		{"name": [{"service": "shop.Stock", "method": "Get"}],
			"hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "3600s", "nonFatalStatusCodes": ["UNAVAILABLE"]}},
		{"name": [{"service": "shop.Stock", "method": "Retried"}],
			"retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["UNAVAILABLE"]}}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}`,
		both(func(arrival) script { return script{code: codes.Code(code.Load())} }))
	ctx := inTime(t)
	sent := func(method string, end codes.Code) int {
		before := len(s.all[0].seen()) + len(s.all[1].seen())
		code.Store(uint32(end))
		_ = s.invoke(ctx, method) // the attempts tell
		return len(s.all[0].seen()) + len(s.all[1].seen()) - before
	}
	var attempts []int
	for _, method := range []string{get, retried, get, retried, get, get, retried, get, get, get, get} {
		attempts = append(attempts, sent(method, codes.Unavailable))
	}
	// The first attempt of the third call is the fifth failure.
	if want := []int{2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1}; !slices.Equal(attempts, want) {
		t.Errorf("the failed calls took %v attempts; want %v", attempts, want)
	}
	for _, method := range []string{get, retried} {
		for range 50 {
			sent(warm, codes.OK) // a method without a policy pays too
		}
		if tokens := s.tokens(); tokens > 1e-9 {
			t.Errorf("after the 50th success %v is left above half", tokens)
		}
		if n := sent(method, codes.Unavailable); n != 1 {
			t.Errorf("with half of the tokens a call took %d attempts", n)
		}
		for range 11 { // the failure took one
			sent(warm, codes.OK)
		}
		if tokens := s.tokens(); tokens < 0.0999 || tokens > 0.1001 {
			t.Errorf("after the 51st success %v is left above half", tokens)
		}
		for range 10 { // room for the first attempt's failure
			sent(warm, codes.OK)
		}
		if n := sent(method, codes.Unavailable); n != 2 {
			t.Errorf("with more than half of the tokens a call took %d attempts", n)
		}
		for range 10 {
			sent(method, codes.Unavailable)
		}
	}
	s.settle(t)
}

// Both policies of a service config at once, from many goroutines: each call fails at one
// backend and is answered by its second attempt, every reply is of its own call, and the
// account of the throttle that they share is right to a thousandth.
func TestBothPoliciesOfAConfigAtOnceOverTwoBackends(t *testing.T) {
	s := listenTwice(t, `[
		{"name": [{"service": "shop.Stock", "method": "Get"}],
			"hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "3600s", "nonFatalStatusCodes": ["UNAVAILABLE"]}},
		{"name": [{"service": "shop.Stock", "method": "Retried"}],
			"retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["UNAVAILABLE"]}}],
		"retryThrottling": {"maxTokens": 1000, "tokenRatio": 0.1}`,
		both(func(a arrival) script {
			if a.number == nil {
				return script{code: codes.Unavailable}
			}
			return script{}
		}))
	const callers, each = 8, 25
	ctx := inTime(t)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			method := []string{get, retried}[caller%2]
			for i := range each {
				request, reply := []byte{byte(caller), byte(i)}, new(wrapperspb.BytesValue)
				if err := s.cc.Invoke(ctx, method, wrapperspb.Bytes(request), reply); err != nil {
					t.Errorf("%s: %v", method, err)
				} else if got := reply.GetValue(); len(got) != 3 || !slices.Equal(got[1:], request) {
					t.Errorf("%s: the reply to %v is %v", method, request, got)
				}
			}
		})
	}
	wg.Wait()
	const calls = callers * each
	// Of 500 above half each call has taken one, and paid a tenth.
	if tokens, want := s.tokens(), 500-0.9*calls; tokens < want-1e-9 || tokens > want+1e-9 {
		t.Errorf("%v is left above half; want %v", tokens, want)
	}
	if n := len(s.all[0].seen()) + len(s.all[1].seen()); n != 2*calls {
		t.Errorf("%d attempts were sent; want %d", n, 2*calls)
	}
	s.settle(t)
}
