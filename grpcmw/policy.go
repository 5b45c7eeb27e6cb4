package grpcmw

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// maxAttempts is what gRFC A6 allows a call at most, the first attempt included. A
// config that asks for more gets this many, and no error.
const maxAttempts = 5

// HedgingPolicy is a hedgingPolicy of gRFC A6: the attempts of a call follow each other
// after Delay, or at once after a failure that is not fatal, until one succeeds or
// fails fatally. It is for methods that may be carried out many times.
type HedgingPolicy struct {
	// MaxAttempts counts the first attempt, and is 2 or more. Above 5 it means 5.
	MaxAttempts int
	// Delay is the time between attempts. 0 sends them all at once.
	Delay time.Duration
	// NonFatal are the codes after which other attempts go on. OK is not one. All
	// others, by default every one, end the call.
	NonFatal []codes.Code

	_ struct{}
}

// RetryPolicy is a retryPolicy of gRFC A6: an attempt that failed with a code of
// Retryable is followed by another, the n-th after min(InitialBackoff ×
// BackoffMultiplierⁿ⁻¹, MaxBackoff) and a jitter of a fifth.
type RetryPolicy struct {
	// MaxAttempts counts the first attempt, and is 2 or more. Above 5 it means 5.
	MaxAttempts int
	// InitialBackoff and MaxBackoff are above 0. MaxBackoff may be the smaller one: it
	// caps the first retry's too.
	InitialBackoff, MaxBackoff time.Duration
	// BackoffMultiplier is above 0. Below 1 the back-off becomes shorter.
	BackoffMultiplier float64
	// Retryable are the codes that are retried: at least one, and not OK.
	Retryable []codes.Code

	_ struct{}
}

// Throttling is the retryThrottling of gRFC A6, which bounds the hedges and retries of
// all methods of a server together: see hedgedlimit.NewThrottle, which takes both
// numbers as they are here.
type Throttling struct {
	// MaxTokens is above 0 and at most 1000, with three decimals at most.
	MaxTokens float64
	// TokenRatio is what a success pays, cut to three decimals; it is at least 0.001
	// then. Above 1000 it means 1000, which fills any account.
	TokenRatio float64

	_ struct{}
}

// check brings p into its normal form, or returns what is wrong with it.
func (p *HedgingPolicy) check(at path) (err error) {
	if p.MaxAttempts, err = checkAttempts(at, p.MaxAttempts); err != nil {
		return err
	}
	if p.Delay < 0 {
		return at.field("hedgingDelay").errorf("%v is negative", p.Delay)
	}
	p.NonFatal, err = checkCodes(at.field("nonFatalStatusCodes"), p.NonFatal)
	return err
}

// check brings p into its normal form, or returns what is wrong with it.
func (p *RetryPolicy) check(at path) (err error) {
	if p.MaxAttempts, err = checkAttempts(at, p.MaxAttempts); err != nil {
		return err
	}
	switch {
	case p.InitialBackoff <= 0:
		return at.field("initialBackoff").errorf("%v is not above 0", p.InitialBackoff)
	case p.MaxBackoff <= 0:
		return at.field("maxBackoff").errorf("%v is not above 0", p.MaxBackoff)
	case !(p.BackoffMultiplier > 0) || math.IsInf(p.BackoffMultiplier, 0):
		return at.field("backoffMultiplier").errorf("%v is not a number above 0", p.BackoffMultiplier)
	case len(p.Retryable) == 0:
		return at.field("retryableStatusCodes").errorf("is empty")
	}
	p.Retryable, err = checkCodes(at.field("retryableStatusCodes"), p.Retryable)
	return err
}

func checkAttempts(at path, n int) (int, error) {
	if n < 2 {
		return 0, at.field("maxAttempts").errorf("%d is below 2", n)
	}
	return min(n, maxAttempts), nil
}

// checkCodes returns a sorted copy of list that has each code once, or nil if there is
// none.
func checkCodes(at path, list []codes.Code) ([]codes.Code, error) {
	for i, code := range list {
		switch {
		case code >= codes.Code(len(codeNames)):
			return nil, at.item(i).errorf("%d is not a status code", code)
		case code == codes.OK:
			return nil, at.item(i).errorf("OK is not a failure")
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list), nil
}

// codeNames are the names of the status codes in a service config, by their numbers.
// One L in CANCELED is Go's own spelling.
var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// codeNamed returns the code with this name, in upper or lower case.
func codeNamed(name string) (codes.Code, bool) {
	for code, known := range codeNames {
		// The same length, since letters beyond ASCII fold to some of ASCII.
		if len(name) == len(known) && strings.EqualFold(name, known) {
			return codes.Code(code), true
		}
	}
	return 0, false
}

// checkThrottling returns the throttling of two decimal numbers.
func checkThrottling(at path, maxTokens, tokenRatio string) (*Throttling, error) {
	most, exact, ok := thousandths(maxTokens)
	switch at := at.field("maxTokens"); {
	case !ok || most > 1000_000 || most < 0 || most == 0 && exact:
		return nil, at.errorf("%s is not a number above 0 and at most 1000", cut(maxTokens, shownValue))
	case !exact:
		return nil, at.errorf("%s has more than three decimals", cut(maxTokens, shownValue))
	}
	ratio, _, ok := thousandths(tokenRatio)
	if !ok || ratio < 1 {
		return nil, at.field("tokenRatio").errorf("%s is not a number of at least 0.001", cut(tokenRatio, shownValue))
	}
	// A whole number over 1000 is the float64 next to the decimal, which
	// hedgedlimit.NewThrottle turns back into that whole number.
	return &Throttling{MaxTokens: float64(most) / 1000, TokenRatio: float64(min(ratio, 1000_000)) / 1000}, nil
}

// decimal returns the shortest decimal number that is x as a float64: what a Go
// program that says 1.001 means.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
