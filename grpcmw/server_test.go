package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

func answerAtOnce(context.Context, string) error { return nil }

// second is work that takes a second.
func second(context.Context, string) error {
	time.Sleep(time.Second)
	return nil
}

// Options that make no sense are named, with their value.
func TestServerOptionsAreChecked(t *testing.T) {
	for want, opts := range map[string][]grpcmw.ServerOption{
		"grpcmw: option 1 is nil":                                             {grpcmw.AcceptReports(), nil},
		"grpcmw: ServerLimiter: the limiter is nil":                           {grpcmw.ServerLimiter(nil)},
		"grpcmw: MaxExtra -0.1 is not from 0 to 1":                            {grpcmw.MaxExtra(-0.1)},
		"grpcmw: MaxExtra 1.1 is not from 0 to 1":                             {grpcmw.MaxExtra(1.1)},
		"grpcmw: MaxExtra NaN is not from 0 to 1":                             {grpcmw.MaxExtra(math.NaN())},
		"grpcmw: Pushback 596h31m23.648s exceeds 596h31m23.647s":              {grpcmw.Pushback(1 << 31 * ms)},
		"grpcmw: Exempt: the function is nil":                                 {grpcmw.Exempt(nil)},
		"grpcmw: RefusalCode OK is neither ResourceExhausted nor Unavailable": {grpcmw.RefusalCode(codes.OK)},
	} {
		s, err := grpcmw.NewServer(opts...)
		if s != nil || err == nil || err.Error() != want {
			t.Errorf("%v, error %q, want %q", s, err, want)
		}
	}
}

