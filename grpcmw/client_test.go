package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// An error of construction names the option and the value.
func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]grpcmw.Option{
		"grpcmw: option 0 is nil":                                                        nil,
		"grpcmw: WithServiceConfig: the config is nil":                                   grpcmw.WithServiceConfig(nil),
		"grpcmw: WithConfig: the function is nil":                                        grpcmw.WithConfig(nil),
		"grpcmw: WithMessages: the value is nil":                                         grpcmw.WithMessages(nil),
		"grpcmw: OnChannelRetry: the function is nil":                                    grpcmw.OnChannelRetry(nil),
		"grpcmw: MaxTargets 0 is below 1":                                                grpcmw.MaxTargets(0),
		"grpcmw: DeadlineFraction 0 is not above 0 and at most 1":                        grpcmw.DeadlineFraction(0),
		"grpcmw: DeadlineFraction 1.1 is not above 0 and at most 1":                      grpcmw.DeadlineFraction(1.1),
		"grpcmw: DeadlineFraction NaN is not above 0 and at most 1":                      grpcmw.DeadlineFraction(math.NaN()),
		`grpcmw: Hedgeable: "shop.Stock/Get" is not of the form /package.Service/Method`: grpcmw.Hedgeable("shop.Stock/Get"),
		`grpcmw: HedgeStreams: "/shop/" is not of the form /package.Service/Method`:      grpcmw.HedgeStreams("/shop/"),
		"hedgedlimit: MaxAttempts -1 is not between 0 and 5": grpcmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
			c.MaxAttempts = -1
			return nil
		}),
		"no": grpcmw.WithConfig(func(string, *hedgedlimit.Config) error { return errors.New("no") }),
	} {
		if c, err := grpcmw.NewClient(o); c != nil || err == nil || err.Error() != want {
			t.Errorf("NewClient returned %v, %v; want %q", c, err, want)
		}
		if list, err := grpcmw.DialOptions(o); list != nil || err == nil {
			t.Errorf("DialOptions returned %v, %v", list, err)
		}
	}
}

// fake calls the interceptor for a target, whose channel is never connected.
func fake(t *testing.T, c *grpcmw.Client, target string, invoker grpc.UnaryInvoker) error {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+target, (&backend{}).dialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cc.Close() }()
	return c.UnaryInterceptor()(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), cc, invoker)
}

func succeed(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	return nil
}

