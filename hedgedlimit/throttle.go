package hedgedlimit

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// throttleUnit is one token in the account's unit: gRFC A6 allows three decimals.
const throttleUnit = 1000

// Throttle is the retryThrottling of gRFC A6: an account of tokens that each failure
// takes one from and each success pays a little into. Extra attempts are allowed
// while more than half of the tokens are there; they take none themselves. So it is
// open in quiet times, shuts when the other side fails, and never blocks. Use one for
// each server, for all of its methods. It must be made by NewThrottle and may be used
// by any number of goroutines.
type Throttle struct {
	most, ratio int64 // immutable; in throttleUnits

	// Invariant: 0 ≤ tokens ≤ most.
	tokens atomic.Int64
}

// NewThrottle returns a throttle that holds maxTokens, which is above 0 and at most
// 1000. Each success pays tokenRatio, which is cut to three decimals and is at least
// 0.001 then. On a bad number it returns nil and an error with the number.
func NewThrottle(maxTokens, tokenRatio float64) (*Throttle, error) {
	// A hair is added before cutting: 1.001 as a float64 lies below 1.001.
	units := func(x float64) int64 { return int64(math.Floor(x*throttleUnit + 1e-6)) }
	if !(maxTokens > 0 && maxTokens <= 1000) || units(maxTokens) < 1 {
		return nil, fmt.Errorf("hedgedlimit: Throttle: maxTokens %v is not above 0 and at most 1000", maxTokens)
	}
	if !(tokenRatio > 0) || math.IsInf(tokenRatio, 0) || units(tokenRatio) < 1 {
		return nil, fmt.Errorf("hedgedlimit: Throttle: tokenRatio %v is not a number of at least 0.001", tokenRatio)
	}
	t := &Throttle{most: units(maxTokens), ratio: units(min(tokenRatio, maxTokens))}
	t.tokens.Store(t.most)
	return t, nil
}

// Deposit does nothing: only answers pay.
func (t *Throttle) Deposit(time.Time) {}

// Withdraw reports whether more than half of the tokens are there. It takes none.
func (t *Throttle) Withdraw(time.Time) bool { return 2*t.tokens.Load() > t.most }

// Refund does nothing: nothing was taken.
func (t *Throttle) Refund(time.Time) {}

// Balance returns how many failures in a row would shut the throttle.
func (t *Throttle) Balance(time.Time) float64 {
	return max(0, float64(t.tokens.Load())-float64(t.most)/2) / throttleUnit
}

// Answered pays for a success and takes for a failure that is not fatal.
func (t *Throttle) Answered(_ time.Time, a Answer) {
	switch a {
	case AnswerSuccess:
		t.move(t.ratio)
	case AnswerNonFatal:
		t.move(-throttleUnit)
	case AnswerFatal:
	}
}

func (t *Throttle) move(by int64) {
	for {
		now := t.tokens.Load()
		next := min(max(now+by, 0), t.most)
		if now == next || t.tokens.CompareAndSwap(now, next) {
			return
		}
	}
}

// Ended does nothing.
func (t *Throttle) Ended(time.Time, bool) {}
