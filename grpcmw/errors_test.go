package grpcmw_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// B60: each way for a call to end without an answer is told apart from the others, for calls
// that are hedged, calls that are sent once, and streams.
func TestEveryEndIsToldApart(t *testing.T) {
	all := []error{limiter.ErrLimitExceeded, limiter.ErrClosed, context.Canceled, context.DeadlineExceeded, hedgedlimit.ErrLost}
	for _, c := range []struct {
		name   string
		script script
		full   bool // the only permit is out
		close  bool // the client is closed before
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		code   codes.Code
		is     error
	}{
		{name: "limit", full: true, code: codes.ResourceExhausted, is: limiter.ErrLimitExceeded},
		{name: "closed", close: true, code: codes.Unavailable, is: limiter.ErrClosed},
		{name: "canceled before", ctx: ended, code: codes.Canceled, is: context.Canceled},
		{name: "canceled while the limit is full", full: true, ctx: ended, code: codes.Canceled, is: context.Canceled},
		{name: "canceled on the way", script: script{after: time.Hour}, ctx: canceledAfter(50 * ms), code: codes.Canceled, is: context.Canceled},
		{name: "deadline on the way", script: script{after: time.Hour}, ctx: deadlineAfter(50 * ms), code: codes.DeadlineExceeded, is: context.DeadlineExceeded},
		{name: "canceled by the server", script: script{code: codes.Canceled}, code: codes.Canceled},
		{name: "deadline of the server", script: script{code: codes.DeadlineExceeded}, code: codes.DeadlineExceeded},
		{name: "unavailable", script: script{code: codes.Unavailable}, code: codes.Unavailable},
	} {
		for kind, policy := range map[string]string{"once": `{}`, "hedged": threeHedges, "retried": fourRetries} {
			for _, method := range []string{get, list} {
				t.Run(c.name+" "+kind+" "+method, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newServiceOf(t, 1, always(c.script), config(t, policy))
						defer s.close()
						if c.full {
							p, _ := s.limiter.TryAcquire(limiter.Primary)
							defer p.Release(permit.Ignored)
						}
						if c.close {
							_ = s.client.Close(t.Context())
						}
						ctx := t.Context()
						if c.ctx != nil {
							var cancel context.CancelFunc
							ctx, cancel = c.ctx(ctx)
							defer cancel()
						}
						told := 0
						finish := grpc.OnFinish(func(error) { told++ })
						var err error
						if method == list {
							_, err = s.receive(ctx, list, finish)
						} else {
							_, err = s.get(ctx, finish)
						}
						if status.Code(err) != c.code {
							t.Errorf("the error is %v; want %v", err, c.code)
						}
						for _, sentinel := range all {
							// A stream that is sent once is gRPC's own, and so is its error.
							if want := sentinel == c.is; errors.Is(err, sentinel) != want && !(want && kind != "retried" && method == list && c.script.after > 0) { //nolint:errorlint // the same value
								t.Errorf("errors.Is(%v, %v) is not %t", err, sentinel, want)
							}
						}
						synctest.Wait()
						if told != 1 {
							t.Errorf("OnFinish was called %d times", told)
						}
					})
				})
			}
		}
	}
}

func ended(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}

func canceledAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
}

func deadlineAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

