package grpcmw

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/limiter"
)

const (
	defaultMaxExtra = 0.10
	defaultPushback = time.Second

	// maxPushback is the longest that gRFC A6 can say.
	maxPushback = math.MaxInt32 * time.Millisecond
)

// A ServerOption changes what NewServer makes. Options are applied in order; of two of the
// same kind the later one counts.
type ServerOption interface {
	applyServer(*serverOptions)
}

// serverOptions is what the options set. Its zero value is not the default; see
// newServerOptions.
type serverOptions struct {
	limiter     *limiter.Limiter
	limiterSet  bool
	maxExtra    float64
	pushback    time.Duration
	refusalCode codes.Code
	exempt      func(fullMethod string) bool
	exemptSet   bool
	reports     bool
}

// newServerOptions applies the options to the defaults and checks the result.
func newServerOptions(list []ServerOption) (serverOptions, error) {
	o := serverOptions{maxExtra: defaultMaxExtra, pushback: defaultPushback, refusalCode: codes.ResourceExhausted}
	for i, option := range list {
		if isNil(option) {
			return serverOptions{}, fmt.Errorf("grpcmw: option %d is nil", i)
		}
		option.applyServer(&o)
	}
	switch {
	case o.limiterSet && o.limiter == nil:
		return serverOptions{}, errors.New("grpcmw: ServerLimiter: the limiter is nil")
	case !(o.maxExtra >= 0 && o.maxExtra <= 1): // NaN is neither
		return serverOptions{}, fmt.Errorf("grpcmw: MaxExtra %v is not from 0 to 1", o.maxExtra)
	case o.pushback > maxPushback:
		return serverOptions{}, fmt.Errorf("grpcmw: Pushback %v exceeds %v", o.pushback, maxPushback)
	case o.refusalCode != codes.ResourceExhausted && o.refusalCode != codes.Unavailable:
		return serverOptions{}, fmt.Errorf("grpcmw: RefusalCode %v is neither ResourceExhausted nor Unavailable", o.refusalCode)
	case o.exemptSet && o.exempt == nil:
		return serverOptions{}, errors.New("grpcmw: Exempt: the function is nil")
	case o.limiterSet:
		return o, nil
	}
	var err error
	o.limiter, err = limiter.New(limiter.Config{
		Name:       "grpc server",
		MaxWaiting: defaultMaxWaiting,
		MaxWait:    defaultMaxWait,
		LIFOAfter:  limiter.HalfMaxWait,
	})
	return o, err
}

type serverOptionFunc func(*serverOptions)

func (f serverOptionFunc) applyServer(o *serverOptions) { f(o) }

// ServerLimiter takes the permits from l, whose configuration says who may wait and for
// how long. It may be shared, with other Servers or with other work of the same process.
// It stays its owner's: Close of the Server does not close it. Two Servers, or a Server and
// a Handler of httpmw, that a call passes one inside the other need a permit each: with one
// limiter they could wait for each other. With limiter.Config.Shadow hedges and retries are
// refused for their share all the same; MaxExtra(1) lets them in.
func ServerLimiter(l *limiter.Limiter) ServerOption {
	return serverOptionFunc(func(o *serverOptions) { o.limiter, o.limiterSet = l, true })
}

// MaxExtra bounds the hedges and retries that are let in as a share of all calls of the
// last ten seconds; it is 0.10 by default, and 3 may come within them in any case. 0
// refuses all of them, and 1 none for this reason. They are told by the metadata
// grpc-previous-rpc-attempts, which gRPC's clients set and those of this package too. A
// number above 0 marks one, written as gRFC A6 has it, and anything else counts as none,
// so that nothing is gained by what was made up. The share is there for overload: while
// more than half of the permits are free nobody is refused for it, and who comes then does
// not count. A call that is not marked never is refused for it.
//
// Besides, a marked call is let in only if a permit is free at once and beyond the limiter's
// reserve, or if nothing is in flight. The metadata does not tell a retry, which might wait
// as first attempts do, from a hedge, whose caller waits for another answer already.
func MaxExtra(ratio float64) ServerOption {
	return serverOptionFunc(func(o *serverOptions) { o.maxExtra = ratio })
}

// Pushback is when a client that was refused should try again, in whole milliseconds,
// rounded up; it is one second by default. 0 is at once, which may do where the next
// attempt goes to another server, and below 0 is not at all. A client obeys it only in
// methods that it retries or hedges after the RefusalCode, and takes it for exact: the
// back-off, with its jitter, is replaced.
func Pushback(d time.Duration) ServerOption {
	return serverOptionFunc(func(o *serverOptions) { o.pushback = d })
}

// RefusalCode is the status of a first attempt that was refused because there was no room:
// codes.ResourceExhausted, the default, or codes.Unavailable, which more clients retry. A hedge
// or retry that was refused as one is Unavailable in any case. Clients whose service config
// names neither among its retryableStatusCodes or nonFatalStatusCodes give up after it.
func RefusalCode(code codes.Code) ServerOption {
	return serverOptionFunc(func(o *serverOptions) { o.refusalCode = code })
}

// Exempt lets calls of methods pass without a permit for which f returns true: they are
// never refused, nor counted in flight, and teach the limit nothing. gRPC's own services
// for health checks and reflection pass in any case. f is called with the full name, such
// as /package.Service/Method, in the goroutine of the call, before anything else.
func Exempt(f func(fullMethod string) bool) ServerOption {
	return serverOptionFunc(func(o *serverOptions) { o.exempt, o.exemptSet = f, true })
}

// alwaysExempt reports whether a method is one by which others watch or explore a server.
// Each client may keep a health check's stream open for as long as it is connected, and
// a limit full of those would serve nothing.
func alwaysExempt(fullMethod string) bool {
	return strings.HasPrefix(fullMethod, "/grpc.health.v1.Health/") ||
		strings.HasPrefix(fullMethod, "/grpc.reflection.v1.ServerReflection/") ||
		strings.HasPrefix(fullMethod, "/grpc.reflection.v1alpha.ServerReflection/")
}

// AcceptReports lets handlers say by Report what the limit should learn. Their context is
// another one then, and so is the ServerStream that has it.
func AcceptReports() ServerOption {
	return serverOptionFunc(func(o *serverOptions) { o.reports = true })
}
