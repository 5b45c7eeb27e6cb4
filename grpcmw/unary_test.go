package grpcmw_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// outs are the variables that a caller's options point to.
type outs struct {
	header, trailer metadata.MD
	peer            peer.Peer
	finished        []error
}

func (o *outs) options() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.Header(&o.header), grpc.Trailer(&o.trailer), grpc.Peer(&o.peer),
		grpc.OnFinish(func(err error) { o.finished = append(o.finished, err) }),
	}
}

// pointers are the same options, by pointer.
func (o *outs) pointers() []grpc.CallOption {
	return []grpc.CallOption{
		&grpc.HeaderCallOption{HeaderAddr: &o.header}, &grpc.TrailerCallOption{TrailerAddr: &o.trailer}, &grpc.PeerCallOption{PeerAddr: &o.peer},
		&grpc.OnFinishCallOption{OnFinish: func(err error) { o.finished = append(o.finished, err) }},
	}
}

// attempt returns which attempt the headers and trailers are of, or −1 if they are of none
// or of two.
func (o *outs) attempt() int {
	h, t := o.header["attempt"], o.trailer["attempt"]
	if len(h) != 1 || !slices.Equal(h, t) {
		return -1
	}
	n, _ := strconv.Atoi(h[0])
	return n
}

// K17: what the options point to is the winner's, written once before the call returns, and
// OnFinish is called once.
func TestCallerGetsHeadersTrailersAndPeerOfTheWinner(t *testing.T) {
	for name, options := range map[string]func(*outs) []grpc.CallOption{"by value": (*outs).options, "by pointer": (*outs).pointers} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, inTurn(script{after: 300 * ms, deaf: true}, script{after: 50 * ms}), config(t, threeHedges))
				defer s.close()
				var o outs
				reply, err := s.get(t.Context(), options(&o)...)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // the loser ends meanwhile
				synctest.Wait()
				if got := int(reply.GetValue()[0]); got != 1 || o.attempt() != 1 || o.peer.Addr == nil {
					t.Errorf("the reply is of attempt %d, the metadata of %d, the peer is %v", got, o.attempt(), o.peer)
				}
				if !reflect.DeepEqual(o.finished, []error{nil}) {
					t.Errorf("OnFinish was told %v", o.finished)
				}
			})
		})
	}
}

// B53: a call that fails leaves the reply alone. Its trailers are those of the attempt whose
// status it has.
func TestFailedCallLeavesTheReplyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{after: 10 * ms, code: codes.Unavailable}), config(t, threeHedges))
		defer s.close()
		var o outs
		reply := wrapperspb.Bytes([]byte("mine"))
		err := s.cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), reply, o.options()...)
		if string(reply.GetValue()) != "mine" {
			t.Errorf("the reply has become %q", reply.GetValue())
		}
		if got := o.trailer["attempt"]; !slices.Equal(got, []string{"2"}) || attemptOf(t, err) != 2 {
			t.Errorf("the trailers are of attempt %q, the status is %v", got, err)
		}
		if o.header != nil {
			t.Errorf("without headers the caller's have become %v", o.header)
		}
		if len(o.finished) != 1 || o.finished[0] != err { //nolint:errorlint // the same value
			t.Errorf("OnFinish was told %v", o.finished)
		}
		// H7: the others are not lost.
		var all *grpcmw.AttemptsError
		if !errors.As(err, &all) || len(all.Unwrap()) != 3 || attemptOf(t, all.Unwrap()[0]) != 0 {
			t.Errorf("the error is %#v", err)
		}
	})
}

// The reply is the winner's wholly: what was in it is gone, and what this side does not know
// is kept.
func TestReplyIsWhollyTheWinners(t *testing.T) {
	invoker := func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		// Field 1 is missing, and field 2 is unknown.
		return proto.Unmarshal([]byte{0x10, 0x07}, reply.(proto.Message))
	}
	c, err := grpcmw.NewClient(grpcmw.Hedgeable(get))
	if err != nil {
		t.Fatal(err)
	}
	reply := wrapperspb.Bytes([]byte("old"))
	if err := c.UnaryInterceptor()(t.Context(), get, wrapperspb.Bytes(nil), reply, nil, invoker); err != nil {
		t.Fatal(err)
	}
	if got, err := proto.Marshal(reply); err != nil || !slices.Equal(got, []byte{0x10, 0x07}) {
		t.Errorf("the reply is %v: %x, %v", reply, got, err)
	}
}

// loopback is a server on a socket whose first attempt of each call is the slower one.
func loopback(t *testing.T, handle func(ctx context.Context, previous string, request, reply *wrapperspb.BytesValue)) *grpc.Server {
	t.Helper()
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		request, reply := new(wrapperspb.BytesValue), new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		md, _ := metadata.FromIncomingContext(stream.Context())
		previous := fmt.Sprint(md["grpc-previous-rpc-attempts"])
		_ = stream.SetHeader(metadata.Pairs("attempt", previous))
		stream.SetTrailer(metadata.Pairs("attempt", previous))
		handle(stream.Context(), previous, request, reply)
		return stream.SendMsg(reply)
	}))
	t.Cleanup(server.Stop)
	return server
}