// What the end of a call teaches the limit. Field case B65: however a handler ends, one
// permit comes back, and a panic goes on with its value.
func TestServerLearnsFromEachEnd(t *testing.T) {
	say := func(o permit.Outcome) work {
		return func(ctx context.Context, _ string) error {
			if !grpcmw.Report(ctx, o) {
				t.Errorf("the report of %v was not accepted", o)
			}
			return nil
		}
	}
	answer := func(err error) work { return func(context.Context, string) error { return err } }
	until := func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}
	errBoom := errors.New("boom")
	var nilMap map[string]int
	for name, row := range map[string]struct {
		work         work
		server       time.Duration // deadline that an interceptor outside sets
		client       time.Duration // deadline of the client
		cancel       time.Duration // when the client cancels
		want, stream permit.Outcome
		panics       any
	}{
		"returns":                {work: answerAtOnce, want: permit.Success},
		"an answer by a code":    {work: answer(status.Error(codes.NotFound, "")), want: permit.Success},
		"an error of no code":    {work: answer(errBoom), want: permit.Success},
		"a deadline of its own":  {work: answer(status.Error(codes.DeadlineExceeded, "")), want: permit.Success},
		"a quota":                {work: answer(status.Error(codes.ResourceExhausted, "")), want: permit.Ignored},
		"a dependency":           {work: answer(status.Error(codes.Unavailable, "")), want: permit.Ignored},
		"a dependency, wrapped":  {work: answer(fmt.Errorf("stock: %w", status.Error(codes.Unavailable, ""))), want: permit.Ignored},
		"the server's time":      {work: until, server: time.Second, want: permit.Expired},
		"the server's, not all":  {work: until, server: time.Second, client: time.Minute, want: permit.Expired},
		"the client's time":      {work: until, client: time.Second, want: permit.Canceled},
		"the client's, not all":  {work: until, server: time.Minute, client: time.Second, want: permit.Canceled},
		"the client has gone":    {work: until, cancel: time.Second, want: permit.Canceled},
		"gone, but it went well": {work: second, cancel: 500 * ms, want: permit.Canceled},
		"panics":                 {work: func(context.Context, string) error { panic("boom") }, want: permit.Ignored, panics: "boom"},
		"panics with an error":   {work: func(context.Context, string) error { panic(errBoom) }, want: permit.Ignored, panics: errBoom},
		"panics by the runtime": {work: func(context.Context, string) error { nilMap["boom"]++; return nil }, want: permit.Ignored,
			panics: "assignment to entry in nil map"},
		"exits": {work: func(context.Context, string) error { runtime.Goexit(); return nil }, cancel: time.Second, want: permit.Ignored},

		"reports Ignored":  {work: say(permit.Ignored), want: permit.Ignored},
		"reports Overload": {work: say(permit.Overload), want: permit.Overload, stream: permit.Overload},
		"reports Success":  {work: say(permit.Success), want: permit.Success, stream: permit.Success},
		"reports twice": {want: permit.Overload, stream: permit.Overload, work: func(ctx context.Context, method string) error {
			_ = say(permit.Canceled)(ctx, method)
			return say(permit.Overload)(ctx, method)
		}},
		"reports and panics": {want: permit.Overload, stream: permit.Overload, panics: "boom", work: func(ctx context.Context, method string) error {
			_ = say(permit.Overload)(ctx, method)
			panic("boom")
		}},
	} {
		for _, method := range allKinds {
			t.Run(name+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := fixedLimiter(t, 1, 0)
					inBubble(t, l, row.work, func(t *testing.T, s *shop) {
						for range 100 {
							ctx, cancel := context.WithCancel(t.Context())
							if row.client > 0 {
								ctx, cancel = context.WithTimeout(ctx, row.client)
							}
							if row.cancel > 0 {
								time.AfterFunc(row.cancel, cancel)
							}
							_ = s.call(ctx, method) // what it returns is asked below
							time.Sleep(time.Second) // the handler may go on
							cancel()
						}
						synctest.Wait()
						taught := row.want
						if method != get {
							taught = row.stream
						}
						var want [permit.NumOutcomes]uint64
						want[taught] = 100
						if got := l.Stats().Ledger.Released; got != want {
							t.Errorf("released %v, want %v", got, want)
						}
						if row.panics == nil && len(s.recovered) > 0 || row.panics != nil && len(s.recovered) != 100 {
							t.Errorf("%d panics came out, the first: %v", len(s.recovered), s.recovered[:min(1, len(s.recovered))])
						}
						for _, v := range s.recovered {
							if err, ok := v.(runtime.Error); ok {
								v = err.Error()
							}
							if v != row.panics {
								t.Fatalf("recovered %v, want %v", v, row.panics)
							}
						}
					}, grpcmw.AcceptReports(), deadlineOutside(row.server))
				})
			})
		}
	}
}

// deadlineOutside are interceptors of a server that bound its calls.
func deadlineOutside(d time.Duration) []grpc.ServerOption {
	if d == 0 {
		return nil
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return handler(ctx, r)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			ctx, cancel := context.WithTimeout(ss.Context(), d)
			defer cancel()
			return handler(srv, streamWith{ss, ctx})
		}),
	}
}

type streamWith struct {
	grpc.ServerStream
	ctx context.Context
}

func (s streamWith) Context() context.Context { return s.ctx }

// Nothing can be reported once the handler has returned, without AcceptReports, or of an
// outcome that is none. Without AcceptReports handlers get what the server gave.
func TestServerHearsReportsUntilTheEnd(t *testing.T) {
	for _, method := range allKinds {
		for _, accept := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				var outside, inside context.Context
				look := func(ctx context.Context, _ string) error {
					inside = ctx
					if grpcmw.Report(ctx, permit.NumOutcomes) {
						t.Error("an outcome that is none was accepted")
					}
					if got := grpcmw.Report(ctx, permit.Overload); got != accept {
						t.Errorf("%s: the report was accepted: %v, want %v", method, got, accept)
					}
					return nil
				}
				options := []any{around(func(ctx context.Context, _ string) func() { outside = ctx; return func() {} })}
				if accept {
					options = append(options, grpcmw.AcceptReports())
				}
				l := fixedLimiter(t, 1, 0)
				inBubble(t, l, look, func(t *testing.T, s *shop) {
					if err := s.call(t.Context(), method); err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if grpcmw.Report(inside, permit.Ignored) {
						t.Error("a report was accepted after the handler had returned")
					}
					if got := l.Stats().Ledger.Released[permit.Overload] == 1; got != accept {
						t.Errorf("%s: the report was heard: %v, want %v", method, got, accept)
					}
					if same := outside == inside; same == accept {
						t.Errorf("%s: the context is the server's: %v, with AcceptReports: %v", method, same, accept)
					}
				}, options...)
			})
		}
	}
}

