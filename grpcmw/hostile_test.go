package grpcmw_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// B07: an inner interceptor or the channel fails before there is anything that could tell of
// an end. A thousand such calls leave every permit where it was.
func TestFailureBeforeAnythingBeganKeepsNoPermit(t *testing.T) {
	broken := status.Error(codes.Unavailable, "broken")
	invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return broken }
	for name, streamer := range map[string]grpc.Streamer{
		"an error": func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, broken
		},
		"neither": func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, nil
		},
		"an error that was told too": func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			for _, o := range opts {
				if o, ok := o.(grpc.OnFinishCallOption); ok {
					o.OnFinish(broken)
					o.OnFinish(broken) // gRPC does so
				}
			}
			return nil, broken
		},
	} {
		for kind, policy := range map[string]string{"once": `{}`, "hedged": threeAtOnce, "retried": fourRetries} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServiceOf(t, 5, always(script{}), config(t, policy), grpcmw.HedgeStreams(list))
					defer s.close()
					want := codes.Unavailable
					if name == "neither" {
						want = codes.Internal
					}
					for range 1000 {
						err := s.client.UnaryInterceptor()(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), s.cc, invoker)
						if status.Code(err) != codes.Unavailable {
							t.Fatal(err)
						}
						for _, method := range []string{list, chat} {
							stream, err := s.client.StreamInterceptor()(t.Context(), descs[method], s.cc, method, streamer)
							if err == nil {
								err = errors.Join(stream.SendMsg(wrapperspb.Bytes(nil)), stream.CloseSend())
							}
							if err == nil {
								err = stream.RecvMsg(new(wrapperspb.BytesValue))
							}
							if status.Code(err) != want {
								t.Fatal(err)
							}
						}
						synctest.Wait()
						s.mustHold(0)
					}
				})
			})
		}
	}
}

// B65, K24: a panic or Goexit of what runs below keeps no permit, and the caller sees the
// very value.
func TestPanicKeepsNoPermit(t *testing.T) {
	for name, value := range map[string]any{"string": "boom", "error": errors.New("boom"), "abort": http.ErrAbortHandler} {
		for kind, policy := range map[string]string{"once": `{}`, "hedged": threeHedges, "retried": fourRetries} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServiceOf(t, 1, always(script{}), config(t, policy), grpcmw.HedgeStreams(list), quiet)
					defer s.close()
					invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { panic(value) }
					streamer := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
						panic(value)
					}
					for range 100 {
						mustPanic(t, value, func() {
							_ = s.client.UnaryInterceptor()(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), s.cc, invoker)
						})
						for _, method := range []string{list, collect} {
							mustPanic(t, value, func() {
								stream, err := s.client.StreamInterceptor()(t.Context(), descs[method], s.cc, method, streamer)
								if err == nil {
									_ = stream.SendMsg(wrapperspb.Bytes(nil))
									_ = stream.RecvMsg(new(wrapperspb.BytesValue))
								}
							})
						}
						synctest.Wait()
						s.mustHold(0)
					}
				})
			})
		}
	}
}

// L10: a panic of a stream that is open already, and of the caller's own hooks, too.
func TestPanicOfAHookKeepsNoPermit(t *testing.T) {
	for kind, policy := range map[string]string{"once": `{}`, "hedged": threeHedges} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServiceOf(t, 1, always(script{}), config(t, policy), quiet)
				defer s.close()
				mustPanic(t, "hook", func() {
					_, _ = s.get(t.Context(), grpc.OnFinish(func(error) { panic("hook") }))
				})
				synctest.Wait()
				s.mustHold(0)
			})
		})
	}
	t.Run("stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServiceOf(t, 1, always(script{code: codes.NotFound}), config(t, fourRetries), quiet)
			defer s.close()
			mustPanic(t, "hook", func() {
				_, _ = s.receive(t.Context(), list, grpc.OnFinish(func(error) { panic("hook") }))
			})
			synctest.Wait()
			s.mustHold(0)
		})
	})
	t.Run("messages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServiceOf(t, 1, always(script{}), config(t, threeHedges), quiet, grpcmw.WithMessages(badMessages{}))
			defer s.close()
			mustPanic(t, "copy", func() { _, _ = s.get(t.Context()) })
			synctest.Wait()
			s.mustHold(0)
		})
	})
}

// badMessages knows every type and can copy none.
type badMessages struct{}

func (badMessages) New(any) any       { return new(wrapperspb.BytesValue) }
func (badMessages) Copy(dst, src any) { panic("copy") }

// A Goexit ends an attempt, and the call with it, and not the caller.
func TestGoexitIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServiceOf(t, 1, always(script{}), config(t, threeHedges), grpcmw.HedgeStreams(list))
		defer s.close()
		invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			runtime.Goexit()
			return nil
		}
		err := s.client.UnaryInterceptor()(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), s.cc, invoker)
		if !errors.Is(err, hedgedlimit.ErrGoexit) || status.Code(err) != codes.Unknown {
			t.Error(err)
		}
		synctest.Wait()
		s.mustHold(0)
	})
}

// brokenStream is gRPC's stream until something panics in it.
type brokenStream struct{ grpc.ClientStream }

func (brokenStream) Header() (metadata.MD, error) { panic("header") }

// What was opened before a panic is ended, and its permit comes back then.
func TestPanicOfAnOpenStreamEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServiceOf(t, 1, always(script{after: time.Hour}), config(t, fourRetries), quiet)
		defer s.close()
		cc, err := grpc.NewClient("passthrough:///broken", append(append(s.client.DialOptions(), s.backend.dialOptions()...),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				stream, err := streamer(ctx, desc, cc, method, opts...)
				return brokenStream{stream}, err
			}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cc.Close() }()
		stream, err := cc.NewStream(t.Context(), descs[list], list)
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.SendMsg(wrapperspb.Bytes(nil))
		mustPanic(t, "header", func() { _ = stream.RecvMsg(new(wrapperspb.BytesValue)) })
		synctest.Wait()
		s.mustHold(0)
		if n := s.backend.now(); n != 0 {
			t.Errorf("%d attempts go on", n)
		}
	})
}

// quiet keeps panics that are expected out of the log.
var quiet = configured(func(c *hedgedlimit.Config) { c.OnPanic = func(any, []byte) {} })

func mustPanic(t *testing.T, want any, f func()) {
	t.Helper()
	defer func() {
		if got := recover(); got != want {
			t.Errorf("the panic has the value %v; want %v", got, want)
		}
	}()
	f()
}
