package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// The methods of the backend.
const (
	get     = "/shop.Stock/Get"     // unary
	list    = "/shop.Stock/List"    // the server streams
	collect = "/shop.Stock/Collect" // the client streams
	chat    = "/shop.Stock/Chat"    // both stream
)

var descs = map[string]*grpc.StreamDesc{
	list:    {StreamName: "List", ServerStreams: true},
	collect: {StreamName: "Collect", ClientStreams: true},
	chat:    {StreamName: "Chat", ServerStreams: true, ClientStreams: true},
}

// script is what the backend does with one attempt.
type script struct {
	after    time.Duration // until it answers
	deaf     bool          // goes on when the context has ended
	code     codes.Code
	pushback []string

	headers  bool          // sends the headers at once, then the rest of the script
	bare     bool          // sends no headers but those of a message
	messages int           // of a stream: sent after the answer, every millisecond
	idle     time.Duration // of a stream: until it ends after its last message
}

// arrival is an attempt as the backend has seen it.
type arrival struct {
	method   string
	at       time.Duration // since the backend was made
	number   []string      // of the previous attempts, as it came
	metadata metadata.MD
	deadline time.Duration // that is left; 0 is none
}

// backend is a gRPC server in memory. It counts on its own what runs.
type backend struct {
	listener *bufconn.Listener
	server   *grpc.Server
	began    time.Time
	// script answers the attempt number n, from 0, of all that came.
	script func(n int, a arrival) script

	mu       sync.Mutex
	arrivals []arrival
	running  int
	peak     int
}

// newBackend starts a server. It must be stopped before the end of a bubble.
func newBackend(t tester, script func(n int, a arrival) script) *backend {
	t.Helper()
	b := &backend{listener: bufconn.Listen(1 << 20), began: time.Now(), script: script}
	b.server = grpc.NewServer(grpc.UnknownServiceHandler(b.handle), grpc.WaitForHandlers(true))
	go func() { _ = b.server.Serve(b.listener) }()
	return b
}

// always makes a script for all attempts.
func always(s script) func(int, arrival) script { return func(int, arrival) script { return s } }

// inTurn follows one script after the other; the last one serves all further attempts.
func inTurn(scripts ...script) func(int, arrival) script {
	return func(n int, _ arrival) script { return scripts[min(n, len(scripts)-1)] }
}

func (b *backend) handle(_ any, stream grpc.ServerStream) error {
	a := arrival{at: time.Since(b.began)}
	a.method, _ = grpc.MethodFromServerStream(stream)
	a.metadata, _ = metadata.FromIncomingContext(stream.Context())
	a.number = a.metadata["grpc-previous-rpc-attempts"]
	if d, ok := stream.Context().Deadline(); ok {
		a.deadline = time.Until(d)
	}
	b.mu.Lock()
	n := len(b.arrivals)
	b.arrivals = append(b.arrivals, a)
	b.running++
	b.peak = max(b.peak, b.running)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running--
	}()
	return b.follow(n, b.script(n, a), a.method, stream)
}

func (b *backend) follow(n int, s script, method string, stream grpc.ServerStream) error {
	ctx := stream.Context()
	request := new(wrapperspb.BytesValue)
	if desc := descs[method]; desc == nil || !desc.ClientStreams {
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
	}
	if s.headers {
		if err := stream.SendHeader(metadata.Pairs("attempt", strconv.Itoa(n))); err != nil {
			return err
		}
	}
	if !pause(ctx, s.after, s.deaf) {
		return ctx.Err()
	}
	trailer := metadata.Pairs("attempt", strconv.Itoa(n))
	if s.pushback != nil {
		trailer["grpc-retry-pushback-ms"] = s.pushback
	}
	stream.SetTrailer(trailer)
	if s.code != codes.OK && s.messages == 0 {
		st, err := status.New(s.code, "attempt "+strconv.Itoa(n)).WithDetails(wrapperspb.Int64(int64(n)))
		if err != nil {
			return err
		}
		return st.Err()
	}
	if !s.headers && !s.bare {
		if err := stream.SetHeader(metadata.Pairs("attempt", strconv.Itoa(n))); err != nil {
			return err
		}
	}
	switch method {
	case collect:
		for {
			if err := stream.RecvMsg(request); errors.Is(err, io.EOF) {
				return stream.SendMsg(reply(n, request.GetValue()))
			} else if err != nil {
				return err
			}
		}
	case chat:
		for {
			if err := stream.RecvMsg(request); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := stream.SendMsg(reply(n, request.GetValue())); err != nil {
				return err
			}
		}
	case list:
	default:
		return stream.SendMsg(reply(n, request.GetValue()))
	}
	for range s.messages {
		if err := stream.SendMsg(reply(n, request.GetValue())); err != nil {
			return err
		}
		if !pause(ctx, time.Millisecond, s.deaf) {
			return ctx.Err()
		}
	}
	if !pause(ctx, s.idle, s.deaf) {
		return ctx.Err()
	}
	return status.Error(s.code, "the end") // nil for OK
}