// samples is a limit that remembers what it is told.
type samples struct{ latencies []time.Duration }

func (*samples) EstimatedLimit() int { return 1 }

func (s *samples) OnSample(_, rtt int64, _ int, _ bool) {
	s.latencies = append(s.latencies, time.Duration(rtt))
}

// The latency that the limit learns from is that of the handler: the wait for the permit is
// not in it.
func TestServerLatencyIsFromGrantToReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		learnt := &samples{}
		algorithm, err := gradient.FromLimit(learnt)
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: 1})
		if err != nil {
			t.Fatal(err)
		}
		inBubble(t, l, second, func(t *testing.T, s *shop) {
			for range 2 {
				go func() { _ = s.call(t.Context(), get) }()
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if want := []time.Duration{time.Second, time.Second}; !reflect.DeepEqual(learnt.latencies, want) {
				t.Errorf("latencies %v, want %v", learnt.latencies, want)
			}
		})
	})
}

// Without options 20 calls run at first and 64 wait, each for 100 ms at most, and the newest
// is served first once the oldest has waited for 50 ms.
func TestServerDefaultQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, queue = 20, 64
		end := make(chan struct{})
		order := make(chan int, limit+queue)
		s, err := grpcmw.NewServer()
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan codes.Code, limit+queue+1)
		for i := range limit + queue + 1 {
			go func() {
				_, err := s.UnaryInterceptor()(t.Context(), i, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) {
					order <- i
					<-end
					return nil, nil
				})
				results <- status.Code(err)
			}()
			synctest.Wait()
		}
		if got := s.Stats(); got.Inside != limit+queue || got.Refused.Full != 1 || got.Limiter.Ledger.Waiting != queue {
			t.Errorf("%+v", got)
		}
		time.Sleep(60 * ms)
		end <- struct{}{}
		synctest.Wait()
		for range limit {
			<-order
		}
		if got := <-order; got != limit+queue-1 || len(order) > 0 {
			t.Errorf("after 60 ms call %d was served, and %d more", got, len(order))
		}
		time.Sleep(40 * ms)
		synctest.Wait()
		close(end)
		synctest.Wait()
		answered := make(map[codes.Code]int)
		for len(results) > 0 {
			answered[<-results]++
		}
		if want := map[codes.Code]int{codes.OK: limit + 1, codes.ResourceExhausted: queue}; !reflect.DeepEqual(answered, want) {
			t.Errorf("answered %v, want %v", answered, want)
		}
		if got := s.Stats(); got.Inside != 0 || got.Refused.Full != queue || got.Limiter.Name != "grpc server" {
			t.Errorf("%+v", got)
		}
	})
}

