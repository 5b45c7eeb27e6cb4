package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"

	"github.com/holdfast-go/holdfast/hedgedlimit"
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
