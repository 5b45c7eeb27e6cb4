package grpcmw

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

const defaultMaxTargets = 256

// An Option changes what NewClient makes. Options are applied in order; of two of the
// same kind the later one counts, but for Hedgeable and HedgeStreams, which add up.
type Option interface {
	apply(*options)
}

// options is what the options set. Its zero value is not the default; see newOptions.
type options struct {
	service     *ServiceConfig
	serviceSet  bool
	config      func(target string, config *hedgedlimit.Config) error
	configSet   bool
	messages    Messages
	messagesSet bool
	retry       func(method string)
	retrySet    bool
	maxTargets  int
	fraction    float64 // 0: off
	fractionSet bool
	hedgeable   map[string]bool // full method names
	streams     map[string]bool // as above
}

// newOptions applies the options to the defaults and checks the result.
func newOptions(list []Option) (options, error) {
	o := options{maxTargets: defaultMaxTargets, hedgeable: map[string]bool{}, streams: map[string]bool{}}
	for i, option := range list {
		if isNil(option) {
			return options{}, fmt.Errorf("grpcmw: option %d is nil", i)
		}
		option.apply(&o)
	}
	return o, o.validate()
}

// validate names the first option that makes no sense, with its value.
func (o *options) validate() error {
	switch {
	case o.serviceSet && o.service == nil:
		return errors.New("grpcmw: WithServiceConfig: the config is nil")
	case o.configSet && o.config == nil:
		return errors.New("grpcmw: WithConfig: the function is nil")
	case o.messagesSet && isNil(o.messages):
		return errors.New("grpcmw: WithMessages: the value is nil")
	case o.retrySet && o.retry == nil:
		return errors.New("grpcmw: OnChannelRetry: the function is nil")
	case o.maxTargets < 1:
		return fmt.Errorf("grpcmw: MaxTargets %d is below 1", o.maxTargets)
	case o.fractionSet && !(o.fraction > 0 && o.fraction <= 1):
		return fmt.Errorf("grpcmw: DeadlineFraction %v is not above 0 and at most 1", o.fraction)
	}
	for option, methods := range map[string]map[string]bool{"Hedgeable": o.hedgeable, "HedgeStreams": o.streams} {
		for method := range methods {
			if !isFullMethod(method) {
				return fmt.Errorf("grpcmw: %s: %q is not of the form /package.Service/Method", option, method)
			}
		}
	}
	return nil
}

// isFullMethod reports whether s is what gRPC calls a full method name.
func isFullMethod(s string) bool {
	rest, ok := strings.CutPrefix(s, "/")
	service, method, found := strings.Cut(rest, "/")
	return ok && found && service != "" && method != "" && !strings.Contains(method, "/")
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

// WithServiceConfig obeys the hedging and retry policies, the throttling and the time-outs
// of a service config. DialOptions hands what is left of it to the channel.
func WithServiceConfig(c *ServiceConfig) Option {
	return optionFunc(func(o *options) { o.service, o.serviceSet = c, true })
}

// WithConfig lets f change the configuration of each target's hedgers. It is called with
// ClientConn.Target and with the defaults filled in, which are those of
// hedgedlimit.Config but for these:
//
//   - Delay is hedgedlimit.PerKey: each method learns its own.
//   - Classify goes on after UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED and
//     INTERNAL, and ends the call after every other code. It is handed errors of which
//     status.Code tells the code.
//   - Pushback reads grpc-retry-pushback-ms.
//   - Limiter is nil, which here means a limiter with the name of the target that lets 64
//     calls wait, and each of them for 100 ms at most. A client should rather be refused
//     than wait longer than a hedge would have taken.
//
// The result holds for the methods of Hedgeable. The hedgingPolicy or retryPolicy of a
// method replaces MaxAttempts, Delay, Retry, Gates, Classify and Pushback, and a
// retryThrottling replaces Budget; where Hedgeable meets a retryThrottling, both must
// allow a hedge.
//
// f is called once with an empty target by NewClient, for what targets beyond MaxTargets
// share, and then in the goroutine of a call to a new target, perhaps by several at once.
// If it fails, so does NewClient, or the call. A limiter that it sets is closed by
// Close. What two targets are given is shared by them.
func WithConfig(f func(target string, config *hedgedlimit.Config) error) Option {
	return optionFunc(func(o *options) { o.config, o.configSet = f, true })
}

// Hedgeable lets unary methods be hedged, given by their full names, such as
// /package.Service/Method. Name only those that may be carried out twice at the same
// time; IdempotentMethods finds those whose proto says so. A policy of the service config
// has precedence.
func Hedgeable(methods ...string) Option {
	return optionFunc(func(o *options) { add(o.hedgeable, methods) })
}

// HedgeStreams lets server-streaming methods be hedged until the first response headers,
// given by their full names: by the hedgingPolicy of the service config, or as Hedgeable
// does without one. It is off by default, since the server works on each stream until it
// is cancelled. Methods whose clients stream are never hedged.
func HedgeStreams(methods ...string) Option {
	return optionFunc(func(o *options) { add(o.streams, methods) })
}

func add(set map[string]bool, names []string) {
	for _, name := range names {
		set[name] = true
	}
}

// WithMessages makes the messages of codecs other than proto known, so that calls with
// them can be hedged. Messages of proto need nothing.
func WithMessages(m Messages) Option {
	return optionFunc(func(o *options) { o.messages, o.messagesSet = m, true })
}

// DeadlineFraction gives each attempt this share of the time that is left to its call, so
// that the server, which is told the deadline, stops before the caller does. It is off by
// default; 0.85 to 0.9 is a good choice where there are many hops. A call without a
// deadline gets none.
func DeadlineFraction(f float64) Option {
	return optionFunc(func(o *options) { o.fraction, o.fractionSet = f, true })
}

// MaxTargets bounds for how many targets limits are kept; it is 256 by default. When
// there is no room, the target that was used least lately among the idle ones is dropped,
// and what was learnt about it is lost. A target with a permit out is never dropped: if
// all are busy, newcomers share one limiter until there is room.
func MaxTargets(n int) Option {
	return optionFunc(func(o *options) { o.maxTargets = n })
}

// OnChannelRetry is told, once for each Client, the full name of a method of which an
// attempt was sent again below the interceptors: what is sent so holds no permit of its own.
// It was the channel, or an interceptor inside that goes on more than once; which of them is
// not known. Under DialOptions, which disable the channel's retries, it was not the channel.
// It is found only if the StatsHandler is installed. f runs in a goroutine of gRPC. By
// default a warning is logged by slog.
func OnChannelRetry(f func(method string)) Option {
	return optionFunc(func(o *options) { o.retry, o.retrySet = f, true })
}
