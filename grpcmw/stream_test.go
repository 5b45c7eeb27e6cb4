package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

const (
	hedgedStreams = `{"methodConfig": [{"name": [{}], "hedgingPolicy": {
		"maxAttempts": 3, "hedgingDelay": "0.1s", "nonFatalStatusCodes": ["UNAVAILABLE"]}}]}`
	plainStreams = `{}`
)

// streamKinds are the ways in which streams are sent.
var streamKinds = map[string][]any{
	"once":    {},
	"retried": {unjittered},
	"hedged":  {grpcmw.HedgeStreams(list)},
}

func streamService(t *testing.T, kind string, limit int, script func(int, arrival) script) *service {
	policy := map[string]string{"once": plainStreams, "retried": fourRetries, "hedged": hedgedStreams, "unasked": hedgedStreams}[kind]
	return newServiceOf(t, limit, script, append([]any{config(t, policy)}, streamKinds[kind]...)...)
}

// K18: a stream holds one permit from before it is opened until it has ended, in each of
// the ways in which gRPC lets it end, and tells the caller's OnFinish once. Service.close
// and the end of the bubble check that neither a permit nor a goroutine is left.
func TestStreamHoldsItsPermitUntilItHasEnded(t *testing.T) {
	type end struct {
		name   string
		method string
		script script
		end    func(*service, grpc.ClientStream, context.CancelFunc) error // returns what RecvMsg did
		code   codes.Code
	}
	var ends []end
	for _, method := range []string{list, collect, chat} {
		drain := func(s *service, stream grpc.ClientStream, _ context.CancelFunc) error {
			for {
				err := stream.RecvMsg(new(wrapperspb.BytesValue))
				if err != nil || !descs[method].ServerStreams { // the only reply is the end
					return err
				}
				s.mustHold(1)
			}
		}
		ends = append(ends,
			end{"received to the end", method, script{messages: 3}, func(s *service, stream grpc.ClientStream, c context.CancelFunc) error {
				_ = stream.CloseSend()
				return drain(s, stream, c)
			}, codes.OK},
			end{"failed by the server", method, script{after: ms, code: codes.NotFound}, drain, codes.NotFound},
			end{"context canceled", method, script{after: time.Hour}, func(s *service, stream grpc.ClientStream, c context.CancelFunc) error {
				time.AfterFunc(ms, c)
				return drain(s, stream, c)
			}, codes.Canceled},
			end{"context canceled and nobody receives", method, script{headers: true, after: time.Hour}, func(s *service, stream grpc.ClientStream, c context.CancelFunc) error {
				time.Sleep(ms)
				s.mustHold(1)
				c()
				return nil
			}, codes.Canceled},
			end{"channel closed", method, script{after: time.Hour}, func(s *service, stream grpc.ClientStream, c context.CancelFunc) error {
				time.AfterFunc(ms, func() { _ = s.cc.Close() })
				return drain(s, stream, c)
			}, codes.Canceled},
			end{"channel closed and nobody receives", method, script{headers: true, after: time.Hour}, func(s *service, stream grpc.ClientStream, c context.CancelFunc) error {
				time.Sleep(ms)
				s.mustHold(1)
				_ = s.cc.Close()
				return nil
			}, codes.Canceled},
			end{"header of a stream without", method, script{after: ms, code: codes.NotFound}, func(s *service, stream grpc.ClientStream, c context.CancelFunc) error {
				md, err := stream.Header()
				if md != nil || err != nil {
					s.t.Errorf("Header returned %v, %v", md, err)
				}
				return nil
			}, codes.NotFound},
			end{"request that cannot be sent", method, script{after: ms}, func(s *service, stream grpc.ClientStream, c context.CancelFunc) error {
				if err := stream.SendMsg(wrapperspb.Bytes(make([]byte, 2000))); err == nil {
					return stream.RecvMsg(new(wrapperspb.BytesValue))
				}
				return nil
			}, codes.ResourceExhausted},
		)
	}
	for _, e := range ends {
		for kind := range streamKinds {
			t.Run(e.name+" "+e.method+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := streamService(t, kind, 1, always(e.script))
					defer s.close()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var told []error
					stream, err := s.cc.NewStream(ctx, descs[e.method], e.method, grpc.MaxCallSendMsgSize(1000),
						grpc.OnFinish(func(err error) {
							told = append(told, err)
							// A stream that may be sent again has its end before its losers have.
							if n := s.limiter.InFlight(); n != 0 && kind == "once" {
								t.Errorf("%d permits are out when OnFinish is told", n)
							}
						}))
					if err != nil {
						t.Fatal(err)
					}
					if e.code != codes.ResourceExhausted {
						_ = stream.SendMsg(wrapperspb.Bytes([]byte("ask"))) // io.EOF if it has ended
						synctest.Wait()
						s.mustHold(1)
					}
					if err := e.end(s, stream, cancel); err != nil && !errors.Is(err, io.EOF) && status.Code(err) != e.code {
						t.Errorf("RecvMsg returned %v; want %v", err, e.code)
					}
					synctest.Wait()
					s.mustHold(0)
					if len(told) != 1 || status.Code(told[0]) != e.code {
						t.Errorf("OnFinish was told %v; want %v", told, e.code)
					}
				})
			})
		}
	}
}

