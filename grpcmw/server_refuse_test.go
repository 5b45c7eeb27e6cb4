package grpcmw_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A refusal is a status with a short constant message and one trailer, in whole
// milliseconds; no handler has seen the call.
func TestServerRefusalIsShortAndConstant(t *testing.T) {
	unset := time.Duration(math.MinInt64)
	for _, method := range allKinds {
		for after, want := range map[time.Duration]string{
			unset: "1000", 0: "0", 1: "1", ms: "1", ms + 1: "2", 90 * time.Second: "90000", math.MaxInt32 * ms: "2147483647",
			-1: "-1", -time.Hour: "-1",
		} {
			for code, option := range map[codes.Code]grpcmw.ServerOption{
				codes.ResourceExhausted: grpcmw.RefusalCode(codes.ResourceExhausted), codes.Unavailable: grpcmw.RefusalCode(codes.Unavailable),
			} {
				synctest.Test(t, func(t *testing.T) {
					options := []any{option}
					if after != unset {
						options = append(options, grpcmw.Pushback(after))
					}
					l := fixedLimiter(t, 1, 0)
					unreached := func(context.Context, string) error {
						t.Error("a call was served that should have been refused")
						return nil
					}
					inBubble(t, l, unreached, func(t *testing.T, s *shop) {
						held, _ := l.TryAcquire(limiter.Bypass)
						defer held.Release(permit.Ignored)
						var header, trailer metadata.MD
						st := status.Convert(s.call(t.Context(), method, grpc.Header(&header), grpc.Trailer(&trailer)))
						if st.Code() != code || st.Message() != "overloaded, try again later" || len(st.Details()) > 0 {
							t.Errorf("%s: %v", method, st)
						}
						delete(trailer, "content-type") // of a response that is trailers only
						if wantTrailer := (metadata.MD{"grpc-retry-pushback-ms": {want}}); !reflect.DeepEqual(trailer, wantTrailer) || len(header) > 0 {
							t.Errorf("%s, pushback %v: header %v, trailer %v, want %v", method, after, header, trailer, wantTrailer)
						}
					}, options...)
				})
			}
		}
	}
}

