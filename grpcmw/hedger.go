package grpcmw

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// hedger sends the calls of methods that are hedged or retried.
type hedger struct {
	*hedgedlimit.Hedger
	classify func(error) hedgedlimit.Verdict
	pushback func(error) (time.Duration, bool)
}

// hedgers are those of one target. They are all made at its beginning, so that a call
// never finds one that cannot be made.
type hedgers struct {
	allowed pair   // for the methods of Hedgeable and HedgeStreams
	configs []pair // by the index in the service config; of nil fields without a policy
}

// pair is a hedger for unary calls and one for streams. They differ in when a success is
// told to the throttle.
type pair struct{ unary, stream *hedger }

// newTarget makes a target with its limiter and hedgers. It calls the user's function.
func newTarget(o *options, name string) (*target, error) {
	c := hedgedlimit.Config{
		Delay:    hedgedlimit.PerKey(hedgedlimit.QuantileConfig{}, defaultMaxKeys),
		Classify: defaultClassify,
		Pushback: pushback,
	}
	if o.config != nil {
		if err := o.config(name, &c); err != nil {
			return nil, err
		}
	}
	if c.Limiter == nil {
		l, err := limiter.New(limiter.Config{Name: name, MaxWaiting: defaultMaxWaiting, MaxWait: defaultMaxWait})
		if err != nil {
			return nil, err
		}
		c.Limiter = l
	}
	if c.Budget == nil { // one for all methods
		b, err := hedgedlimit.NewRatioBudget(hedgedlimit.RatioConfig{})
		if err != nil {
			return nil, err
		}
		c.Budget = b
	}
	if c.Gates == nil { // one for all that share the limiter
		c.Gates = new(hedgedlimit.Gates)
	}
	t := &target{name: name, limiter: c.Limiter}
	if throttling := o.service.Throttling(); throttling != nil {
		throttle, err := hedgedlimit.NewThrottle(throttling.MaxTokens, throttling.TokenRatio)
		if err != nil {
			return nil, err
		}
		t.throttle = throttle
	}
	if err := t.hedgers.build(o.service, c, t.throttle); err != nil {
		return nil, err
	}
	return t, nil
}

func (h *hedgers) build(s *ServiceConfig, c hedgedlimit.Config, throttle *hedgedlimit.Throttle) (err error) {
	if c.Classify == nil {
		c.Classify = func(error) hedgedlimit.Verdict { return hedgedlimit.NonFatal }
	}
	if c.Pushback == nil {
		c.Pushback = func(error) (time.Duration, bool) { return 0, false }
	}
	if h.allowed, err = newPair(c, throttle, true); err != nil || s == nil {
		return err
	}
	h.configs = make([]pair, len(s.methods))
	for i, m := range s.methods {
		if m.Hedging == nil && m.Retry == nil {
			continue
		}
		if h.configs[i], err = newPair(m.hedging(c), throttle, false); err != nil {
			return fmt.Errorf("grpcmw: methodConfig[%d]: %w", i, err)
		}
	}
	return nil
}

// hedging returns what the policy of m makes of a hedger's configuration.
func (m *MethodConfig) hedging(c hedgedlimit.Config) hedgedlimit.Config {
	c.Delay, c.Retry, c.Gates = nil, nil, hedgedlimit.NoGates
	if p := m.Hedging; p != nil {
		c.MaxAttempts, c.Delay = p.MaxAttempts, hedgedlimit.Fixed(p.Delay)
		c.Classify, c.Pushback = uncommitted(p.NonFatal)
		return c
	}
	p := m.Retry
	c.MaxAttempts = p.MaxAttempts
	c.Classify, c.Pushback = uncommitted(p.Retryable)
	c.Retry = &hedgedlimit.Backoff{
		Initial: min(p.InitialBackoff, p.MaxBackoff), Max: p.MaxBackoff, Multiplier: p.BackoffMultiplier,
	}
	return c
}

