package hedgedlimit

import (
	"errors"
	"fmt"
	"time"
)

// Delay says how long a call waits for an answer before the next hedge is due.
// It is made by Fixed, Quantile or PerKey, or is a DelayFunc. A Delay may be shared
// between hedgers whose latencies are alike, and used by any number of
// goroutines.
type Delay interface {
	// next returns how long to wait before hedge number n, the first hedge being
	// 1, counted from the start of the attempt before it; false means never.
	next(now time.Time, n int) (time.Duration, bool)
	// observe takes the latency of a primary from grant to answer. Censored means
	// that it was cut short there, so the latency is only a lower bound.
	observe(now time.Time, latency time.Duration, censored bool)
	// expected returns the usual latency, if it is known.
	expected() (time.Duration, bool)
	// rest returns how much longer a primary usually takes that has taken so long, if
	// it is known.
	rest(elapsed time.Duration) (time.Duration, bool)
	validate() error
}

// Fixed is the same delay always. 0 means that all attempts start at once. A
// negative delay is refused by New.
func Fixed(d time.Duration) Delay { return fixed(d) }

type fixed time.Duration

func (f fixed) next(time.Time, int) (time.Duration, bool) { return time.Duration(f), true }
func (f fixed) observe(time.Time, time.Duration, bool)    {}
func (f fixed) expected() (time.Duration, bool)           { return 0, false }
func (f fixed) rest(time.Duration) (time.Duration, bool)  { return 0, false }

func (f fixed) validate() error {
	if f < 0 {
		return fmt.Errorf("hedgedlimit: Delay: Fixed %v is negative", time.Duration(f))
	}
	return nil
}

// DelayFunc is a delay that the user works out: it is called with the number of
// the hedge to come, the first being 1, and returns how long to wait for it from
// the start of the attempt before it. False, or a negative delay, means that no
// further hedge is sent for this call. It runs in the goroutine of the caller.
type DelayFunc func(hedge int) (time.Duration, bool)

func (f DelayFunc) next(_ time.Time, n int) (time.Duration, bool) {
	d, ok := f(n)
	return d, ok && d >= 0
}
func (f DelayFunc) observe(time.Time, time.Duration, bool)   {}
func (f DelayFunc) expected() (time.Duration, bool)          { return 0, false }
func (f DelayFunc) rest(time.Duration) (time.Duration, bool) { return 0, false }

func (f DelayFunc) validate() error {
	if f == nil {
		return errors.New("hedgedlimit: Delay is a nil DelayFunc")
	}
	return nil
}
