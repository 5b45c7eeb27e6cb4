package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	defaultMaxHosts   = 256
	defaultDrainBytes = 256 << 10
	// defaultMaxRetryAfter is short, since a caller waits: it is meant for a server that
	// restarts, not for one that asks to be left alone.
	defaultMaxRetryAfter = time.Second
)

// An Option changes what NewTransport makes. Options are applied in order; of two
// of the same kind the later one counts.
type Option interface {
	apply(*options)
}

// options is what the options set. Its zero value is not the default; see
// newOptions.
type options struct {
	hedger     *hedgedlimit.Hedger
	hedgerSet  bool
	config     func(host string, config *hedgedlimit.Config) error
	configSet  bool
	maxHosts   int
	hostsSet   bool
	pick       func(*http.Request, []*url.URL) *url.URL
	pickSet    bool
	hedgeable  func(*http.Request) bool
	header     bool
	drainBytes int64

	maxRetryAfter time.Duration
	delayFrom     AnswerPoint
	limitBy       func(*http.Request) string
	limitBySet    bool
	delayBy       func(*http.Request) string
	delayBySet    bool
	fraction      float64
	lostBody      func(LostBody)
	lostBodySet   bool
}

// newOptions applies the options to the defaults and checks the result.
func newOptions(list []Option) (options, error) {
	o := options{
		maxHosts: defaultMaxHosts, hedgeable: Idempotent, drainBytes: defaultDrainBytes, maxRetryAfter: defaultMaxRetryAfter,
	}
	for i, option := range list {
		if isNil(option) {
			return options{}, fmt.Errorf("httpmw: option %d is nil", i)
		}
		option.apply(&o)
	}
	return o, o.validate()
}

// validate names the first option that makes no sense, with its value.
func (o *options) validate() error {
	switch {
	case o.hedgerSet && o.hedger == nil:
		return errors.New("httpmw: WithHedger: the hedger is nil")
	case o.configSet && o.config == nil:
		return errors.New("httpmw: WithConfig: the function is nil")
	case o.hedgerSet && o.configSet:
		return errors.New("httpmw: WithHedger and WithConfig exclude each other")
	case o.hedgerSet && o.hostsSet:
		return errors.New("httpmw: WithHedger and MaxHosts exclude each other")
	case o.maxHosts < 1:
		return fmt.Errorf("httpmw: MaxHosts %d is below 1", o.maxHosts)
	case o.pickSet && o.pick == nil:
		return errors.New("httpmw: PickTarget: the function is nil")
	case o.hedgeable == nil:
		return errors.New("httpmw: Hedgeable: the function is nil")
	case o.drainBytes < 0:
		return fmt.Errorf("httpmw: DrainBytes %d is negative", o.drainBytes)
	}
	return o.validateRest()
}

func (o *options) validateRest() error {
	switch {
	case o.maxRetryAfter < 0:
		return fmt.Errorf("httpmw: MaxRetryAfter %v is negative", o.maxRetryAfter)
	case o.delayFrom > FirstByte:
		return fmt.Errorf("httpmw: DelayFrom %d is neither Headers nor FirstByte", o.delayFrom)
	case o.limitBySet && o.limitBy == nil:
		return errors.New("httpmw: LimitBy: the function is nil")
	case o.limitBySet && o.hedgerSet:
		return errors.New("httpmw: WithHedger and LimitBy exclude each other")
	case o.delayBySet && o.delayBy == nil:
		return errors.New("httpmw: DelayBy: the function is nil")
	case !validFraction(o.fraction):
		return fmt.Errorf("httpmw: DeadlineFraction %v is not between 0 and 1", o.fraction)
	case o.lostBodySet && o.lostBody == nil:
		return errors.New("httpmw: OnLostBody: the function is nil")
	}
	return nil
}

// isNil reports whether v is nil, or a nil pointer or function in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return r.IsNil()
	}
	return false
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

// WithHedger sends all requests through one hedger, and so one limiter, one delay
// and one budget, whatever their host. Its Config is used as it is, without the defaults
// that WithConfig lists. The hedger stays its owner's: Close of the
// Transport does not close its limiter. Use it if the requests share a bottleneck
// that is not their host.
func WithHedger(h *hedgedlimit.Hedger) Option {
	return optionFunc(func(o *options) { o.hedger, o.hedgerSet = h, true })
}