// mustHold checks the permits that are out.
func (s *service) mustHold(want int) {
	s.t.Helper()
	if n := s.limiter.InFlight(); n != want {
		s.t.Errorf("%d permits are out; want %d", n, want)
	}
}

// B56: streams of every sort are limited.
func TestStreamsAreLimited(t *testing.T) {
	for kind := range streamKinds {
		for _, method := range []string{list, collect, chat} {
			t.Run(method+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := streamService(t, kind, 2, always(script{after: 90 * ms, messages: 1}))
					defer s.close()
					errs := make(chan error, 3)
					for range 3 {
						go func() {
							_, err := s.receive(t.Context(), method)
							errs <- err
						}()
					}
					refused := 0
					for range 3 {
						if status.Code(<-errs) == codes.ResourceExhausted {
							refused++
						}
					}
					if refused != 1 || s.backend.peak != 2 {
						t.Errorf("of 3 streams at a limit of 2, %d were refused and %d ran at a time", refused, s.backend.peak)
					}
				})
			})
		}
	}
}

// B56: however long a stream runs, it is no latency.
func TestStreamTeachesNothingButRefusals(t *testing.T) {
	for kind := range streamKinds {
		for code, want := range map[codes.Code]permit.Outcome{
			codes.OK: permit.Ignored, codes.NotFound: permit.Ignored, codes.DeadlineExceeded: permit.Ignored,
			codes.Unavailable: permit.Overload, codes.ResourceExhausted: permit.Overload,
		} {
			t.Run(kind+" "+code.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := streamService(t, kind, 1, always(script{messages: 2, idle: time.Hour, code: code}))
					defer s.close()
					got, err := s.receive(t.Context(), list)
					if len(got) != 2 || status.Code(err) != code {
						t.Errorf("received %d messages, then %v", len(got), err)
					}
					if ledger := s.limiter.Stats().Ledger; ledger.Granted != 1 || ledger.Released[want] != 1 {
						t.Errorf("the outcomes are %v; want one %v", ledger.Released, want)
					}
				})
			})
		}
	}
}

// streamCase is one server's stream under a policy.
type streamCase struct {
	name     string
	kind     string
	scripts  []script
	attempts []time.Duration
	code     codes.Code
	answer   int // the attempt whose messages the caller gets; −1 is none
	messages int
}