// serve returns a channel to the server, through a client that hedges after delay.
func serve(t *testing.T, server *grpc.Server, delay time.Duration) (*grpc.ClientConn, *grpcmw.Client) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	service, err := grpcmw.NewServiceConfig(grpcmw.ServiceConfigOptions{Methods: []grpcmw.MethodConfig{{
		Names: []grpcmw.MethodName{{}}, Hedging: &grpcmw.HedgingPolicy{MaxAttempts: 2, Delay: delay},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := grpcmw.NewClient(grpcmw.WithServiceConfig(service), grpcmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Budget = hedgedlimit.Unlimited
		l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded, Reserve: limiter.NoReserve})
		c.Limiter = l
		return err // of this call's own: several may come at once
	}))
	if err != nil {
		t.Fatal(err)
	}
	cc, err := grpc.NewClient(listener.Addr().String(), append(c.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cc.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("permits are out ten seconds after the channel was closed: %v", err)
		}
	})
	return cc, c
}

// K17: 10,000 calls with a hedge right behind the first attempt, and everything supplied
// that gRPC writes through. No reply, header, trailer or peer is touched after its call has
// returned; the race detector sees what the comparison does not.
func TestNothingIsTouchedAfterTheCallHasReturned(t *testing.T) {
	calls := 10_000
	if testing.Short() {
		calls = 1000
	}
	cc, client := serve(t, loopback(t, func(_ context.Context, previous string, request, reply *wrapperspb.BytesValue) {
		reply.Value = []byte(previous + string(request.GetValue()))
	}), 50*time.Microsecond)
	var touched, mixed atomic.Int64
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			request := wrapperspb.Bytes(nil)
			for i := range calls / 8 {
				ask := strconv.Itoa(w*calls + i)
				request.Value = append(request.Value[:0], ask...) // the caller's own again, at once
				reply := new(wrapperspb.BytesValue)
				var o outs
				if err := cc.Invoke(t.Context(), get, request, reply, o.options()...); err != nil {
					t.Error(err)
					return
				}
				before := string(reply.GetValue())
				if before != o.header["attempt"][0]+ask || before != o.trailer["attempt"][0]+ask {
					mixed.Add(1)
				}
				if len(o.finished) != 1 || o.peer.Addr == nil {
					t.Errorf("OnFinish was told %v, the peer is %v", o.finished, o.peer)
				}
				reply.Value = append(reply.Value, "mine"...)
				o.header["attempt"][0], o.trailer["attempt"][0] = "mine", "mine"
				time.Sleep(20 * time.Microsecond)
				if string(reply.GetValue()) != before+"mine" || o.header["attempt"][0] != "mine" || o.trailer["attempt"][0] != "mine" || len(o.finished) != 1 {
					touched.Add(1)
				}
			}
		})
	}
	workers.Wait()
	if touched.Load() != 0 || mixed.Load() != 0 {
		t.Errorf("%d replies were touched after their call had returned, %d were of two attempts", touched.Load(), mixed.Load())
	}
	if st := client.Stats(); st.Attempts < uint64(calls)*11/10 {
		t.Errorf("only %d attempts were sent in %d calls", st.Attempts, calls)
	}
}