// WithConfig lets f change the configuration of each host's hedger. It is called
// with the lower-case URL.Host, port included, or the string of LimitBy, and with the
// defaults filled in, which are those of hedgedlimit.Config but for these:
//
//   - Losers is a hedgedlimit.ChooseLosers. If the latest answer of the host was one of
//     HTTP/2 or above, losers are cancelled. Else they are drained, for as long as the
//     call's hedge delay was, 100 ms if it had none, and 1 s at most.
//   - Pushback reads Retry-After; see MaxRetryAfter. What replaces it may ask
//     StatusError.RetryAfter. It also sends nothing further after an error that is told by
//     its type to come again: a name that does not exist, a certificate that is refused, an
//     answer that is not TLS, and Request.Cancel. With PickTarget, only the last counts. An
//     attempt that runs goes on. Other errors that cannot be mended, such as a scheme that
//     the base does not know, have no type of their own, and cost a retry.
//   - Limiter is nil, which here means a limiter with the name of the host that
//     lets 64 requests wait, and each of them for 100 ms at most. A client should
//     rather be refused than wait longer than a hedge would have taken.
//   - Delay is nil, which with DelayBy, and without Retry, means hedgedlimit.PerKey of
//     32 keys.
//
// f is called once with an empty host by NewTransport, for the hedger that hosts
// beyond MaxHosts share, and then in the goroutine of a request to a new host,
// perhaps by several at once. If it fails, so does NewTransport, or the request.
// A limiter that it sets is closed by Close. An algorithm, a delay or a limiter
// that two hosts are given is shared by them.
func WithConfig(f func(host string, config *hedgedlimit.Config) error) Option {
	return optionFunc(func(o *options) { o.config, o.configSet = f, true })
}

// MaxHosts bounds for how many hosts, or strings of LimitBy, a hedger is kept; it is 256 by default. When
// there is no room, the host that was used least lately among the idle ones is
// dropped, and what was learnt about it is lost. A host with a permit out is never
// dropped: if all are busy, newcomers share one hedger until there is room. They look at a
// few hosts each, so where nearly all are busy it may take some of them to find the room.
func MaxHosts(n int) Option {
	return optionFunc(func(o *options) { o.maxHosts, o.hostsSet = n, true })
}

// PickTarget chooses for each attempt where it is sent, for services with several
// replicas: a hedge that goes where the first attempt is stuck gains little. pick
// is handed the attempt's request and the targets of the attempts of the same
// call that were sent before it, oldest first; it returns a URL of which Scheme
// and Host are used, or nil for the request's own.
//
// The limit stays that of the caller's host, and the Host header and thus the
// virtual host stay what the caller asked for. pick may change request.Host, which
// is the attempt's own; it must not keep the request or the slice. For https, the
// target's host is what the certificate must be for. pick runs in the goroutine of
// the attempt, one at a time within a call.
func PickTarget(pick func(request *http.Request, tried []*url.URL) *url.URL) Option {
	return optionFunc(func(o *options) { o.pick, o.pickSet = pick, true })
}

// Hedgeable decides which requests may be sent more than once, in the place of
// Idempotent. It is not asked about those that never are: CONNECT, protocol
// upgrades, Expect: 100-continue, bodies without GetBody, and bodies with trailers, which
// are set while a body is read, and could be those of one attempt only. It runs in the
// goroutine of the caller and must not change the request.
func Hedgeable(f func(*http.Request) bool) Option {
	return optionFunc(func(o *options) { o.hedgeable = f })
}

const (
	// AttemptHeader is the header by which WithAttemptHeader sends the number of an attempt.
	AttemptHeader = "X-Hedge-Attempt"
	// KindHeader is the header by which it says "retry" with a retry, and nothing else.
	KindHeader = "X-Hedge-Kind"

	kindRetry = "retry"
)

// WithAttemptHeader sends the number of the attempt with each request, 1 for the first, as
// AttemptHeader, so that a server can refuse the others first. A retry, which follows an
// attempt that has failed while none runs, says so by KindHeader besides: its caller has
// nothing else to wait for, and that of a hedge has. What a Handler makes of the two is in
// MaxExtra.
func WithAttemptHeader() Option {
	return optionFunc(func(o *options) { o.header = true })
}

// DrainBytes is how much of a loser's body is read, so that its connection can be
// used again, before it is closed; it is 256 KiB by default and bounded by the
// time of hedgedlimit.Drain besides. 0 closes it unread.
func DrainBytes(n int64) Option {
	return optionFunc(func(o *options) { o.drainBytes = n })
}

// MaxRetryAfter is how long a call waits at most because a failed answer has asked for
// it by Retry-After; it is 1 s by default. Within that, the next attempt is sent after the
// time that was asked for, and not before. A longer time, or a header that cannot be read,
// means that no further attempt of the call is sent, so that the caller gets the answer.
// 0 waits for nobody, and heeds only those who ask for no wait. It has no effect on a
// hedger given by WithHedger, whose Config.Pushback is its owner's business, nor where only
// one attempt may be sent.
func MaxRetryAfter(d time.Duration) Option {
	return optionFunc(func(o *options) { o.maxRetryAfter = d })
}

// AnswerPoint is when an attempt has answered. The zero value is Headers.
type AnswerPoint uint8