// newPair makes the hedgers of one configuration. A throttle replaces its budget, or
// comes besides it.
func newPair(c hedgedlimit.Config, throttle *hedgedlimit.Throttle, besides bool) (p pair, err error) {
	c.Classify = marking(c.Classify)
	budget := c.Budget
	build := func(b hedgedlimit.Budget) (*hedger, error) {
		if b != nil {
			c.Budget = b
			if besides {
				c.Budget = hedgedlimit.AllOf(b, budget)
			}
		}
		h, err := hedgedlimit.New(c)
		if err != nil {
			return nil, err
		}
		return &hedger{h, c.Classify, c.Pushback}, nil
	}
	if throttle == nil {
		p.unary, err = build(nil)
		p.stream = p.unary
		return p, err
	}
	if p.unary, err = build(throttle); err != nil {
		return p, err
	}
	p.stream, err = build(streamThrottle{throttle})
	return p, err
}

// streamThrottle is a Throttle for streams, whose attempts succeed for hedgedlimit when
// the response headers are there: what pays is the final status, so stream tells it.
type streamThrottle struct{ *hedgedlimit.Throttle }

// Answered passes failures on.
func (t streamThrottle) Answered(now time.Time, a hedgedlimit.Answer) {
	if a != hedgedlimit.AnswerSuccess {
		t.Throttle.Answered(now, a)
	}
}

// defaultNonFatal are the codes after which another attempt may do better. The others are
// about the request, or tell of an operation that may have been carried out in part.
var defaultNonFatal = []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Internal}

var defaultClassify = after(defaultNonFatal)

// after returns a classifier that goes on after these codes.
func after(nonFatal []codes.Code) func(error) hedgedlimit.Verdict {
	return func(err error) hedgedlimit.Verdict {
		if slices.Contains(nonFatal, status.Code(err)) {
			return hedgedlimit.NonFatal
		}
		return hedgedlimit.Fatal
	}
}

// uncommitted returns what gRFC A6 makes of failures: another attempt goes on after these
// codes, unless the response headers had come, which commit a call to its attempt. Such a
// failure still takes from the throttle, as one that asks for no further attempt does.
func uncommitted(nonFatal []codes.Code) (func(error) hedgedlimit.Verdict, func(error) (time.Duration, bool)) {
	byCode := after(nonFatal)
	committed := func(err error) bool {
		e, ok := err.(*attemptError) //nolint:errorlint // as attempts return it
		return ok && e.cells.header != nil
	}
	classify := func(err error) hedgedlimit.Verdict {
		if committed(err) {
			return hedgedlimit.Fatal
		}
		return byCode(err)
	}
	return classify, func(err error) (time.Duration, bool) {
		if committed(err) && byCode(err) == hedgedlimit.NonFatal {
			return -1, true
		}
		return pushback(err)
	}
}

// marking returns classify, with a note on the error of which verdict it got: the status
// of a fatal failure is that of the call.
func marking(classify func(error) hedgedlimit.Verdict) func(error) hedgedlimit.Verdict {
	return func(err error) hedgedlimit.Verdict {
		v := classify(err)
		if e, ok := err.(*attemptError); ok { //nolint:errorlint // as attempts return it
			e.fatal = v != hedgedlimit.NonFatal
		}
		return v
	}
}

// pushback reads from the error of an attempt when the server wants the next one.
func pushback(err error) (after time.Duration, ok bool) {
	var e *attemptError
	if !errors.As(err, &e) || e.cells == nil {
		return 0, false
	}
	d, ok, present := parsePushback(e.cells.trailer[pushbackKey])
	if !ok {
		d = -1
	}
	return d, present
}

// answer is what a throttle learns of an RPC that has ended with err and these trailers,
// h being the hedger of its method, or nil.
func answer(err error, c *cells, h *hedger) hedgedlimit.Answer {
	if err == nil {
		return hedgedlimit.AnswerSuccess
	}
	told := pushback
	if h != nil {
		told = h.pushback
	}
	e := &attemptError{err: err, cells: c}
	if d, pushed := told(e); pushed && d < 0 || h != nil && h.classify(e) == hedgedlimit.NonFatal {
		return hedgedlimit.AnswerNonFatal
	}
	return hedgedlimit.AnswerFatal
}