// A refusal under overload costs no memory.
func TestRefusalAllocatesNothing(t *testing.T) {
	l, err := limiter.New(limiter.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := l.TryAcquire(limiter.Primary); !ok {
			break
		}
	}
	c, err := grpcmw.NewClient(grpcmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Limiter = l
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	interceptor, request, reply := c.UnaryInterceptor(), wrapperspb.Bytes(nil), wrapperspb.Bytes(nil)
	invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	ctx := context.Background()
	allocs := testing.AllocsPerRun(100, func() {
		if err := interceptor(ctx, get, request, reply, nil, invoker); status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("a refusal allocates %v times", allocs)
	}
}

// What an answer teaches the limit.
func TestOutcomesOfAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		script script
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		size   int // of the request
		want   permit.Outcome
	}{
		{name: "success", want: permit.Success},
		{name: "not found is an answer", script: script{code: codes.NotFound}, want: permit.Success},
		{name: "internal is an answer", script: script{code: codes.Internal}, want: permit.Success},
		{name: "unavailable", script: script{code: codes.Unavailable}, want: permit.Overload},
		{name: "resource exhausted", script: script{code: codes.ResourceExhausted}, want: permit.Overload},
		{name: "a request that is too long for the channel", size: 2000, want: permit.Ignored},
		{name: "deadline exceeded", script: script{code: codes.DeadlineExceeded}, want: permit.Expired},
		{name: "the caller's deadline", script: script{after: time.Hour}, ctx: deadlineAfter(50 * ms), want: permit.Expired},
		{name: "the caller's cancel", script: script{after: time.Hour}, ctx: canceledAfter(50 * ms), want: permit.Canceled},
		{name: "canceled by the server", script: script{code: codes.Canceled}, want: permit.Success},
	} {
		for kind, policy := range map[string]string{"once": `{}`, "hedged": threeHedges} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServiceOf(t, 1, always(c.script), config(t, policy)) // no room for a hedge
					defer s.close()
					ctx := t.Context()
					if c.ctx != nil {
						var cancel context.CancelFunc
						ctx, cancel = c.ctx(ctx)
						defer cancel()
					}
					_ = s.cc.Invoke(ctx, get, wrapperspb.Bytes(make([]byte, c.size)), new(wrapperspb.BytesValue), grpc.MaxCallSendMsgSize(1000))
					synctest.Wait()
					ledger := s.limiter.Stats().Ledger
					if ledger.Granted == 0 || ledger.Released[c.want] != ledger.Granted {
						t.Errorf("of %d permits the outcomes are %v; want %v", ledger.Granted, ledger.Released, c.want)
					}
				})
			})
		}
	}
}

// slowTimer is a context whose deadline has passed and whose own timer has not fired yet.
type slowTimer struct{ context.Context }

func (slowTimer) Err() error { return nil }

// An attempt that has ended by a deadline says so, by whichever clock it was: that of gRPC or
// of the server may be ahead of the context's, an interceptor inside may return the context's
// error bare, and DeadlineFraction's deadline is earlier than the caller's.
func TestDeadlinesAreFoundByTheirError(t *testing.T) {
	exceeded := status.Error(codes.DeadlineExceeded, "too late")
	for _, c := range []struct {
		name string
		ctx  func(context.Context) context.Context
		err  error // after 60 ms; nil is the context's, bare
		want permit.Outcome
	}{
		{name: "a timer that is late", ctx: func(ctx context.Context) context.Context { return slowTimer{ctx} }, err: exceeded, want: permit.Expired},
		{name: "a bare error", want: permit.Expired},
		{name: "a share of the time", err: exceeded, want: permit.Expired},
	} {
		for kind, policy := range map[string]string{"once": `{}`, "hedged": threeHedges} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					left := 60 * ms
					options := []any{config(t, policy)}
					if c.name == "a share of the time" {
						left, options = 120*ms, append(options, grpcmw.DeadlineFraction(0.5))
					}
					s := newServiceOf(t, 1, always(script{}), options...)
					defer s.close()
					ctx, cancel := context.WithTimeout(t.Context(), left)
					defer cancel()
					if c.ctx != nil {
						ctx = c.ctx(ctx)
					}
					invoker := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
						time.Sleep(60 * ms)
						if c.err == nil {
							<-ctx.Done()
							return ctx.Err()
						}
						return c.err
					}
					err := s.client.UnaryInterceptor()(ctx, get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), s.cc, invoker)
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(s.backend.began) != 60*ms {
						t.Errorf("after %v the error is %v", time.Since(s.backend.began), err)
					}
					synctest.Wait()
					if ledger := s.limiter.Stats().Ledger; ledger.Released[c.want] != 1 {
						t.Errorf("the outcomes are %v; want one %v", ledger.Released, c.want)
					}
				})
			})
		}
	}
}