const (
	// Headers: the headers of the response are there.
	Headers AnswerPoint = iota
	// FirstByte: the first byte of the body is there, or its end.
	FirstByte
)

// DelayFrom says when an attempt has answered; it is Headers by default. The hedge delay
// runs until then, the latency that limit and delay learn ends there, and who is there
// first wins. It applies to every request that could be repeated, be it hedged or not.
//
// FirstByte is for servers that send headers at once and think then, such as event streams
// and the inference of models. RoundTrip then returns as late as the first byte, or the
// end, of the body; an attempt whose body fails before that has failed, and only the bytes
// of the winner are delivered. A stream of which the first event may be long in coming is
// nothing for it. Answers without a body, and those with status 101, have answered with
// their headers, and so have all answers to requests that cannot be repeated: whoever
// sends such a body may wait for headers before going on. It costs two allocations, 584 B,
// for each answer with a body (BenchmarkRoundTrip).
func DelayFrom(p AnswerPoint) Option {
	return optionFunc(func(o *options) { o.delayFrom = p })
}

// LimitBy says which requests share a limiter, a hedger and a delay: those for which f
// returns the same string. An empty string stands for the default, which is the
// lower-case URL.Host. MaxHosts bounds how many are kept; strings of more than 300 bytes
// are cut off and told apart by a hash. f runs in the goroutine of the caller, may be
// called by several at once, and must not change or keep the request; if it panics, so
// does RoundTrip.
func LimitBy(f func(*http.Request) string) Option {
	return optionFunc(func(o *options) { o.limitBy, o.limitBySet = f, true })
}

// DelayBy says for which requests a hedge delay is learnt together: those with the same
// limiter for which f returns the same string, say the route. It is passed on as
// hedgedlimit.Key, which a delay made by hedgedlimit.PerKey heeds. The default delay is
// such a one then, of 32 keys for each host, about 14 KB each; a hedger given by
// WithHedger must bring its own. An empty string is a key like any other. For long ones
// and for the call of f, see LimitBy.
func DelayBy(f func(*http.Request) string) Option {
	return optionFunc(func(o *options) { o.delayBy, o.delayBySet = f, true })
}

// DeadlineFraction leaves each attempt only this share of the time that its caller has
// left when it is sent, from 0 to 1, so that the rest is there to make use of an answer or
// of a failure; 0.85 to 0.9 is usual. The time is sent on as TimeoutHeader, in whole
// milliseconds and at least 1, so that the server can give up when nobody waits any more.
// It bounds the reading of the response body too. 1 changes no deadline and only sends the
// header. 0, the default, does neither, and so does a request without a deadline.
//
// An attempt whose share is over has failed with context.DeadlineExceeded, and has
// Expired for the limit. The call may go on: a hedge that was sent later has more time.
func DeadlineFraction(f float64) Option {
	return optionFunc(func(o *options) { o.fraction = f })
}

// OnLostBody reports bodies that nobody closed, when the garbage collector has found them:
// each has kept a permit until then. f is called by the next use of the Transport after
// that, RoundTrip, Stats or Close, in the goroutine of its caller, once for each body and
// outside all locks; it may be called by several at once. It should be quick. A panic of
// it ends in the default slog logger.
func OnLostBody(f func(LostBody)) Option {
	return optionFunc(func(o *options) { o.lostBody, o.lostBodySet = f, true })
}

// Idempotent reports whether a request may be sent twice by its own word: its
// method is GET, HEAD, OPTIONS or TRACE, or it has an Idempotency-Key. PUT and
// DELETE are idempotent too, but two at once may overtake a third. It is what is
// hedged by default.
func Idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header.Get("Idempotency-Key") != ""
}

// repeatable reports whether a request can be sent more than once at all.
func repeatable(r *http.Request) bool {
	switch {
	case r.Method == http.MethodConnect:
		return false
	case r.Header.Get("Upgrade") != "" || r.Header.Get("Expect") != "":
		return false
	}
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	return r.GetBody != nil && r.Trailer == nil // which the caller may fill in while the one body is read
}

const (
	defaultMaxExtra   = 0.10
	defaultRetryAfter = time.Second
)

// A HandlerOption changes what NewHandler makes. Options are applied in order; of two of
// the same kind the later one counts.
type HandlerOption interface {
	applyHandler(*handlerOptions)
}

// handlerOptions is what the options set. Its zero value is not the default; see
// newHandlerOptions.
type handlerOptions struct {
	limiter    *limiter.Limiter
	limiterSet bool
	maxExtra   float64
	retryAfter time.Duration
	exempt     func(*http.Request) bool
	exemptSet  bool
	maxTimeout time.Duration
	timeoutSet bool
	reports    bool
}

