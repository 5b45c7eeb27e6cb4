package grpcmw_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// modelPolicy is a policy with its throttle.
type modelPolicy struct {
	retry       bool
	maxAttempts int
	delay       time.Duration // or the initial back-off
	maxTokens   int           // 0: no throttle
}

// modelCall is what the backend does with the attempts of one call.
type modelCall struct {
	attempts [5]script
	deadline time.Duration // 0 is none
}

// modelResult is what is to be seen of one call.
type modelResult struct {
	launches []time.Duration // since the call began
	at       time.Duration
	code     codes.Code
	attempt  int // that decided it, from 0; −1: the deadline did
	tokens   float64
}

// reference is the decision table of gRFC A6, step by step, as naive as can be. Where A6
// leaves a choice: of several pushbacks the one that ends last counts, and a failure without
// one does not cut the wait short; a hedge that is throttled is asked for again after the
// delay, or a millisecond if that is more.
type reference struct {
	policy modelPolicy
	call   modelCall
	tokens float64

	now       time.Duration
	launches  []time.Duration
	ends      map[int]time.Duration // of the attempts that run
	timer     time.Duration         // −1: not set
	notBefore time.Duration
	frozen    bool
	backoffs  int
	last      int  // to fail
	ambiguous bool // two things happen in one instant
}

const tokenRatio = 0.5

func (r *reference) open() bool {
	return r.policy.maxTokens == 0 || r.tokens > float64(r.policy.maxTokens)/2
}

func (r *reference) pay(tokens float64) {
	r.tokens = min(max(r.tokens+tokens, 0), float64(r.policy.maxTokens))
}

func (r *reference) left() bool { return len(r.launches) < r.policy.maxAttempts && !r.frozen }

func (r *reference) launch() {
	n := len(r.launches)
	r.launches = append(r.launches, r.now)
	r.ends[n] = r.now + r.call.attempts[n].after
	r.timer = -1
	if r.left() && !r.policy.retry {
		r.timer = r.now + r.policy.delay
	}
}

// due sends an attempt, and reports whether the call goes on.
func (r *reference) due() bool {
	switch {
	case r.open():
		r.launch()
	case len(r.ends) == 0:
		return false
	default:
		r.timer = r.now + max(r.policy.delay, time.Millisecond)
	}
	return true
}

// wait sets the timer, and reports whether the call goes on.
func (r *reference) wait(d time.Duration) bool {
	if len(r.ends) == 0 && r.call.deadline > 0 && r.now+d >= r.call.deadline {
		return false
	}
	r.timer = r.now + d
	return true
}

func (r *reference) run() modelResult {
	r.ends, r.timer = map[int]time.Duration{}, -1
	r.launch()
	for {
		next, who := time.Duration(math.MaxInt64), -1
		for n, end := range r.ends {
			r.ambiguous = r.ambiguous || end == next
			if end < next {
				next, who = end, n
			}
		}
		r.ambiguous = r.ambiguous || r.timer == next || r.call.deadline == next
		switch {
		case r.call.deadline > 0 && r.call.deadline < next && (r.timer < 0 || r.call.deadline <= r.timer):
			r.now = r.call.deadline
			return r.result(codes.DeadlineExceeded, -1)
		case r.timer >= 0 && r.timer < next:
			r.now, r.timer = r.timer, -1
			if !r.due() {
				return r.result(r.call.attempts[r.last].code, r.last)
			}
			continue
		}
		r.now = next
		if code, goesOn := r.answer(who); !goesOn {
			if code == codes.Unavailable {
				who = r.last
			}
			return r.result(code, who)
		}
	}
}

// answer takes the end of an attempt, and reports whether the call goes on.
func (r *reference) answer(n int) (codes.Code, bool) {
	delete(r.ends, n)
	s := r.call.attempts[n]
	var push time.Duration
	pushed := len(s.pushback) > 0
	if pushed {
		ms, _ := strconv.Atoi(s.pushback[0])
		push = time.Duration(ms) * time.Millisecond
	}
	switch s.code {
	case codes.OK:
		r.pay(tokenRatio)
		return s.code, false
	case codes.NotFound:
		if push < 0 {
			r.pay(-1)
		}
		return s.code, false
	}
	r.pay(-1)
	r.last = n
	switch {
	case push < 0:
		r.frozen, r.timer = true, -1
	case pushed:
		r.notBefore, r.backoffs = max(r.notBefore, r.now+push), 0
	}
	switch {
	case !r.left():
		return s.code, len(r.ends) > 0
	case pushed || r.notBefore > r.now:
		return s.code, r.wait(max(0, r.notBefore-r.now))
	case r.policy.retry:
		r.backoffs++
		return s.code, r.wait(min(r.policy.delay<<(r.backoffs-1), 4*r.policy.delay))
	}
	return s.code, r.due()
}

func (r *reference) result(code codes.Code, attempt int) modelResult {
	return modelResult{r.launches, r.now, code, attempt, max(0, r.tokens-float64(r.policy.maxTokens)/2)}
}