// reply has the number of the attempt, and what it was asked.
func reply(n int, request []byte) *wrapperspb.BytesValue {
	return wrapperspb.Bytes(append([]byte{byte(n)}, request...))
}

// pause waits, and reports whether the context lived so long.
func pause(ctx context.Context, d time.Duration, deaf bool) bool {
	if deaf {
		time.Sleep(d) // of a bubble
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// dial connects to the backend. The channel must be closed before the end of a bubble.
func (b *backend) dial(t tester, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///backend", append(b.dialOptions(), options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cc
}

func (b *backend) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return b.listener.DialContext(ctx) }),
	}
}

// seen returns the attempts that have arrived.
func (b *backend) seen() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.arrivals)
}

// times returns when the attempts have arrived.
func (b *backend) times() []time.Duration {
	var list []time.Duration
	for _, a := range b.seen() {
		list = append(list, a.at)
	}
	return list
}

func (b *backend) now() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running
}

// service is a client, a backend, and a channel between the two, of one bubble.
type service struct {
	t       tester
	client  *grpcmw.Client
	backend *backend
	cc      *grpc.ClientConn
	limiter *limiter.Limiter
	changes []func(*hedgedlimit.Config)
}

// configured changes what a service gives its hedgers.
func configured(change func(*hedgedlimit.Config)) option { return option{change} }

type option struct{ change func(*hedgedlimit.Config) }

// newService makes one under a fixed limit of 100. Options are those of a Client, those of
// configured, and those of the channel, which come inside.
func newService(t tester, script func(int, arrival) script, options ...any) *service {
	t.Helper()
	return newServiceOf(t, 100, script, options...)
}

func newServiceOf(t tester, limit int, script func(int, arrival) script, options ...any) *service {
	t.Helper()
	s := &service{t: t, backend: newBackend(t, script)}
	algorithm, err := gradient.NewFixed(limit)
	if err != nil {
		t.Fatal(err)
	}
	s.limiter, err = limiter.New(limiter.Config{Algorithm: algorithm, Reserve: limiter.NoReserve})
	if err != nil {
		t.Fatal(err)
	}
	list := []grpcmw.Option{grpcmw.WithConfig(s.configure)}
	var dial []grpc.DialOption
	for _, o := range options {
		switch o := o.(type) {
		case option:
			s.changes = append(s.changes, o.change)
		case grpcmw.Option:
			list = append(list, o)
		case grpc.DialOption:
			dial = append(dial, o)
		}
	}
	s.client, err = grpcmw.NewClient(list...)
	if err != nil {
		t.Fatal(err)
	}
	s.cc = s.backend.dial(t, append(s.client.DialOptions(), dial...)...)
	return s
}

// configure gives the backend the fixed limit.
func (s *service) configure(target string, c *hedgedlimit.Config) error {
	if target != "" {
		c.Limiter = s.limiter
	}
	c.Budget = hedgedlimit.Unlimited
	for _, change := range s.changes {
		change(c)
	}
	return nil
}

// close ends a service and checks that nothing is left.
func (s *service) close() {
	s.t.Helper()
	_ = s.cc.Close() // it may be closed already
	s.backend.server.Stop()
	synctest.Wait()
	if n := s.limiter.InFlight(); n != 0 {
		s.t.Errorf("%d permits are out at the end", n)
	}
	if n := s.backend.now(); n != 0 {
		s.t.Errorf("%d handlers run at the end", n)
	}
}

// get makes one unary call.
func (s *service) get(ctx context.Context, opts ...grpc.CallOption) (*wrapperspb.BytesValue, error) {
	reply := new(wrapperspb.BytesValue)
	err := s.cc.Invoke(ctx, get, wrapperspb.Bytes([]byte("ask")), reply, opts...)
	return reply, err
}

// invoke makes one unary call of a method.
func (s *service) invoke(ctx context.Context, method string, opts ...grpc.CallOption) error {
	return s.cc.Invoke(ctx, method, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), opts...)
}

// receive makes a stream, sends one message and receives all that come.
func (s *service) receive(ctx context.Context, method string, opts ...grpc.CallOption) (got [][]byte, err error) {
	stream, err := s.cc.NewStream(ctx, descs[method], method, opts...)
	if err != nil {
		return nil, err
	}
	// io.EOF says that the stream has ended, and RecvMsg how.
	if err := stream.SendMsg(wrapperspb.Bytes([]byte("ask"))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	for {
		m := new(wrapperspb.BytesValue)
		err := stream.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, m.GetValue())
		if !descs[method].ServerStreams {
			return got, nil
		}
	}
}

// config parses a service config that must be good.
func config(t testing.TB, document string) grpcmw.Option {
	t.Helper()
	c, err := grpcmw.ParseServiceConfig(document)
	if err != nil {
		t.Fatal(err)
	}
	return grpcmw.WithServiceConfig(c)
}

// tester is what a *testing.T and a *rapid.T have in common.
type tester interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
}
