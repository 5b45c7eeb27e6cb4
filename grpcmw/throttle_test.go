package grpcmw_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

const (
	throttled = `{"methodConfig": [
		{"name": [{"service": "shop.Stock", "method": "Get"}], "hedgingPolicy": {
			"maxAttempts": 2, "hedgingDelay": "0.1s", "nonFatalStatusCodes": ["UNAVAILABLE", "DEADLINE_EXCEEDED"]}},
		{"name": [{"service": "shop.Stock", "method": "Retried"}, {"service": "shop.Stock", "method": "List"}, {"service": "shop.Stock", "method": "Collect"}],
			"retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.1s", "maxBackoff": "0.1s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE", "DEADLINE_EXCEEDED"]}}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`
	retried = "/shop.Stock/Retried"
	other   = "/shop.Stock/Order"
)

// tokens returns how many failures the throttle is away from shutting.
func (s *service) tokens() float64 {
	s.t.Helper()
	stats := s.client.Stats()
	return stats.Targets[0].Hedging[1].Unary.BudgetBalance
}

// T1, T2, T4, T6: the account of ten tokens shuts at the fifth failure, when it is down to
// five, and from nothing it is open again at the 51st success. Until then failed calls are
// not sent again.
func TestThrottleShutsAtHalfAndOpensAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := codes.Unavailable
		s := newService(t, func(int, arrival) script { return script{code: code} }, config(t, throttled))
		defer s.close()
		sent := func(method string) int {
			before := len(s.backend.seen())
			_ = s.invoke(t.Context(), method)
			return len(s.backend.seen()) - before
		}
		var attempts []int
		for range 4 {
			attempts = append(attempts, sent(get))
		}
		// 10 −2 −2 = 6; the first attempt of the third call is the fifth failure.
		if want := []int{2, 2, 1, 1}; !slices.Equal(attempts, want) {
			t.Errorf("the calls took %v attempts; want %v", attempts, want)
		}
		for range 10 {
			sent(retried)
		}
		code = codes.OK
		for range 50 {
			sent(other) // a method without a policy pays too
		}
		code = codes.Unavailable
		if n := sent(retried); n != 1 {
			t.Errorf("with half of the tokens a call took %d attempts", n)
		}
		code = codes.OK
		for range 11 { // one to make up for the failure, and the 51st
			sent(other)
		}
		if tokens := s.tokens(); tokens < 0.0999 || tokens > 0.1001 {
			t.Errorf("after the 51st success %v is left above half", tokens)
		}
		code = codes.Unavailable
		s.backend.mu.Lock()
		s.backend.script = inTurnFrom(len(s.backend.arrivals), script{after: 150 * ms}, script{after: 150 * ms})
		s.backend.mu.Unlock()
		if n := sent(get); n != 2 {
			t.Errorf("with more than half of the tokens a call took %d attempts", n)
		}
	})
}

// inTurnFrom is inTurn, begun at attempt number first.
func inTurnFrom(first int, scripts ...script) func(int, arrival) script {
	return func(n int, a arrival) script { return inTurn(scripts...)(n-first, a) }
}

