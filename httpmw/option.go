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
}

// newOptions applies the options to the defaults and checks the result.
func newOptions(list []Option) (options, error) {
	o := options{maxHosts: defaultMaxHosts, hedgeable: Idempotent, drainBytes: defaultDrainBytes}
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
// and one budget, whatever their host. The hedger stays its owner's: Close of the
// Transport does not close its limiter. Use it if the requests share a bottleneck
// that is not their host.
func WithHedger(h *hedgedlimit.Hedger) Option {
	return optionFunc(func(o *options) { o.hedger, o.hedgerSet = h, true })
}

// WithConfig lets f change the configuration of each host's hedger. It is called
// with the lower-case URL.Host, port included, and with the defaults filled in,
// which are those of hedgedlimit.Config but for these:
//
//   - Losers is hedgedlimit.Drain(100 * time.Millisecond).
//   - Limiter is nil, which here means a limiter with the name of the host that
//     lets 64 requests wait, and each of them for 100 ms at most. A client should
//     rather be refused than wait longer than a hedge would have taken.
//
// f is called once with an empty host by NewTransport, for the hedger that hosts
// beyond MaxHosts share, and then in the goroutine of a request to a new host,
// perhaps by several at once. If it fails, so does NewTransport, or the request.
// A limiter that it sets is closed by Close. An algorithm, a delay or a limiter
// that two hosts are given is shared by them.
func WithConfig(f func(host string, config *hedgedlimit.Config) error) Option {
	return optionFunc(func(o *options) { o.config, o.configSet = f, true })
}

// MaxHosts bounds for how many hosts a hedger is kept; it is 256 by default. When
// there is no room, the host that was used least lately among the idle ones is
// dropped, and what was learnt about it is lost. A host with a permit out is never
// dropped: if all are busy, newcomers share one hedger until there is room.
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
// upgrades, Expect: 100-continue, and bodies without GetBody. It runs in the
// goroutine of the caller and must not change the request.
func Hedgeable(f func(*http.Request) bool) Option {
	return optionFunc(func(o *options) { o.hedgeable = f })
}

// AttemptHeader is the header that WithAttemptHeader sends.
const AttemptHeader = "X-Hedge-Attempt"

// WithAttemptHeader sends the number of the attempt with each request, 1 for the
// first, so that a server can tell hedges and refuse them first.
func WithAttemptHeader() Option {
	return optionFunc(func(o *options) { o.header = true })
}

// DrainBytes is how much of a loser's body is read, so that its connection can be
// used again, before it is closed; it is 256 KiB by default and bounded by the
// time of hedgedlimit.Drain besides. 0 closes it unread.
func DrainBytes(n int64) Option {
	return optionFunc(func(o *options) { o.drainBytes = n })
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
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
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
func HandlerLimiter(l *limiter.Limiter) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.limiter, o.limiterSet = l, true })
}

// MaxExtra bounds the hedges and retries that are let in as a share of all requests of
// the last ten seconds; it is 0.10 by default, and 3 may come within them in any case. 0
// refuses all of them, and 1 none for this reason. They are told by AttemptHeader: one
// that says 2 to 1000 marks one, and any other counts as none, so that nothing is gained by
// a header that was made up. Besides, a hedge or retry is let in only if a permit is free
// at once and beyond the limiter's reserve. A request that is not marked is never refused
// for the share.
func MaxExtra(ratio float64) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.maxExtra = ratio })
}

// RetryAfter is when a client that was refused should come again, in whole seconds,
// rounded up; it is one second by default.
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
// a request that has ended so is one whose client has left.
//
// Without the option the header is not read.
func DeadlineFromHeader(most time.Duration) HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.maxTimeout, o.timeoutSet = most, true })
}

// AcceptReports lets the next handler say by Report what the limit should learn. It then
// gets a copy of the request, with another context. What net/http writes to the copy while it is
// served, the forms and the pattern, is in the request itself again when the handler has
// returned; only what a ServeMux inside finds for PathValue is lost to middleware outside.
func AcceptReports() HandlerOption {
	return handlerOptionFunc(func(o *handlerOptions) { o.reports = true })
}