// Each target has a limit of its own, and at most MaxTargets of them are kept: an idle one
// makes room, a busy one never does.
func TestTargetsAreBounded(t *testing.T) {
	var made sync.Map
	c, err := grpcmw.NewClient(grpcmw.MaxTargets(2), grpcmw.WithConfig(func(target string, _ *hedgedlimit.Config) error {
		n, _ := made.LoadOrStore(target, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	targets := func() string {
		var names []string
		for _, s := range c.Stats().Targets {
			names = append(names, strings.TrimPrefix(s.Target, "passthrough:///"))
		}
		return strings.Join(names, " ")
	}
	call := func(target string, want string) {
		t.Helper()
		if err := fake(t, c, target, succeed); err != nil {
			t.Error(err)
		}
		if got := targets(); got != want {
			t.Errorf("after a call to %s the targets are %q; want %q", target, got, want)
		}
	}
	call("a", "a")
	call("b", "b a")
	call("a", "a b")
	call("a", "a b")
	call("c", "c a")
	call("a", "a c")
	hold := func(target string, then func()) grpc.UnaryInvoker {
		return func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			then()
			return nil
		}
	}
	_ = fake(t, c, "a", hold("a", func() {
		_ = fake(t, c, "c", hold("c", func() {
			call("d", "c a")
			if s := c.Stats(); s.Overflowed != 1 || s.Overflow.Limiter.Ledger.Granted != 1 {
				t.Errorf("%d calls have overflowed, %d permits were granted", s.Overflowed, s.Overflow.Limiter.Ledger.Granted)
			}
		}))
		call("d", "d a")
	}))
	if s := c.Stats(); s.DroppedTargets != 2 {
		t.Errorf("%d targets were dropped; want 2", s.DroppedTargets)
	}
	for target, want := range map[string]int64{"": 1, "passthrough:///a": 1, "passthrough:///c": 1} {
		if n, _ := made.Load(target); n == nil || n.(*atomic.Int64).Load() != want {
			t.Errorf("the limit of %q was made %v times; want %d", target, n, want)
		}
	}
}

// Goroutines that enter targets while others drop them never use a limit that is gone: of
// one target no more run at a time than its limit says, and all permits come back.
func TestTargetsAreNotDroppedUnderCalls(t *testing.T) {
	const limit = 1
	c, err := grpcmw.NewClient(grpcmw.MaxTargets(1), grpcmw.WithConfig(func(target string, c *hedgedlimit.Config) (err error) {
		algorithm, err := gradient.NewFixed(limit)
		if err == nil {
			c.Limiter, err = limiter.New(limiter.Config{Algorithm: algorithm})
		}
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	channels := map[string]*grpc.ClientConn{}
	for _, name := range []string{"a", "b", "c"} {
		cc, err := grpc.NewClient("passthrough:///"+name, (&backend{}).dialOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cc.Close() }()
		channels[name] = cc
	}
	// Of those that were not let into the map one more runs, under the overflow.
	var running [3]atomic.Int64
	var workers sync.WaitGroup
	for w := range 12 {
		workers.Go(func() {
			cc := channels[string(rune('a'+w%3))]
			for range 500 {
				_ = c.UnaryInterceptor()(t.Context(), get, nil, nil, cc, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					if n := running[w%3].Add(1); n > 2*limit {
						t.Errorf("%d calls to one target run", n)
					}
					running[w%3].Add(-1)
					return nil
				})
			}
		})
	}
	workers.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A call that has found a target just before it was dropped looks for another.
func TestDroppedTargetIsNotEntered(t *testing.T) {
	c, err := grpcmw.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	if dropped, entered := grpcmw.EnterDropped(c); !dropped || entered {
		t.Errorf("dropped: %t, entered: %t", dropped, entered)
	}
}

// Close refuses what comes, waits for what runs, and may be asked again.
func TestCloseWaitsForStreamsAndLosers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{messages: 1, idle: time.Minute}), config(t, plainStreams))
		defer s.close()
		stream, err := s.cc.NewStream(t.Context(), descs[list], list)
		if err != nil {
			t.Fatal(err)
		}
		_ = errors.Join(stream.SendMsg(wrapperspb.Bytes(nil)), stream.CloseSend())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.client.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returned %v while a stream was open", err)
		}
		for stream.RecvMsg(new(wrapperspb.BytesValue)) == nil {
		}
		if err := s.client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.get(t.Context()); status.Code(err) != codes.Unavailable || !errors.Is(err, limiter.ErrClosed) {
			t.Errorf("a call after Close ended with %v", err)
		}
	})
}

// DeadlineFraction tells the server less time than the caller has, and gives no deadline to
// a call without.
func TestDeadlineFractionIsLessThanWhatIsLeft(t *testing.T) {
	for _, method := range []string{get, list, chat} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, inTurn(script{code: codes.Unavailable}, script{}, script{}), config(t, fourRetries), unjittered, grpcmw.DeadlineFraction(0.5))
			defer s.close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			call := func(ctx context.Context) {
				if method == get {
					_, _ = s.get(ctx)
				} else {
					_, _ = s.receive(ctx, method)
				}
			}
			call(ctx)
			call(context.WithoutCancel(ctx))
			want := "[500ms 450ms 0s]"
			if method == chat { // is not retried
				want = "[500ms 0s]"
			}
			var got []time.Duration
			for _, a := range s.backend.seen() {
				got = append(got, a.deadline.Round(time.Millisecond))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s: the servers were told %v; want %v", method, got, want)
			}
		})
	}
}