// Field case B60: every reason for a refusal is told apart by who stands outside, and counted
// as what it is.
func TestServerRefusalsAreToldApart(t *testing.T) {
	type refusal struct {
		limit   limiter.Config // Algorithm is set to a fixed limit of 1, which is taken
		extra   bool
		closes  func(context.Context, *shop) error
		server  time.Duration // deadline of an interceptor outside
		cancel  time.Duration
		after   time.Duration // when it is refused
		code    codes.Code
		is      error
		counted grpcmw.Refusals
	}
	for name, row := range map[string]refusal{
		"no room":           {code: codes.ResourceExhausted, is: limiter.ErrLimitExceeded, counted: grpcmw.Refusals{Full: 1}},
		"waited too long":   {limit: limiter.Config{MaxWaiting: 1, MaxWait: time.Second}, after: time.Second, code: codes.ResourceExhausted, is: limiter.ErrLimitExceeded, counted: grpcmw.Refusals{Full: 1}},
		"a hedge":           {limit: limiter.Config{MaxWaiting: 1}, extra: true, code: codes.Unavailable, is: limiter.ErrLimitExceeded, counted: grpcmw.Refusals{ExtraFull: 1}},
		"the server's time": {limit: limiter.Config{MaxWaiting: 1}, server: time.Second, after: time.Second, code: codes.DeadlineExceeded, is: context.DeadlineExceeded, counted: grpcmw.Refusals{Expired: 1}},
		"the client left":   {limit: limiter.Config{MaxWaiting: 1}, cancel: time.Second, after: time.Second, code: codes.Canceled, is: context.Canceled, counted: grpcmw.Refusals{Gone: 1}},
		"closed": {code: codes.Unavailable, is: limiter.ErrClosed, counted: grpcmw.Refusals{Closed: 1},
			closes: func(ctx context.Context, s *shop) error { return s.server.Close(ctx) }},
		"the limiter is closed": {code: codes.Unavailable, is: limiter.ErrClosed, counted: grpcmw.Refusals{Closed: 1},
			closes: func(ctx context.Context, s *shop) error {
				ctx, cancel := ended(ctx)
				defer cancel()
				_ = s.limiter.Close(ctx) // its permit is out
				return nil
			}},
	} {
		for _, method := range allKinds {
			t.Run(name+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var err error
					if row.limit.Algorithm, err = gradient.NewFixed(1); err != nil {
						t.Fatal(err)
					}
					l, err := limiter.New(row.limit)
					if err != nil {
						t.Fatal(err)
					}
					s := open(t, l, answerAtOnce, deadlineOutside(row.server))
					s.serve(s.backend.listener)
					defer func() {
						_ = s.cc.Close() // nothing can fail here
						s.backend.server.Stop()
					}()
					held, _ := l.TryAcquire(limiter.Bypass)
					defer held.Release(permit.Ignored)
					if row.closes != nil {
						if err := row.closes(t.Context(), s); err != nil {
							t.Fatal(err)
						}
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if row.cancel > 0 {
						time.AfterFunc(row.cancel, cancel)
					}
					if row.extra {
						ctx = metadata.AppendToOutgoingContext(ctx, "grpc-previous-rpc-attempts", "1")
					}
					start := time.Now()
					var trailer metadata.MD
					if err := s.call(ctx, method, grpc.Trailer(&trailer)); status.Code(err) != row.code || time.Since(start) != row.after {
						t.Errorf("the client got %v after %v, want %v after %v", err, time.Since(start), row.code, row.after)
					}
					// Whoever has left is told nothing, and who should go elsewhere need not wait.
					if asked := len(trailer["grpc-retry-pushback-ms"]) > 0; asked != (row.is == limiter.ErrLimitExceeded || row.server > 0) {
						t.Errorf("pushback %v", trailer)
					}
					synctest.Wait()
					if len(s.refused) != 1 {
						t.Fatalf("outside saw %v", s.refused)
					}
					for _, sentinel := range []error{limiter.ErrLimitExceeded, limiter.ErrClosed, context.Canceled, context.DeadlineExceeded} {
						if got := errors.Is(s.refused[0], sentinel); got != (sentinel == row.is) { //nolint:errorlint // the same value
							t.Errorf("outside saw %v, which is %v: %v", s.refused[0], sentinel, got)
						}
					}
					if code := status.Code(s.refused[0]); code != row.code {
						t.Errorf("outside saw the code %v, want %v", code, row.code)
					}
					if got := s.server.Stats(); got.Refused != row.counted || got.Inside != 0 || got.Limiter.Ledger.Waiting != 0 {
						t.Errorf("%+v, want %+v", got, row.counted)
					}
				})
			})
		}
	}
	synctest.Test(t, func(t *testing.T) { // the share, with all permits free
		inBubble(t, fixedLimiter(t, 1, 0), answerAtOnce, func(t *testing.T, s *shop) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "grpc-previous-rpc-attempts", "1")
			for _, method := range allKinds {
				if err := s.call(ctx, method); status.Code(err) != codes.Unavailable {
					t.Errorf("%s: %v", method, err)
				}
			}
			if got := s.server.Stats().Refused; got != (grpcmw.Refusals{ExtraShare: 4}) {
				t.Errorf("refused %+v", got)
			}
		}, grpcmw.MaxExtra(0))
	})
}

// retrying is a channel with grpc-go's own retries, four attempts at most, of refusals.
func retrying() grpc.DialOption {
	return grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4,
		"initialBackoff": "0.010s", "maxBackoff": "0.010s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`)
}

// R4: grpc-go's own retries obey the pushback to the millisecond, and stop where it says so.
func TestChannelsObeyThePushback(t *testing.T) {
	for _, method := range allKinds {
		for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable} {
			for after, want := range map[time.Duration][]time.Duration{
				1234 * ms: {0, 1234 * ms, 2468 * ms, 3702 * ms},
				0:         {0, 0, 0, 0},
				-1:        {0},
			} {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					var came []time.Duration
					note := func(context.Context, string) func() { came = append(came, time.Since(start)); return func() {} }
					l := fixedLimiter(t, 1, 0)
					inBubble(t, l, answerAtOnce, func(t *testing.T, s *shop) {
						held, _ := l.TryAcquire(limiter.Bypass)
						time.AfterFunc(3*time.Second, func() { held.Release(permit.Ignored) })
						err := s.call(t.Context(), method)
						synctest.Wait()
						if !slices.Equal(came, want) {
							t.Errorf("%s, %v, pushback %v: the attempts came after %v, want %v", method, code, after, came, want)
						}
						last := code
						if after == 0 {
							last = codes.Unavailable // that of a retry
						}
						if served := after > ms; (err == nil) != served || !served && status.Code(err) != last {
							t.Errorf("%s, %v, pushback %v: %v", method, code, after, err)
						}
						time.Sleep(4 * time.Second)
					}, grpcmw.Pushback(after), grpcmw.RefusalCode(code), retrying(), around(note))
				})
			}
		}
	}
}

