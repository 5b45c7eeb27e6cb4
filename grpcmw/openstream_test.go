package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// insideStreams is an interceptor that comes inside of a Client's.
func insideStreams(f func(ctx context.Context, open func() (grpc.ClientStream, error)) (grpc.ClientStream, error)) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return f(ctx, func() (grpc.ClientStream, error) { return streamer(ctx, desc, cc, method, opts...) })
	})
}

// slowFinish delays OnFinish: what gRPC does when an RPC has ended takes its time.
var slowFinish = grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	first := grpc.OnFinish(func(error) { time.Sleep(5 * ms) })
	return streamer(ctx, desc, cc, method, append([]grpc.CallOption{first}, opts...)...)
})

// K17: what the options point to is there, and is the caller's, when RecvMsg has returned
// the end, whichever goroutine of gRPC has noticed it first.
func TestOptionsAreWrittenWhenAStreamHasEnded(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, always(script{headers: true, after: time.Hour}), config(t, fourRetries), slowFinish)
			defer s.close()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*ms, cancel)
			var o outs
			if _, err := s.receive(ctx, list, o.options()...); status.Code(err) != codes.Canceled {
				t.Error(err)
			}
			if o.header["attempt"] == nil || o.trailer == nil || o.peer.Addr == nil {
				t.Errorf("the header is %v, the trailer %v, the peer %v", o.header, o.trailer, o.peer)
			}
			o.header, o.trailer = nil, nil
			time.Sleep(time.Second) // in which gRPC tells of the end
			if o.header != nil || o.trailer != nil || len(o.finished) != 1 {
				t.Errorf("later the header is %v, the trailer %v; OnFinish was told %v", o.header, o.trailer, o.finished)
			}
		})
	}
}

// An attempt without headers has failed, also if gRPC has yet to tell how.
func TestAttemptWithoutHeadersHasFailedThoughNobodyHasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := strings.Replace(fourRetries, `"UNAVAILABLE"`, `"DEADLINE_EXCEEDED"`, 1)
		s := newService(t, inTurn(script{after: time.Hour}, script{messages: 1}), config(t, policy), unjittered, slowFinish, grpcmw.DeadlineFraction(0.1))
		defer s.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := s.receive(ctx, list); err != nil || len(got) != 1 {
			t.Errorf("received %d messages, %v", len(got), err)
		}
		time.Sleep(time.Second) // in which gRPC tells of the end
		if n := len(s.backend.seen()); n != 2 {
			t.Errorf("%d attempts were sent; want 2", n)
		}
	})
}

// resumed opens a stream anew when it fails, and asks again.
type resumed struct {
	grpc.ClientStream
	open func() (grpc.ClientStream, error)
	ask  any
}

func (r *resumed) SendMsg(m any) error {
	r.ask = m
	return r.ClientStream.SendMsg(m)
}

func (r *resumed) RecvMsg(m any) error {
	for {
		err := r.ClientStream.RecvMsg(m)
		if status.Code(err) != codes.Unavailable {
			return err
		}
		if r.ClientStream, err = r.open(); err != nil {
			return err
		}
		if err := errors.Join(r.ClientStream.SendMsg(r.ask), r.ClientStream.CloseSend()); err != nil {
			return err
		}
	}
}

// L2: an interceptor inside may open one stream after the other. The permit is out, and the
// context lives, until the stream that it has returned has ended.
func TestStreamThatIsOpenedAgainInsideKeepsItsPermit(t *testing.T) {
	resume := insideStreams(func(_ context.Context, open func() (grpc.ClientStream, error)) (grpc.ClientStream, error) {
		stream, err := open()
		return &resumed{ClientStream: stream, open: open}, err
	})
	for kind, policy := range map[string]string{"once": `{}`, "with a timeout": `{"methodConfig": [{"name": [{}], "timeout": "9s"}]}`, "retried": fourRetries} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *service
				s = newService(t, func(n int, _ arrival) script {
					s.mustHold(1)
					return []script{{messages: 1, code: codes.Unavailable}, {messages: 2, idle: time.Second}}[n]
				}, config(t, policy), resume, grpcmw.OnChannelRetry(func(string) {}))
				defer s.close()
				told := 0
				got, err := s.receive(t.Context(), list, grpc.OnFinish(func(err error) {
					s.mustHold(0)
					told++
				}))
				if err != nil || len(got) != 3 || told != 1 {
					t.Errorf("received %d messages, then %v; OnFinish was called %d times", len(got), err, told)
				}
				s.mustHold(0)
			})
		})
	}
}

// madeUp is a stream that an interceptor inside answers by itself.
type madeUp struct {
	ctx context.Context
	md  metadata.MD
}

func (*madeUp) RecvMsg(any) error              { return io.EOF }
func (*madeUp) SendMsg(any) error              { return nil }
func (*madeUp) CloseSend() error               { return nil }
func (*madeUp) Trailer() metadata.MD           { return nil }
func (s *madeUp) Header() (metadata.MD, error) { return s.md, nil }
func (s *madeUp) Context() context.Context     { return s.ctx }