// R5, H4, H5, H8, H15, H16: a server's stream is sent again, with its request, until an
// attempt has response headers; from then on that attempt is the call.
func TestServerStreamsAreSentAgainUntilHeaders(t *testing.T) {
	for _, c := range []streamCase{
		{
			name: "a failure is retried", kind: "retried",
			scripts:  []script{{after: 10 * ms, code: codes.Unavailable}, {messages: 3}},
			attempts: []time.Duration{0, 110 * ms}, answer: 1, messages: 3,
		},
		{
			name: "a stream that ends well without a message is an answer", kind: "retried",
			scripts:  []script{{bare: true}},
			attempts: []time.Duration{0}, answer: -1,
		},
		{
			name: "a failure after the headers is not retried", kind: "retried",
			scripts:  []script{{headers: true, after: 10 * ms, code: codes.Unavailable}, {messages: 3}},
			attempts: []time.Duration{0}, answer: 0, code: codes.Unavailable,
		},
		{
			name: "nor one after a message", kind: "retried",
			scripts:  []script{{messages: 2, code: codes.Unavailable}},
			attempts: []time.Duration{0}, answer: 0, messages: 2, code: codes.Unavailable,
		},
		{
			name: "a fatal failure is the call's", kind: "retried",
			scripts:  []script{{code: codes.NotFound}},
			attempts: []time.Duration{0}, answer: -1, code: codes.NotFound,
		},
		{
			name: "pushback is obeyed", kind: "retried",
			scripts:  []script{{code: codes.Unavailable, pushback: []string{"7"}}, {messages: 1}},
			attempts: []time.Duration{0, 7 * ms}, answer: 1, messages: 1,
		},
		{
			name: "a hedge follows after the delay and wins by its headers", kind: "hedged",
			scripts:  []script{{after: 150 * ms, messages: 1}, {headers: true, after: 300 * ms, messages: 4}},
			attempts: []time.Duration{0, 100 * ms}, answer: 1, messages: 4,
		},
		{
			name: "headers keep hedges back, however late the messages are", kind: "hedged",
			scripts:  []script{{headers: true, after: time.Second, messages: 2}},
			attempts: []time.Duration{0}, answer: 0, messages: 2,
		},
		{
			name: "a failure that is not fatal sends the next one at once", kind: "hedged",
			scripts:  []script{{after: 10 * ms, code: codes.Unavailable}, {after: 10 * ms, messages: 1}},
			attempts: []time.Duration{0, 10 * ms}, answer: 1, messages: 1,
		},
		{
			name: "without the opt-in a stream is not hedged", kind: "unasked",
			scripts:  []script{{after: time.Minute, messages: 1}},
			attempts: []time.Duration{0}, answer: 0, messages: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := streamService(t, c.kind, 10, inTurn(c.scripts...))
				defer s.close()
				var o outs
				got, err := s.receive(t.Context(), list, o.options()...)
				if status.Code(err) != c.code {
					t.Errorf("the stream ended with %v; want %v", err, c.code)
				}
				synctest.Wait()
				if times := s.backend.times(); !slices.Equal(times, c.attempts) {
					t.Errorf("the attempts came at %v; want %v", times, c.attempts)
				}
				var want [][]byte
				for range c.messages {
					want = append(want, append([]byte{byte(c.answer)}, "ask"...))
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("received %q; want %q", got, want)
				}
				if c.answer >= 0 && o.attempt() != c.answer {
					t.Errorf("the headers %v and trailers %v are not of attempt %d", o.header, o.trailer, c.answer)
				}
				if len(o.finished) != 1 || status.Code(o.finished[0]) != c.code {
					t.Errorf("OnFinish was told %v", o.finished)
				}
				s.mustHold(0)
			})
		})
	}
}