// Exempt calls pass whatever the limit and Close say, and teach nothing: gRPC's own
// health checks and reflection, with streams that stay open, and those that an option names.
func TestServerExemptNeedsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixedLimiter(t, 1, 0)
		s := open(t, l, answerAtOnce, grpcmw.Exempt(func(method string) bool { return method == list || method == get }))
		healthpb.RegisterHealthServer(s.backend.server, health.NewServer())
		reflection.Register(s.backend.server)
		s.serve(s.backend.listener)
		defer s.close()
		held, _ := l.TryAcquire(limiter.Bypass)
		for range 2 {
			for _, method := range allKinds {
				exempt := method == list || method == get
				if err := s.call(t.Context(), method); (err == nil) != exempt {
					t.Errorf("%s: %v", method, err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			watch, err := healthpb.NewHealthClient(s.cc).Watch(ctx, &healthpb.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := watch.Recv(); err != nil {
				t.Errorf("watching: %v", err)
			}
			if _, err := healthpb.NewHealthClient(s.cc).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
				t.Errorf("checking: %v", err)
			}
			explore, err := reflectionpb.NewServerReflectionClient(s.cc).ServerReflectionInfo(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_ = explore.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
			if _, err := explore.Recv(); err != nil {
				t.Errorf("exploring: %v", err)
			}
			if err := s.server.Close(t.Context()); err != nil {
				t.Error(err)
			}
			cancel()
		}
		old, err := s.cc.NewStream(t.Context(), descs[chat], "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
		if err != nil {
			t.Fatal(err)
		}
		if err := old.CloseSend(); err != nil {
			t.Error(err)
		}
		if err := old.RecvMsg(new(reflectionpb.ServerReflectionResponse)); !errors.Is(err, io.EOF) {
			t.Errorf("exploring the old way: %v", err)
		}
		held.Release(permit.Ignored)
		if got := s.server.Stats(); got.Exempt != 11 || got.Limiter.Ledger.Granted != 1 || got.Refused != (grpcmw.Refusals{Full: 2, Closed: 2}) {
			t.Errorf("%+v", got)
		}
	})
}

// Close refuses who comes later, serves who came before, and waits for them; it leaves a
// limiter that was given alone.
func TestServerCloseWaitsForHandlers(t *testing.T) {
	for _, method := range allKinds {
		synctest.Test(t, func(t *testing.T) {
			l := fixedLimiter(t, 1, 1)
			inBubble(t, l, second, func(t *testing.T, s *shop) {
				start := time.Now()
				results := make(chan error, 2)
				for range 2 { // the second waits for the first
					go func() { results <- s.call(t.Context(), method) }()
					synctest.Wait()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
				defer cancel()
				if err := s.server.Close(ctx); err != context.DeadlineExceeded || time.Since(start) != 500*ms { //nolint:errorlint // bare is what is asked
					t.Errorf("Close returned %v after %v", err, time.Since(start))
				}
				if err := s.call(t.Context(), method); status.Code(err) != codes.Unavailable {
					t.Errorf("a call after Close: %v", err)
				}
				if err := s.server.Close(t.Context()); err != nil || time.Since(start) != 2*time.Second || l.InFlight() != 0 {
					t.Errorf("Close returned %v after %v with %d in flight", err, time.Since(start), l.InFlight())
				}
				for range 2 {
					if err := <-results; err != nil {
						t.Errorf("a call from before Close: %v", err)
					}
				}
				if err := s.server.Close(ctx); err != nil {
					t.Errorf("Close at rest: %v", err)
				}
				if got := s.server.Stats().Refused; got != (grpcmw.Refusals{Closed: 1}) {
					t.Errorf("refused %+v", got)
				}
			})
		})
	}
}

// A handler that does not look at its context keeps its permit when its client has gone: its
// place is not given away before it has returned.
func TestServerPermitOutlivesTheClient(t *testing.T) {
	for _, method := range allKinds {
		synctest.Test(t, func(t *testing.T) {
			l := fixedLimiter(t, 1, 0)
			inBubble(t, l, second, func(t *testing.T, s *shop) {
				ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
				defer cancel()
				if err := s.call(ctx, method); status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("%s: %v", method, err)
				}
				for _, want := range []codes.Code{codes.ResourceExhausted, codes.OK} {
					if err := s.call(t.Context(), method); status.Code(err) != want {
						t.Errorf("%s: %v, want %v", method, err, want)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}