// newHandlerOptions applies the options to the defaults and checks the result.
func newHandlerOptions(list []HandlerOption) (handlerOptions, error) {
	o := handlerOptions{maxExtra: defaultMaxExtra, retryAfter: defaultRetryAfter}
	for i, option := range list {
		if isNil(option) {
			return handlerOptions{}, fmt.Errorf("httpmw: option %d is nil", i)
		}
		option.applyHandler(&o)
	}
	switch {
	case o.limiterSet && o.limiter == nil:
		return handlerOptions{}, errors.New("httpmw: HandlerLimiter: the limiter is nil")
	case !(o.maxExtra >= 0 && o.maxExtra <= 1): // NaN is neither
		return handlerOptions{}, fmt.Errorf("httpmw: MaxExtra %v is not from 0 to 1", o.maxExtra)
	case o.retryAfter <= 0:
		return handlerOptions{}, fmt.Errorf("httpmw: RetryAfter %v is not above 0", o.retryAfter)
	case o.exemptSet && o.exempt == nil:
		return handlerOptions{}, errors.New("httpmw: Exempt: the function is nil")
	case o.timeoutSet && o.maxTimeout <= 0:
		return handlerOptions{}, fmt.Errorf("httpmw: DeadlineFromHeader %v is not above 0", o.maxTimeout)
	case o.limiterSet:
		return o, nil
	}
	var err error
	o.limiter, err = limiter.New(limiter.Config{
		Name:       "http server",
		MaxWaiting: defaultMaxWaiting,
		MaxWait:    defaultMaxWait,
		LIFOAfter:  limiter.HalfMaxWait,
	})
	return o, err
}

type handlerOptionFunc func(*handlerOptions)

func (f handlerOptionFunc) applyHandler(o *handlerOptions) { f(o) }

// HandlerLimiter takes the permits from l, whose configuration says who may wait and for
// how long. It may be shared, with other Handlers or with other work of the same server.
// It stays its owner's: Close of the Handler does not close it.
//
// Of Handlers that are nested only one may take its permits from l: with both, a request
// holds one while it waits for another, and a limit full of such requests serves nobody.
func HandlerLimiter(l *limiter.Limiter) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.limiter, o.limiterSet = l, true })
}

// MaxExtra bounds the hedges and retries that are let in as a share of all requests of
// the last ten seconds; it is 0.10 by default, and 3 may come within them in any case. 0
// refuses all of them, and 1 none for this reason. The share is there for overload: while
// more than half of the permits are free nobody is refused for it, and who comes then does
// not count. A request that is not marked never is refused for it.
//
// They are told by AttemptHeader: one that says 2 to 1000 marks one, and any other counts
// as none, so that nothing is gained by a header that was made up. A marked request is a
// retry if KindHeader says so, and takes its permit like a first attempt, after a wait if
// the limiter allows one. Else it is a hedge, whose caller waits for another answer already:
// it is let in only if a permit is free at once and beyond the limiter's reserve, or if
// nothing is in flight.
func MaxExtra(ratio float64) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.maxExtra = ratio })
}

// RetryAfter is when a client that was refused should come again, in whole seconds,
// rounded up; it is one second by default. Those who were refused together come back
// together then, as retries if they say so: MaxExtra bounds how many of them are let in
// while the Handler is busy, and the rest are sent away once more.
func RetryAfter(d time.Duration) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.retryAfter = d })
}

// Exempt lets requests pass without a permit for which f returns true, such as health
// checks: they are never refused, nor counted in flight, and teach the limit nothing. f
// runs in the goroutine of the request, before anything else, and must not change it.
func Exempt(f func(*http.Request) bool) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.exempt, o.exemptSet = f, true })
}

// DeadlineFromHeader has each request end after the time that TimeoutHeader says, but
// after most at the latest, from when it came to the Handler. A request that would have
// to wait too long for its permit is then refused at once, and the next handler gets a
// copy of the request whose context has the deadline. A header that is anything but one
// number of at most 12 digits is ignored. 0 is no time at all, and refused. To the limit
// a request that has ended so is one whose client has left. A request without the header
// gets no deadline from here, however long most is.
//
// The header itself is passed on as it came. A proxy behind the Handler should set it anew
// from the deadline of the context, as a Transport with DeadlineFraction does: what the
// client has said is longer by the time that has gone by since.
//
// What the next handler assigns to the fields of its copy is seen outside as far as
// AcceptReports says. Without the option the header is not read.
func DeadlineFromHeader(most time.Duration) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.maxTimeout, o.timeoutSet = most, true })
}

// AcceptReports lets the next handler say by Report what the limit should learn. It then
// gets a copy of the request, with another context. What net/http writes to the copy while it is
// served, the forms and the pattern, is in the request itself again when the handler has
// returned. What the next handler assigns to other fields of it, such as URL or Body, and
// what a ServeMux inside finds for PathValue, is lost to middleware outside.
func AcceptReports() HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.reports = true })
}