// Calls follow the decision table of gRFC A6, whatever their policy and whatever the
// server does, also where the throttle is shut by the calls before.
func TestCallsFollowTheDecisionTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			policy := modelPolicy{
				retry:       rapid.Bool().Draw(t, "retry"),
				maxAttempts: rapid.IntRange(2, 5).Draw(t, "attempts"),
				delay:       time.Duration(rapid.IntRange(0, 6).Draw(t, "delay")) * ms,
				maxTokens:   rapid.IntRange(0, 8).Draw(t, "tokens"),
			}
			if policy.delay > 0 || policy.retry {
				policy.delay += 101 * time.Microsecond // so that few things happen in one instant
			}
			calls := make([]modelCall, rapid.IntRange(1, 3).Draw(t, "calls"))
			results := make([]modelResult, len(calls))
			tokens := float64(policy.maxTokens)
			for i := range calls {
				calls[i] = drawModelCall(t, fmt.Sprint("call ", i))
				r := reference{policy: policy, call: calls[i], tokens: tokens}
				results[i] = r.run()
				tokens = r.tokens
				if r.ambiguous {
					t.Skip("two things happen in one instant")
				}
			}
			checkModel(t, policy, calls, results)
		})
	})
}

func drawModelCall(t *rapid.T, label string) modelCall {
	var c modelCall
	for i := range c.attempts {
		label := fmt.Sprint(label, " attempt ", i)
		c.attempts[i] = script{
			after: time.Duration(rapid.IntRange(0, 12).Draw(t, label))*ms + time.Duration(7<<i)*time.Microsecond,
			code:  rapid.SampledFrom([]codes.Code{codes.Unavailable, codes.Unavailable, codes.Unavailable, codes.NotFound, codes.OK}).Draw(t, label+" code"),
		}
		if push := rapid.IntRange(-12, 12).Draw(t, label+" pushback"); push >= -1 && c.attempts[i].code != codes.OK {
			c.attempts[i].pushback = []string{strconv.Itoa(push)}
		}
	}
	if rapid.IntRange(0, 3).Draw(t, label+" has a deadline") == 0 {
		c.deadline = time.Duration(rapid.IntRange(1, 30).Draw(t, label+" deadline"))*ms + 503*time.Microsecond
	}
	return c
}

// checkModel makes the calls one after the other and compares.
func checkModel(t *rapid.T, policy modelPolicy, calls []modelCall, want []modelResult) {
	// What the caller's deadline makes of an attempt is no failure, though the policy names it.
	nonFatal := []codes.Code{codes.Unavailable, codes.DeadlineExceeded}
	options := grpcmw.ServiceConfigOptions{Methods: []grpcmw.MethodConfig{{Names: []grpcmw.MethodName{{}}}}}
	if m := &options.Methods[0]; policy.retry {
		m.Retry = &grpcmw.RetryPolicy{
			MaxAttempts: policy.maxAttempts, InitialBackoff: policy.delay, MaxBackoff: 4 * policy.delay,
			BackoffMultiplier: 2, Retryable: nonFatal,
		}
	} else {
		m.Hedging = &grpcmw.HedgingPolicy{MaxAttempts: policy.maxAttempts, Delay: policy.delay, NonFatal: nonFatal}
	}
	if policy.maxTokens > 0 {
		options.Throttling = &grpcmw.Throttling{MaxTokens: float64(policy.maxTokens), TokenRatio: tokenRatio}
	}
	service, err := grpcmw.NewServiceConfig(options)
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(_ int, a arrival) script {
		n := 0
		current, _ := strconv.Atoi(a.metadata["call"][0])
		if len(a.number) > 0 {
			n, _ = strconv.Atoi(a.number[0])
		}
		return calls[current].attempts[n]
	}, grpcmw.WithServiceConfig(service), unjittered)
	defer s.close()
	var wrong []string // nothing fails before the channel is closed
	for i, c := range calls {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "call", strconv.Itoa(i))
		if c.deadline > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.deadline)
			defer cancel()
		}
		began, seen := time.Since(s.backend.began), len(s.backend.seen())
		_, err := s.get(ctx)
		got := modelResult{at: time.Since(s.backend.began) - began, code: status.Code(err), attempt: want[i].attempt}
		for _, at := range s.backend.times()[seen:] {
			got.launches = append(got.launches, at-began)
		}
		synctest.Wait() // the attempts that the deadline has ended
		if policy.maxTokens > 0 {
			got.tokens = s.tokens()
		}
		if d := status.Convert(err).Details(); len(d) == 1 {
			got.attempt = int(d[0].(interface{ GetValue() int64 }).GetValue()) - seen
		}
		if !slices.Equal(got.launches, want[i].launches) || got.at != want[i].at || got.code != want[i].code ||
			got.attempt != want[i].attempt && policy.delay > 0 || policy.maxTokens > 0 && math.Abs(got.tokens-want[i].tokens) > 1e-9 {
			wrong = append(wrong, fmt.Sprintf("call %d:\n%+v\nis\n%+v, want\n%+v", i, c, got, want[i]))
			break
		}
	}
	if wrong != nil {
		t.Errorf("%+v: %s", policy, wrong)
	}
}