// B53: replies of 64 KiB that the loser decodes while the caller reads the winner's.
func TestLargeRepliesAreWholeAndStaySo(t *testing.T) {
	const size = 64 << 10
	cc, _ := serve(t, loopback(t, func(_ context.Context, previous string, _, reply *wrapperspb.BytesValue) {
		if previous == "[]" {
			time.Sleep(3 * time.Millisecond) // deaf: it answers all the same
		}
		reply.Value = slices.Repeat([]byte{previous[1]}, size)
	}), time.Millisecond)
	var rounds sync.WaitGroup
	for range 8 {
		rounds.Go(func() {
			for range 60 {
				reply := new(wrapperspb.BytesValue)
				if err := cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), reply); err != nil {
					t.Error(err)
					return
				}
				whole := sha256.Sum256(slices.Repeat(reply.GetValue()[:1], size))
				for range 5 {
					if sha256.Sum256(reply.GetValue()) != whole {
						t.Error("a reply is of two attempts, or has changed")
						return
					}
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	rounds.Wait()
}

// B55: one context with metadata for a hundred goroutines. Each attempt carries its own
// number once, and the caller's metadata stays what it is.
func TestSharedMetadataIsNotChanged(t *testing.T) {
	var wrong atomic.Int64
	cc, _ := serve(t, loopback(t, func(ctx context.Context, previous string, _, _ *wrapperspb.BytesValue) {
		md, _ := metadata.FromIncomingContext(ctx)
		if previous != "[]" && previous != "[1]" || !slices.Equal(md["tenant"], []string{"a", "b"}) {
			wrong.Add(1)
		}
	}), 50*time.Microsecond)
	// The number that a proxy has passed on is another call's.
	md := metadata.Pairs("tenant", "a", "grpc-previous-rpc-attempts", "3")
	before := md.Copy()
	ctx := metadata.AppendToOutgoingContext(metadata.NewOutgoingContext(t.Context(), md), "tenant", "b")
	var calls sync.WaitGroup
	for i := range 100 {
		calls.Go(func() {
			var opts []grpc.CallOption
			if i%2 == 0 {
				opts = []grpc.CallOption{grpc.WaitForReady(true)}
			}
			for range 10 {
				if err := cc.Invoke(ctx, get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), opts...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	if wrong.Load() != 0 {
		t.Errorf("%d attempts came with metadata that is not theirs", wrong.Load())
	}
	if !reflect.DeepEqual(md, before) {
		t.Errorf("the caller's metadata has become %v", md)
	}
}

// L13: the caller may use the request and the options again once the call has returned,
// though a hedge may begin in that instant.
func TestRequestIsTheCallersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int64
		invoker := func(ctx context.Context, _ string, request, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			time.Sleep(10 * ms) // deaf, and still at its request
			if string(request.(*wrapperspb.BytesValue).GetValue()) != "ask" || len(opts) < 2 {
				late.Add(1)
			}
			return nil
		}
		s := newService(t, always(script{}), config(t, threeAtOnce))
		defer s.close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
		defer cancel()
		request, opts := wrapperspb.Bytes([]byte("ask")), []grpc.CallOption{grpc.WaitForReady(true)}
		err := s.client.UnaryInterceptor()(ctx, get, request, new(wrapperspb.BytesValue), s.cc, invoker, opts...)
		if status.Code(err) != codes.DeadlineExceeded {
			t.Error(err)
		}
		request.Value, opts[0] = []byte("other"), nil
		time.Sleep(time.Second)
		if late.Load() != 0 {
			t.Errorf("%d attempts saw what the caller did with its own", late.Load())
		}
	})
}

// L13: an attempt that begins when its call has returned already does not look at what is the
// caller's.
func TestLateAttemptDoesNotLookAtTheRequest(t *testing.T) {
	m := &watchfulMessages{}
	s := newService(t, always(script{}), config(t, threeAtOnce), grpcmw.WithMessages(m))
	for range 5000 {
		m.returned.Store(false)
		if err := s.client.UnaryInterceptor()(t.Context(), get, &plain{}, &plain{}, s.cc, succeed); err != nil {
			t.Fatal(err)
		}
		m.returned.Store(true)
		for s.limiter.InFlight() > 0 {
			runtime.Gosched()
		}
	}
	if n := m.late.Load(); n != 0 {
		t.Errorf("%d times an attempt looked at what was the caller's again", n)
	}
	_ = s.cc.Close()
	s.backend.server.Stop()
}

// watchfulMessages notes whether it is used after a call has returned.
type watchfulMessages struct {
	plainMessages
	returned atomic.Bool
	late     atomic.Int64
}

func (m *watchfulMessages) New(message any) any {
	if m.returned.Load() {
		m.late.Add(1)
	}
	return m.plainMessages.New(message)
}

// A channel that is closed under a call fails it, and leaves nothing behind.
func TestClosingTheChannelEndsTheCall(t *testing.T) {
	for name, policy := range map[string]string{"hedged": threeHedges, "once": `{}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, always(script{after: time.Hour}), config(t, policy))
				defer s.close()
				time.AfterFunc(150*ms, func() { _ = s.cc.Close() })
				_, err := s.get(t.Context())
				if status.Code(err) != codes.Canceled || errors.Is(err, context.Canceled) || time.Since(s.backend.began) != 150*ms {
					t.Errorf("the call ended after %v with %v", time.Since(s.backend.began), err)
				}
			})
		})
	}
}

// With wait-for-ready attempts wait for a connection and hold their permits; without it
// they fail, and the policy goes on.
func TestWaitForReadyIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{}), config(t, fourRetries), unjittered)
		defer s.close()
		ready := time.Now().Add(time.Minute)
		cc, err := grpc.NewClient("passthrough:///backend", append(s.client.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if time.Now().Before(ready) {
					return nil, errors.New("not yet")
				}
				return s.backend.listener.DialContext(ctx)
			}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cc.Close() }()
		began := time.Now()
		if err := cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue)); status.Code(err) != codes.Unavailable {
			t.Errorf("without waiting the call ended with %v", err)
		}
		if d := time.Since(began); d < 600*ms || d > 10*time.Second { // three back-offs, and some of the channel's
			t.Errorf("four attempts took %v", d)
		}
		if err := cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), grpc.WaitForReady(true)); err != nil {
			t.Errorf("the call that waited ended with %v", err)
		}
	})
}
