package main

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// echo is the only method of the server of BenchmarkGRPC.
const echo = "/bench.Echo/Echo"

// BenchmarkGRPC is a unary call whose hedge does not fire, to a server in memory that
// answers at once with 1 KiB. The rows of this module have a limit and the StatsHandler,
// and "holdfast" a budget, the gates and a learnt delay besides; in "holdfast-once" the
// method is not on the list of those that may be hedged. The others have a fixed delay
// and nothing else; "holdfast-interceptor" is "holdfast" without the StatsHandler.
// BENCHMARKS.md of grpcmw says what has come of it.
//
//	make bench-grpc
func BenchmarkGRPC(b *testing.B) {
	for _, goroutines := range []int{1, 16} {
		for _, impl := range []struct {
			name    string
			options func(*testing.B) []grpc.DialOption
		}{
			{"plain", func(*testing.B) []grpc.DialOption { return nil }},
			{"by-hand", unaryByHand},
			{"holdfast-once", unaryOnce},
			{"holdfast", unaryByDefault},
			{"holdfast-interceptor", unaryByInterceptor},
			{"failsafegrpc", unaryByFailsafe},
		} {
			b.Run(fmt.Sprintf("goroutines=%d/impl=%s", goroutines, impl.name), func(b *testing.B) {
				channel := dialEcho(b, impl.options(b)...)
				// As in a server, each goroutine has a context of its own that can end.
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				for range 300 { // until delays are known and buffers have grown
					ask(ctx, b, channel)
				}
				b.ReportAllocs()
				if goroutines == 1 {
					for b.Loop() {
						ask(ctx, b, channel)
					}
					return
				}
				b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					for pb.Next() {
						ask(ctx, b, channel)
					}
				})
			})
		}
	}
}

// ask makes one call. No two calls share a message.
func ask(ctx context.Context, b *testing.B, channel *grpc.ClientConn) {
	reply := new(wrapperspb.StringValue)
	if err := channel.Invoke(ctx, echo, wrapperspb.String("ask"), reply); err != nil {
		b.Error(err)
	}
	if n := len(reply.GetValue()); n != 1024 {
		b.Errorf("the reply has %d bytes", n)
	}
}

// dialEcho starts the server and returns a channel to it.
func dialEcho(b *testing.B, options ...grpc.DialOption) *grpc.ClientConn {
	b.Helper()
	answer := wrapperspb.String(strings.Repeat("x", 1024))
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Echo",
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return answer, decode(new(wrapperspb.StringValue))
			},
		}},
	}, nil)
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }() // until Stop
	b.Cleanup(server.Stop)
	channel, err := grpc.NewClient("passthrough:///memory", append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = channel.Close() }) // nothing runs on it
	return channel
}

// unaryByHand is what most people write, at its leanest: one goroutine and one reply for
// each attempt, one timer, one channel, and a context that ends with the call.
func unaryByHand(*testing.B) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any,
		cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		type result struct {
			reply proto.Message
			err   error
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		results := make(chan result, 2)
		start := func() {
			own := reply.(proto.Message).ProtoReflect().New().Interface()
			go func() { results <- result{own, invoker(ctx, method, request, own, cc, opts...)} }()
		}
		start()
		running := 1
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				start()
				running++
			case got := <-results:
				running--
				if got.err == nil {
					proto.Merge(reply.(proto.Message), got.reply)
					return nil
				}
				if running == 0 {
					return got.err
				}
			}
		}
	})}
}

func unaryOnce(b *testing.B) []grpc.DialOption { return dialOptions(b) }

func unaryByDefault(b *testing.B) []grpc.DialOption { return dialOptions(b, neverHedging()...) }

// unaryByInterceptor is for channels that are put together by hand.
func unaryByInterceptor(b *testing.B) []grpc.DialOption {
	c, err := grpcmw.NewClient(neverHedging()...)
	if err != nil {
		b.Fatal(err)
	}
	return []grpc.DialOption{grpc.WithUnaryInterceptor(c.UnaryInterceptor()), grpc.WithDisableRetry()}
}

// neverHedging learns as the default does, and sends no hedge.
func neverHedging() []grpcmw.Option {
	return []grpcmw.Option{grpcmw.Hedgeable(echo), grpcmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Delay = hedgedlimit.PerKey(hedgedlimit.QuantileConfig{Min: time.Hour}, 64)
		return nil
	})}
}

func dialOptions(b *testing.B, options ...grpcmw.Option) []grpc.DialOption {
	b.Helper()
	list, err := grpcmw.DialOptions(options...)
	if err != nil {
		b.Fatal(err)
	}
	return list
}

// unaryByFailsafe has the attempts of a call share its reply, as the interceptor does.
func unaryByFailsafe(*testing.B) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithUnaryInterceptor(failsafegrpc.NewUnaryClientInterceptor[any](hedgepolicy.NewWithDelay[any](time.Hour)))}
}