// A client that leaves while its call waits gives up its place at once: the call behind is
// served next, and its own never.
func TestServerForgetsWhoLeavesTheQueue(t *testing.T) {
	for _, method := range allKinds {
		synctest.Test(t, func(t *testing.T) {
			var order []string
			l := fixedLimiter(t, 1, 2)
			serve := func(ctx context.Context, _ string) error {
				order = append(order, metadata.ValueFromIncomingContext(ctx, "name")...)
				time.Sleep(time.Second)
				return nil
			}
			inBubble(t, l, serve, func(t *testing.T, s *shop) {
				begin := func(ctx context.Context, name string) {
					go func() { _ = s.call(metadata.AppendToOutgoingContext(ctx, "name", name), method) }()
					synctest.Wait()
				}
				begin(t.Context(), "first")
				ctx, cancel := context.WithCancel(t.Context())
				begin(ctx, "leaves")
				begin(t.Context(), "stays")
				time.Sleep(300 * ms)
				cancel()
				synctest.Wait()
				if got := s.server.Stats(); got.Inside != 2 || got.Limiter.Ledger.Waiting != 1 || got.Refused != (grpcmw.Refusals{Gone: 1}) {
					t.Errorf("%s: %+v", method, got)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if want := []string{"first", "stays"}; !slices.Equal(order, want) {
					t.Errorf("%s: served %v, want %v", method, order, want)
				}
			})
		})
	}
}

// A call that would have to wait beyond its client's deadline is refused at once.
func TestServerQueueKnowsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		algorithm, err := gradient.New(gradient.Config{Initial: 1, Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: 1})
		if err != nil {
			t.Fatal(err)
		}
		tenth := func(context.Context, string) error { time.Sleep(100 * ms); return nil }
		inBubble(t, l, tenth, func(t *testing.T, s *shop) {
			for l.Stats().Decisions < 2 {
				_ = s.call(t.Context(), get)
			}
			for allowed, want := range map[time.Duration]codes.Code{150 * ms: codes.ResourceExhausted, 250 * ms: codes.OK} {
				go func() { _ = s.call(t.Context(), get) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), allowed)
				start := time.Now()
				err := s.call(ctx, get)
				if took := time.Since(start); status.Code(err) != want || want != codes.OK && took != 0 {
					t.Errorf("%v: %v after %v, want %v", allowed, err, took, want)
				}
				cancel()
				time.Sleep(time.Second)
			}
			if got := l.Stats().Rejected; got != (limiter.Rejections{Deadline: 1}) {
				t.Errorf("rejected %+v", got)
			}
		})
	})
}

// transportStream is what grpc-go gives an interceptor to write trailers with.
type transportStream struct{ trailers int }

func (*transportStream) Method() string                 { return get }
func (*transportStream) SetHeader(metadata.MD) error    { return nil }
func (*transportStream) SendHeader(metadata.MD) error   { return nil }
func (x *transportStream) SetTrailer(metadata.MD) error { x.trailers++; return nil }

// nullStream is a stream of which only the context and the trailer matter.
type nullStream struct {
	grpc.ServerStream
	ctx      context.Context
	trailers int
}

func (s *nullStream) Context() context.Context { return s.ctx }
func (s *nullStream) SetTrailer(metadata.MD)   { s.trailers++ }

// A refusal under overload costs no memory, and neither does a call that is let in; but for
// the trailer of a stream, which an interceptor outside may keep and change.
func TestServerAllocatesNothing(t *testing.T) {
	for _, full := range []bool{true, false} {
		l := fixedLimiter(t, 1, 0)
		if full {
			held, _ := l.TryAcquire(limiter.Bypass)
			defer held.Release(permit.Ignored)
		}
		s, err := grpcmw.NewServer(grpcmw.ServerLimiter(l))
		if err != nil {
			t.Fatal(err)
		}
		var calls transportStream
		ctx := grpc.NewContextWithServerTransportStream(t.Context(), &calls)
		streams := &nullStream{ctx: ctx}
		unary, stream := s.UnaryInterceptor(), s.StreamInterceptor()
		unaryInfo, streamInfo := &grpc.UnaryServerInfo{FullMethod: get}, &grpc.StreamServerInfo{FullMethod: list}
		handler := func(context.Context, any) (any, error) { return nil, nil }
		streamHandler := func(any, grpc.ServerStream) error { return nil }
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := unary(ctx, nil, unaryInfo, handler); (err != nil) != full {
				t.Fatal(err)
			}
			if err := stream(nil, streams, streamInfo, streamHandler); (err != nil) != full {
				t.Fatal(err)
			}
		})
		if allocs > 0 && !full || allocs > 3 {
			t.Errorf("full: %v: two calls allocate %v times", full, allocs)
		}
		if told := calls.trailers > 0 && streams.trailers > 0; told != full {
			t.Errorf("full: %v: %d and %d trailers were set", full, calls.trailers, streams.trailers)
		}
	}
}