// A channel that retries by itself under interceptors that were installed by hand is found
// out by the StatsHandler, and told of once.
func TestRetryingChannelIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		s := newService(t, always(script{code: codes.Unavailable}), grpcmw.OnChannelRetry(func(method string) { told = append(told, method) }))
		defer s.close()
		cc, err := grpc.NewClient("passthrough:///by-hand", append(s.backend.dialOptions(),
			grpc.WithUnaryInterceptor(s.client.UnaryInterceptor()), grpc.WithStreamInterceptor(s.client.StreamInterceptor()),
			grpc.WithStatsHandler(s.client.StatsHandler()), grpc.WithDefaultServiceConfig(fourRetries))...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cc.Close() }()
		for range 2 {
			_ = cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue))
		}
		if st := s.client.Stats(); st.Attempts != 8 || st.ChannelRetries != 6 || st.TransparentRetries != 0 {
			t.Errorf("counted %d attempts, %d of the channel, %d transparent", st.Attempts, st.ChannelRetries, st.TransparentRetries)
		}
		if len(told) != 1 || told[0] != get {
			t.Errorf("told of %v", told)
		}
	})
}

// H20: a retryPolicy that reaches the channel in another way, as that of a resolver does, is
// not obeyed there. The rest of such a config is.
func TestDialOptionsTurnTheChannelsRetriesOff(t *testing.T) {
	for _, method := range []string{get, list, collect} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, always(script{after: 10 * ms, code: codes.Unavailable}))
			defer s.close()
			cc, err := grpc.NewClient("passthrough:///resolved", append(append(s.backend.dialOptions(), s.client.DialOptions()...),
				grpc.WithDefaultServiceConfig(strings.Replace(fourRetries, `"retryPolicy"`, `"maxRequestMessageBytes": 100, "retryPolicy"`, 1)))...)
			if err != nil {
				t.Fatal(err)
			}
			_ = s.cc.Close()
			s.cc = cc
			if method == get {
				_, _ = s.get(t.Context())
			} else {
				_, _ = s.receive(t.Context(), method)
			}
			if n := len(s.backend.seen()); n != 1 {
				t.Errorf("%s was sent %d times", method, n)
			}
			if err := cc.Invoke(t.Context(), get, wrapperspb.Bytes(make([]byte, 200)), new(wrapperspb.BytesValue)); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("a request beyond the size in the config ended with %v", err)
			}
		})
	}
}