// L2: a stream that no RPC is below ends by what it returns, or with its context.
func TestStreamThatIsMadeUpInsideGivesItsPermitBack(t *testing.T) {
	for kind := range streamKinds {
		for name, md := range map[string]metadata.MD{"with headers": {}, "without": nil} {
			for _, received := range []bool{true, false} {
				t.Run(kind+" "+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						inside := insideStreams(func(ctx context.Context, _ func() (grpc.ClientStream, error)) (grpc.ClientStream, error) {
							return &madeUp{ctx, md}, nil
						})
						policy := map[string]string{"once": plainStreams, "retried": fourRetries, "hedged": hedgedStreams}[kind]
						s := newService(t, always(script{}), append([]any{config(t, policy), inside}, streamKinds[kind]...)...)
						defer s.close()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						var told []error
						stream, err := s.cc.NewStream(ctx, descs[list], list, grpc.OnFinish(func(err error) { told = append(told, err) }))
						if err != nil {
							t.Fatal(err)
						}
						_ = errors.Join(stream.SendMsg(wrapperspb.Bytes(nil)), stream.CloseSend())
						synctest.Wait()
						s.mustHold(1)
						want := codes.OK
						if received {
							if err := stream.RecvMsg(new(wrapperspb.BytesValue)); !errors.Is(err, io.EOF) {
								t.Error(err)
							}
						} else {
							cancel()
							want = codes.Canceled
						}
						synctest.Wait()
						s.mustHold(0)
						if len(told) != 1 || status.Code(told[0]) != want {
							t.Errorf("OnFinish was told %v; want %v", told, want)
						}
					})
				})
			}
		}
	}
}

// L2: what an interceptor inside has opened and then given up does not run on without a
// permit.
func TestStreamThatIsGivenUpInsideIsCancelled(t *testing.T) {
	for kind, policy := range map[string]string{"once": plainStreams, "retried": fourRetries} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				no := status.Error(codes.PermissionDenied, "no")
				s := newService(t, always(script{after: time.Hour}), config(t, policy), insideStreams(func(_ context.Context, open func() (grpc.ClientStream, error)) (grpc.ClientStream, error) {
					if _, err := open(); err != nil {
						return nil, err
					}
					return nil, no
				}))
				defer s.close()
				if _, err := s.receive(t.Context(), list); !errors.Is(err, no) {
					t.Error(err)
				}
				synctest.Wait()
				s.mustHold(0)
				if n := s.backend.now(); n != 0 {
					t.Errorf("%d handlers run", n)
				}
			})
		})
	}
}

// The context of a stream that may be sent again ends with it, as gRPC's does, and has the
// peer then.
func TestContextOfAStreamEndsWithIt(t *testing.T) {
	for _, code := range []codes.Code{codes.OK, codes.NotFound} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, always(script{after: ms, code: code}), config(t, fourRetries))
			defer s.close()
			stream, err := s.cc.NewStream(context.Background(), descs[list], list)
			if err != nil {
				t.Fatal(err)
			}
			_ = errors.Join(stream.SendMsg(wrapperspb.Bytes(nil)), stream.CloseSend())
			before := stream.Context()
			if err := stream.RecvMsg(new(wrapperspb.BytesValue)); !errors.Is(err, io.EOF) && status.Code(err) != code {
				t.Error(err)
			}
			if before.Err() == nil || stream.Context().Err() == nil {
				t.Errorf("%v: the context from before is %v, the one from after %v", code, before.Err(), stream.Context().Err())
			}
			if p, ok := peer.FromContext(stream.Context()); !ok || p.Addr == nil {
				t.Errorf("%v: no peer", code)
			}
			if code != codes.OK {
				stream.Trailer()["attempt"][0] = "mine"
				if got := stream.Trailer()["attempt"][0]; got != "0" {
					t.Errorf("the trailer has become %q", got)
				}
			}
		})
	}
}

// A stream that has not begun notices that its context has ended or that the channel is
// closed, as gRPC's own do, and tells OnFinish.
func TestStreamWithoutARequestEndsAsOthersDo(t *testing.T) {
	for _, c := range []struct {
		name    string
		receive bool
		end     func(*service, context.CancelFunc)
	}{
		{"context canceled", true, func(_ *service, cancel context.CancelFunc) { cancel() }},
		{"context canceled and nobody receives", false, func(_ *service, cancel context.CancelFunc) { cancel() }},
		{"channel closed", true, func(s *service, _ context.CancelFunc) { _ = s.cc.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, always(script{}), config(t, fourRetries))
				defer s.close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var told []error
				stream, err := s.cc.NewStream(ctx, descs[list], list, grpc.OnFinish(func(err error) { told = append(told, err) }))
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(10*ms, func() { c.end(s, cancel) })
				if c.receive {
					if err := stream.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != codes.Canceled || time.Since(s.backend.began) != 10*ms {
						t.Errorf("RecvMsg returned %v after %v", err, time.Since(s.backend.began))
					}
				}
				time.Sleep(20 * ms)
				synctest.Wait()
				if len(told) != 1 || status.Code(told[0]) != codes.Canceled {
					t.Errorf("OnFinish was told %v", told)
				}
				if err := stream.SendMsg(wrapperspb.Bytes(nil)); err != nil {
					t.Errorf("SendMsg returned %v; RecvMsg has told the end", err)
				}
			})
		})
	}
}

// A context that has ended already ends the stream while it is being made.
func TestStreamIsMadeWhileItsContextEnds(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, always(script{}), config(t, fourRetries))
			defer s.close()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			told := 0
			stream, err := s.cc.NewStream(ctx, descs[list], list, grpc.OnFinish(func(error) { told++ }))
			if err == nil {
				err = stream.RecvMsg(new(wrapperspb.BytesValue))
				synctest.Wait()
				if told != 1 {
					t.Errorf("OnFinish was told %d times", told)
				}
			}
			if status.Code(err) != codes.Canceled {
				t.Error(err)
			}
			s.mustHold(0)
		})
	}
}
