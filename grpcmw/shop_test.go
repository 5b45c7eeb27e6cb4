package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

var allKinds = []string{get, list, collect, chat}

// work is what a handler of a shop does between the request and the answer.
type work func(ctx context.Context, method string) error

// shopDesc describes the four methods as generated code would.
func shopDesc(w work) *grpc.ServiceDesc {
	stream := func(method string) grpc.StreamDesc {
		d := *descs[method]
		d.Handler = func(_ any, ss grpc.ServerStream) error { return w.stream(method, ss) }
		return d
	}
	return &grpc.ServiceDesc{
		ServiceName: "shop.Stock",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Get",
			Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
				request := new(wrapperspb.BytesValue)
				if err := decode(request); err != nil {
					return nil, err
				}
				handler := func(ctx context.Context, request any) (any, error) { return request, w(ctx, get) }
				if interceptor == nil {
					return handler(ctx, request)
				}
				return interceptor(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: get}, handler)
			},
		}},
		Streams: []grpc.StreamDesc{stream(list), stream(collect), stream(chat)},
	}
}

// stream reads what the client sends, and answers it: each message of a chat, the end of
// the others.
func (w work) stream(method string, ss grpc.ServerStream) error {
	for {
		m := new(wrapperspb.BytesValue)
		switch err := ss.RecvMsg(m); {
		case errors.Is(err, io.EOF):
			if err := w(ss.Context(), method); err != nil {
				return err
			}
			if method != chat {
				return ss.SendMsg(m)
			}
			return nil
		case err != nil:
			return err
		}
		if method == chat {
			if err := ss.SendMsg(m); err != nil {
				return err
			}
		}
	}
}

// shop is a grpc.Server behind a Server with a limiter of its own, and a channel to it, of
// one bubble.
type shop struct {
	t       rapid.TB
	limiter *limiter.Limiter
	server  *grpcmw.Server
	backend *backend // its listener and grpc.Server only
	cc      *grpc.ClientConn

	mu        sync.Mutex
	recovered []any   // panics that came out of the Server
	refused   []error // what it returned, but for nil
}

// inside are options of a grpc.Server whose interceptors come inside of a Server's.
type inside []grpc.ServerOption

// around calls f before each call, and what it returns after.
func around(f func(ctx context.Context, method string) (after func())) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			defer f(ctx, info.FullMethod)()
			return handler(ctx, r)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			defer f(ss.Context(), info.FullMethod)()
			return handler(srv, ss)
		}),
	}
}

// open makes a shop. Options are those of NewServer, of grpc.NewServer, which come outside
// unless they are said to be inside, and of grpc.NewClient.
func open(t rapid.TB, l *limiter.Limiter, w work, options ...any) *shop {
	t.Helper()
	s := &shop{t: t, limiter: l, backend: &backend{listener: bufconn.Listen(1 << 20)}}
	list := []grpcmw.ServerOption{grpcmw.ServerLimiter(l)}
	outside := []grpc.ServerOption{
		grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(s.watchUnary), grpc.ChainStreamInterceptor(s.watchStream),
	}
	var within []grpc.ServerOption
	dial := s.backend.dialOptions()
	for _, o := range options {
		switch o := o.(type) {
		case grpcmw.ServerOption:
			list = append(list, o)
		case inside:
			within = append(within, o...)
		case []grpc.ServerOption:
			outside = append(outside, o...)
		case grpc.DialOption:
			dial = append(dial, o)
		default:
			t.Fatalf("%T is no option of a shop", o)
		}
	}
	var err error
	if s.server, err = grpcmw.NewServer(list...); err != nil {
		t.Fatal(err)
	}
	s.backend.server = grpc.NewServer(slices.Concat(outside, s.server.ServerOptions(), within)...)
	s.backend.server.RegisterService(shopDesc(w), nil)
	if s.cc, err = grpc.NewClient("passthrough:///shop", dial...); err != nil {
		t.Fatal(err)
	}
	return s
}

// serve starts the server, on the listener in memory unless there is another.
func (s *shop) serve(l net.Listener) { go func() { _ = s.backend.server.Serve(l) }() }

// inBubble runs a test of a shop in a bubble, and checks that nothing is left.
func inBubble(t *testing.T, l *limiter.Limiter, w work, test func(t *testing.T, s *shop), options ...any) {
	t.Helper()
	s := open(t, l, w, options...)
	s.serve(s.backend.listener)
	defer s.close()
	test(t, s)
}

// close ends a shop and checks that nothing is left.
func (s *shop) close() {
	s.t.Helper()
	_ = s.cc.Close() // it may be closed already
	s.backend.server.Stop()
	synctest.Wait()
	if n := s.server.Stats().Inside; n != 0 {
		s.t.Errorf("%d calls are inside at the end", n)
	}
	probe(s.t, s.limiter)
}

// watchUnary is the outermost interceptor: it recovers, and notes what comes out.
func (s *shop) watchUnary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	defer s.watch(&err)
	return handler(ctx, request)
}

func (s *shop) watchStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer s.watch(&err)
	return handler(srv, ss)
}

func (s *shop) watch(err *error) {
	v := recover()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case v != nil:
		s.recovered = append(s.recovered, v)
		*err = errors.New("recovered")
	case *err != nil:
		s.refused = append(s.refused, *err)
	}
}

// call makes a call of any kind.
func (s *shop) call(ctx context.Context, method string, opts ...grpc.CallOption) error {
	c := service{cc: s.cc}
	if method == get {
		return c.invoke(ctx, get, opts...)
	}
	_, err := c.receive(ctx, method, opts...)
	return err
}

// fixedLimiter makes a limiter of n without surprises.
func fixedLimiter(t rapid.TB, n, waiting int) *limiter.Limiter {
	t.Helper()
	algorithm, err := gradient.NewFixed(n)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: waiting, Reserve: limiter.NoReserve})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// probe checks that all permits are free at rest.
func probe(t rapid.TB, l *limiter.Limiter) {
	t.Helper()
	var held []limiter.Permit
	for {
		p, ok := l.TryAcquire(limiter.Bypass)
		if !ok {
			break
		}
		held = append(held, p)
	}
	for _, p := range held {
		p.Release(permit.Ignored)
	}
	if n := len(held); n != l.Limit() || l.InFlight() != 0 {
		t.Fatalf("%d permits were free at rest, the limit is %d, in flight: %d", n, l.Limit(), l.InFlight())
	}
}