// T2, T3, T7, T9: what one call does to the account.
func TestThrottleCountsWhatA6Says(t *testing.T) {
	const start = 5.0 // above half
	for _, c := range []struct {
		name    string
		method  string
		scripts []script
		paid    int // successes before, so that there is room to pay in
		cancel  time.Duration
		late    time.Duration // the caller's deadline
		want    float64
	}{
		{name: "T1 a success fills no more than the account", method: get, scripts: []script{{}}, want: start},
		{name: "T2 a success pays the ratio", method: get, scripts: []script{{code: codes.Unavailable}, {}}, want: start - 0.9},
		{name: "T2 a success without a policy pays", method: other, paid: 1, scripts: []script{{}}, want: start - 0.9},
		{name: "T3 a retryable failure takes one", method: retried, scripts: []script{{code: codes.Unavailable}}, want: start - 2},
		{name: "T3 a fatal failure takes none", method: get, scripts: []script{{code: codes.InvalidArgument}}, want: start},
		{name: "T3 a fatal failure that pushes back for good takes one", method: get, scripts: []script{{code: codes.InvalidArgument, pushback: []string{"-1"}}}, want: start - 1},
		{name: "T3 so does one of a method without a policy", method: other, scripts: []script{{code: codes.InvalidArgument, pushback: []string{"x"}}}, want: start - 1},
		{name: "T3 a failure of a method without a policy takes none", method: other, scripts: []script{{code: codes.Unavailable}}, want: start},
		{name: "T3 a retryable failure after the headers takes one", method: retried, scripts: []script{{headers: true, code: codes.Unavailable}}, want: start - 1},
		{name: "T7 a loser that was cancelled counts neither way", method: get, scripts: []script{{after: time.Hour}, {}}, paid: 1, want: start - 0.9},
		{name: "T7 a call that was cancelled counts neither way", method: get, cancel: 150 * ms, scripts: []script{{after: time.Hour}}, want: start},
		{name: "T7 a call that its deadline ends counts neither way", method: get, late: 150 * ms, scripts: []script{{after: time.Hour, deaf: true}}, want: start},
		{name: "T7 a stream that its deadline ends counts neither way", method: list, late: 150 * ms, scripts: []script{{after: time.Hour, deaf: true}}, want: start},
		{name: "T7 nor does one that has begun to answer", method: list, late: 150 * ms, scripts: []script{{headers: true, after: time.Hour, deaf: true}}, want: start},
		{name: "T7 nor does a client's stream", method: collect, late: 150 * ms, scripts: []script{{after: time.Hour, deaf: true}}, want: start},
		{name: "T3 a server that calls it a deadline takes one", method: get, late: 150 * ms, scripts: []script{{code: codes.DeadlineExceeded}, {code: codes.NotFound}}, want: start - 1},
		{name: "T9 a stream pays when it has ended", method: list, paid: 1, scripts: []script{{messages: 3, headers: true}}, want: start - 0.9},
		{name: "T9 headers alone do not pay", method: list, paid: 1, scripts: []script{{messages: 3, headers: true, code: codes.NotFound}}, want: start - 1},
		{name: "T9 the final status of a stream takes", method: list, scripts: []script{{messages: 3, headers: true, code: codes.Unavailable}}, want: start - 1},
		{name: "T3 a stream that is retried takes one for each failure", method: list, scripts: []script{{code: codes.Unavailable}}, want: start - 2},
		{name: "T9 a client's stream pays when it has ended", method: collect, paid: 1, scripts: []script{{}}, want: start - 0.9},
		{name: "T3 a client's stream with a policy takes one, though it is not retried", method: collect, scripts: []script{{code: codes.Unavailable}}, want: start - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := c.scripts
				for range c.paid {
					all = append([]script{{code: codes.Unavailable}}, all...)
				}
				s := newService(t, inTurn(all...), config(t, throttled))
				defer s.close()
				for range c.paid { // the failure of a client's stream takes one
					_, _ = s.receive(t.Context(), collect)
				}
				ctx := t.Context()
				if c.cancel > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					time.AfterFunc(c.cancel, cancel)
				}
				if c.late > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.late)
					defer cancel()
				}
				if descs[c.method] != nil {
					_, _ = s.receive(ctx, c.method)
				} else {
					_ = s.invoke(ctx, c.method)
				}
				synctest.Wait()
				if got := s.tokens(); got < c.want-1e-9 || got > c.want+1e-9 {
					t.Errorf("%v is left above half; want %v", got, c.want)
				}
			})
		})
	}
}

// T5: a hedge that is throttled is dropped, and the call goes on with what runs.
func TestThrottledHedgeIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, inTurn(append(slices.Repeat([]script{{code: codes.Unavailable}}, 5), script{after: 300 * ms})...), config(t, throttled))
		defer s.close()
		for range 5 {
			_, _ = s.receive(t.Context(), collect)
		}
		began := time.Now()
		if _, err := s.get(t.Context()); err != nil || time.Since(began) != 300*ms {
			t.Errorf("the call ended after %v with %v", time.Since(began), err)
		}
		if n := len(s.backend.seen()); n != 6 {
			t.Errorf("%d attempts were sent; want 6", n)
		}
	})
}

// T8: the throttle of a target holds back the hedges of methods without a policy, too.
func TestThrottleHoldsBackMethodsOnTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := codes.OK
		s := newService(t, func(_ int, a arrival) script {
			if a.method == other {
				return script{after: 50 * ms}
			}
			return script{code: code}
		}, config(t, throttled), grpcmw.Hedgeable(other), configured(func(c *hedgedlimit.Config) {
			c.Delay, c.Gates = hedgedlimit.Fixed(10*ms), hedgedlimit.NoGates
		}))
		defer s.close()
		var sent []int
		for _, code = range []codes.Code{codes.OK, codes.Unavailable} {
			for range 5 {
				_, _ = s.receive(t.Context(), collect)
			}
			before := len(s.backend.seen())
			_ = s.invoke(t.Context(), other)
			sent = append(sent, len(s.backend.seen())-before)
		}
		if !slices.Equal(sent, []int{2, 1}) {
			t.Errorf("with the throttle open and shut a call took %v attempts; want 2 and 1", sent)
		}
	})
}

// T8: a throttle is one target's. Another has its own.
func TestThrottleIsOneForEachTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{code: codes.Unavailable}), config(t, throttled))
		defer s.close()
		second, err := grpc.NewClient("passthrough:///another", append(s.client.DialOptions(), s.backend.dialOptions()...)...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = second.Close() }()
		for range 5 {
			_ = s.invoke(t.Context(), get)
		}
		before := len(s.backend.seen())
		_ = second.Invoke(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue))
		if n := len(s.backend.seen()) - before; n != 2 {
			t.Errorf("the first call of the other target took %d attempts; want 2", n)
		}
	})
}