// A config that says nothing to the channel leaves it with the one that it has.
func TestConfigThatSaysNothingLeavesTheChannelsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, err := grpcmw.NewServiceConfig(grpcmw.ServiceConfigOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s := newService(t, always(script{}), grpcmw.WithServiceConfig(made))
		defer s.close()
		_ = s.cc.Close()
		own := grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "maxRequestMessageBytes": 100}]}`)
		s.cc = s.backend.dial(t, append([]grpc.DialOption{own}, s.client.DialOptions()...)...)
		err = s.cc.Invoke(t.Context(), get, wrapperspb.Bytes(make([]byte, 200)), new(wrapperspb.BytesValue))
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a request beyond the size in the channel's config ended with %v", err)
		}
	})
}

// H17: transparent retries are the channel's, under the permit of their attempt. They are
// counted apart, and are no retries of a channel that should not.
func TestTransparentRetriesAreCountedApart(t *testing.T) {
	c, err := grpcmw.NewClient(grpcmw.OnChannelRetry(func(method string) { t.Errorf("told of %s", method) }))
	if err != nil {
		t.Fatal(err)
	}
	err = fake(t, c, "a", func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		h := c.StatsHandler()
		ctx = h.TagRPC(ctx, &stats.RPCTagInfo{})
		h.HandleRPC(ctx, &stats.Begin{})
		// What was never sent is begun again twice, and of the first nobody tells the end.
		h.HandleRPC(ctx, &stats.End{})
		h.HandleRPC(ctx, &stats.Begin{IsTransparentRetryAttempt: true})
		h.HandleRPC(ctx, &stats.Begin{})
		h.HandleRPC(context.Background(), &stats.Begin{}) // of somebody else
		return nil
	})
	if st := c.Stats(); err != nil || st.Attempts != 1 || st.TransparentRetries != 1 || st.ChannelRetries != 0 {
		t.Errorf("counted %d attempts, %d transparent, %d of the channel; %v", st.Attempts, st.TransparentRetries, st.ChannelRetries, err)
	}
}

// A retry of the channel that comes after a transparent one is found out all the same.
func TestRetryAfterATransparentOneIsFoundOut(t *testing.T) {
	told := 0
	c, err := grpcmw.NewClient(grpcmw.OnChannelRetry(func(string) { told++ }))
	if err != nil {
		t.Fatal(err)
	}
	err = fake(t, c, "a", func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		h := c.StatsHandler()
		for _, transparent := range []bool{false, true, false} {
			h.HandleRPC(ctx, &stats.Begin{IsTransparentRetryAttempt: transparent})
			h.HandleRPC(ctx, &stats.End{})
		}
		return nil
	})
	if st := c.Stats(); err != nil || st.Attempts != 2 || st.TransparentRetries != 1 || st.ChannelRetries != 1 || told != 1 {
		t.Errorf("counted %d attempts, %d transparent, %d of the channel; told %d times; %v", st.Attempts, st.TransparentRetries, st.ChannelRetries, told, err)
	}
}

// Each Client counts its own attempts once, however many handlers a channel has.
func TestHandlersOfAChannelCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := grpcmw.OnChannelRetry(func(method string) { t.Errorf("told of %s", method) })
		second, err := grpcmw.NewClient(again)
		if err != nil {
			t.Fatal(err)
		}
		s := newService(t, always(script{}), again)
		defer s.close()
		options := append(s.client.DialOptions(), grpc.WithStatsHandler(s.client.StatsHandler()))
		_ = s.cc.Close()
		s.cc = s.backend.dial(t, append(options, second.DialOptions()...)...)
		if _, err := s.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*grpcmw.Client{s.client, second} {
			if st := c.Stats(); st.Attempts != 1 || st.ChannelRetries != 0 {
				t.Errorf("counted %d attempts, %d of the channel; want 1 and 0", st.Attempts, st.ChannelRetries)
			}
		}
	})
}

// B38: a call that an interceptor inside makes on the way, to fetch a token, has its attempts
// for itself. The same call, sent again by a Client inside, has none beyond those of the call
// around.
func TestAttemptsAreCountedTogetherForOneCallOnly(t *testing.T) {
	const twice = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.1s", "maxBackoff": "0.1s",
		"backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	for _, c := range []struct {
		name, inner  string // method
		outer, token int    // attempts
	}{{"another method", other, 2, 4}, {"the same call", get, 2, 3}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := newService(t, inTurn(script{code: codes.Unavailable}, script{}, script{code: codes.Unavailable}, script{}), config(t, twice), unjittered)
				defer inner.close()
				fetch := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					_ = inner.invoke(ctx, c.inner)
					return invoker(ctx, method, request, reply, cc, opts...)
				})
				outer := newService(t, inTurn(script{code: codes.Unavailable}, script{}), config(t, twice), unjittered, fetch)
				defer outer.close()
				_, err := outer.get(t.Context())
				o, i := len(outer.backend.seen()), len(inner.backend.seen())
				if c.inner == other && (err != nil || o != c.outer || i != c.token) {
					t.Errorf("%d attempts with %d for tokens; want %d with %d; %v", o, i, c.outer, c.token, err)
				}
				if c.inner == get && o+i > c.token {
					t.Errorf("%d attempts with %d of the same call; want %d in all", o, i, c.token)
				}
			})
		})
	}
}

// Without options a client limits, and sends each call once.
func TestZeroOptionsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t, always(script{after: time.Second}))
		defer b.server.Stop()
		options, err := grpcmw.DialOptions()
		if err != nil {
			t.Fatal(err)
		}
		cc := b.dial(t, options...)
		defer func() { _ = cc.Close() }()
		var calls sync.WaitGroup
		for range 200 {
			calls.Go(func() {
				_ = cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue))
			})
		}
		calls.Wait()
		if b.peak != 20 || len(b.seen()) != 20 { // the first limit of a gradient; the others waited for 100 ms
			t.Errorf("%d ran at a time, %d in all", b.peak, len(b.seen()))
		}
	})
}