// A loser that may go on for a while ends with its headers, which nobody wants.
func TestLoserOfAStreamEndsWithItsHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, inTurn(script{after: 150 * ms, messages: 1, idle: time.Hour}, script{after: 20 * ms, messages: 1}),
			config(t, hedgedStreams), grpcmw.HedgeStreams(list),
			configured(func(c *hedgedlimit.Config) { c.Losers = hedgedlimit.Drain(time.Minute) }))
		defer s.close()
		if _, err := s.receive(t.Context(), list); err != nil { // at 121 ms
			t.Error(err)
		}
		synctest.Wait()
		s.mustHold(1)
		time.Sleep(40 * ms)
		s.mustHold(0)
	})
}

// Streams of clients are never sent again, whatever the policy: documented, since
// DialOptions take the channel's own retries away.
func TestClientStreamsAreSentOnce(t *testing.T) {
	for _, method := range []string{collect, chat} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, always(script{after: 10 * ms, code: codes.Unavailable}), config(t, fourRetries), grpcmw.HedgeStreams(collect, chat))
			defer s.close()
			if _, err := s.receive(t.Context(), method); status.Code(err) != codes.Unavailable {
				t.Error(err)
			}
			if n := len(s.backend.seen()); n != 1 {
				t.Errorf("%s was sent %d times", method, n)
			}
		})
	}
}

// The timeout of a method bounds streams, once for all of their attempts.
func TestTimeoutBoundsStreams(t *testing.T) {
	for kind, policy := range map[string]string{
		"once":    `{"methodConfig": [{"name": [{}], "timeout": "0.25s"}]}`,
		"retried": `{"methodConfig": [{"name": [{}], "timeout": "0.25s", "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "0.1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`,
	} {
		for _, method := range []string{list, collect, chat} {
			t.Run(kind+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(t, always(script{after: time.Hour}), config(t, policy))
					defer s.close()
					if _, err := s.receive(t.Context(), method); status.Code(err) != codes.DeadlineExceeded {
						t.Error(err)
					}
					if d := time.Since(s.backend.began); d != 250*ms {
						t.Errorf("the stream ended after %v", d)
					}
				})
			})
		}
	}
}

// A stream that is sent again begins with its request: opening it sends nothing, holds
// nothing and waits for nothing, and neither does sending the request.
func TestServerStreamDoesNotBlockItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{after: time.Hour, messages: 1}), config(t, fourRetries))
		defer s.close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := s.cc.NewStream(ctx, descs[list], list)
		if err != nil {
			t.Fatal(err)
		}
		s.mustHold(0)
		request := wrapperspb.Bytes([]byte("ask"))
		if err := errors.Join(stream.SendMsg(request), stream.CloseSend()); err != nil {
			t.Error(err)
		}
		request.Value = []byte("other")
		if d := time.Since(s.backend.began); d != 0 {
			t.Errorf("the caller has waited %v", d)
		}
		if err := stream.SendMsg(request); status.Code(err) != codes.Internal {
			t.Errorf("a second request: %v", err)
		}
		m := new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(m); err != nil || string(m.GetValue()[1:]) != "ask" {
			t.Errorf("received %q, %v", m.GetValue(), err)
		}
	})
}

// One goroutine may receive before another has sent the request.
func TestServerStreamMayBeReceivedFromBeforeItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{messages: 1}), config(t, fourRetries))
		defer s.close()
		stream, err := s.cc.NewStream(t.Context(), descs[list], list)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			for err == nil {
				err = stream.RecvMsg(new(wrapperspb.BytesValue))
			}
			got <- err
		}()
		synctest.Wait()
		if err := stream.SendMsg(wrapperspb.Bytes(nil)); err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

// A stream that never gets a request ends with its context, and holds nothing.
func TestServerStreamWithoutARequestEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{}), config(t, fourRetries))
		defer s.close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		stream, err := s.cc.NewStream(ctx, descs[list], list)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(new(wrapperspb.BytesValue)); !errors.Is(err, context.DeadlineExceeded) || stream.Context() == nil || stream.Trailer() != nil {
			t.Errorf("RecvMsg returned %v", err)
		}
		s.mustHold(0)
	})
}
