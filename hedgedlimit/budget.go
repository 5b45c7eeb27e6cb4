package hedgedlimit

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"
)

// Budget bounds the attempts beyond the primaries. Deposit is called once for
// each primary, when it starts. Withdraw is asked before a hedge or retry starts,
// and Refund takes back a withdrawal whose attempt was not started after all.
//
// An own Budget must be safe for concurrent use and must not block. It is called
// in the goroutine of the caller.
type Budget interface {
	Deposit(now time.Time)
	Withdraw(now time.Time) bool
	Refund(now time.Time)
	// Balance returns how many extra attempts could start now.
	Balance(now time.Time) float64
}

// Answer is how an attempt ended, as far as a budget is concerned.
type Answer uint8

const (
	// AnswerSuccess: it returned a result.
	AnswerSuccess Answer = iota
	// AnswerNonFatal: it failed and might be tried again, or the other side asked for
	// no further attempt.
	AnswerNonFatal
	// AnswerFatal: it failed in a way that says nothing about the load.
	AnswerFatal
)

// Follower is a Budget that follows attempts to their end. Answered is called when
// the function of an attempt has returned, before the call hears of it; an attempt
// that had been cancelled as a loser is left out, and so is one that ended with the
// caller's context, by a cancellation or by its deadline. Ended is called when the work of an
// attempt has ended, just before its permit comes back; extra is false for primaries.
// Both are called in the goroutine of the attempt, or in that which ended it. A panic
// in them is reported and ends there.
type Follower interface {
	Budget
	Answered(now time.Time, a Answer)
	Ended(now time.Time, extra bool)
}

// Unlimited is the budget without a bound. Extra attempts are then bounded by
// MaxAttempts and the limiter alone.
var Unlimited Budget = unlimited{}

type unlimited struct{}

func (unlimited) Deposit(time.Time)         {}
func (unlimited) Withdraw(time.Time) bool   { return true }
func (unlimited) Refund(time.Time)          {}
func (unlimited) Balance(time.Time) float64 { return math.Inf(1) }

const (
	defaultRatio     = 0.1
	defaultPerSecond = 1
	defaultBurst     = 3

	// token is one extra attempt in the account's unit. Whole numbers keep the
	// account exact: ten deposits of a tenth are one token and not a little less.
	// With a floor of one a second, one unit is one nanosecond.
	token = int64(time.Second)
	// maxTokens keeps sums far from overflow.
	maxTokens = 1 << 20
)

// RatioConfig describes a RatioBudget. The zero value allows one extra attempt
// for ten primaries.
type RatioConfig struct {
	// Ratio is how many extra attempts each primary pays for, from 0 to 1. 0
	// means 0.1.
	Ratio float64

	// PerSecond is paid in besides, so that a client with little traffic may
	// hedge at all, from 0 to 1,000. 0 means 1; a negative number means none.
	PerSecond float64

	// Burst is what the account holds at first, and the least that it can hold.
	// 0 means 3.
	Burst int

	_ struct{}
}

// RatioBudget is an account of extra attempts: each primary pays in Ratio at its
// start, time pays in PerSecond, each hedge or retry takes 1 out. The account
// holds at most Burst, or what one second's primaries pay in, if that is more. So
// over any window with n primaries and t seconds, extra attempts are at most
//
//	cap + Ratio·n + PerSecond·t.
//
// It may be shared between hedgers, methods and hosts, and used by any number of
// goroutines. It must be made by NewRatioBudget.
type RatioBudget struct {
	// Immutable after New. The unit is one token-th of an extra attempt.
	deposit   int64
	perSecond int64
	burst     int64

	mu sync.Mutex // a leaf
	// Guarded by mu.

	balance int64     // Invariant: 0 ≤ balance ≤ cap.
	cap     int64     // Invariant: burst ≤ cap.
	rest    uint64    // paid in by time, in units of 1/token of a unit
	last    time.Time // up to which time has paid in
	rate    float64   // primaries a second, smoothed
	counted int       // primaries since second
	second  time.Time // when counting began
}

// NewRatioBudget returns a budget that holds Burst. On a bad field it returns nil
// and an error that names the field and the value.
func NewRatioBudget(config RatioConfig) (*RatioBudget, error) {
	switch {
	case math.IsNaN(config.Ratio) || config.Ratio < 0 || config.Ratio > 1:
		return nil, fmt.Errorf("hedgedlimit: Budget: Ratio %v is not between 0 and 1", config.Ratio)
	case math.IsNaN(config.PerSecond) || config.PerSecond > 1000:
		return nil, fmt.Errorf("hedgedlimit: Budget: PerSecond %v is not a number of at most 1000", config.PerSecond)
	case config.Burst < 0 || config.Burst > maxTokens:
		return nil, fmt.Errorf("hedgedlimit: Budget: Burst %d is not between 0 and %d", config.Burst, maxTokens)
	}
	if config.Ratio == 0 {
		config.Ratio = defaultRatio
	}
	if config.PerSecond == 0 {
		config.PerSecond = defaultPerSecond
	}
	if config.Burst == 0 {
		config.Burst = defaultBurst
	}
	b := &RatioBudget{
		deposit:   int64(math.Round(config.Ratio * float64(token))),
		perSecond: int64(math.Round(max(config.PerSecond, 0) * float64(token))),
		burst:     int64(config.Burst) * token,
	}
	b.balance, b.cap = b.burst, b.burst
	return b, nil
}

// Deposit pays in for a primary that starts now.
func (b *RatioBudget) Deposit(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.counted++
	b.balance = min(b.balance+b.deposit, b.cap)
}

// Withdraw takes out one extra attempt, or returns false and takes nothing.
func (b *RatioBudget) Withdraw(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	if b.balance < token {
		return false
	}
	b.balance -= token
	return true
}

// Refund pays back one withdrawal.
func (b *RatioBudget) Refund(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.balance = min(b.balance+token, b.cap)
}

// Balance returns how many extra attempts could start now.
func (b *RatioBudget) Balance(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	return float64(b.balance) / float64(token)
}

// advance lets the time since the last call pay in, and once a second fits the
// cap to the traffic. A clock that goes back pays nothing. b.mu must be held.
func (b *RatioBudget) advance(now time.Time) {
	if b.last.IsZero() {
		b.last, b.second = now, now
		return
	}
	d := now.Sub(b.last)
	if d <= 0 {
		return
	}
	b.last = now
	if seconds := now.Sub(b.second).Seconds(); seconds >= 1 {
		// 0.3 a second: the cap follows a change of traffic within seconds, and
		// one odd second moves it little.
		weight := 1 - math.Pow(1-0.3, seconds)
		b.rate += weight * (float64(b.counted)/seconds - b.rate)
		b.counted, b.second = 0, now
		pays := min(b.rate*float64(b.deposit), float64(maxTokens*token))
		b.cap = max(b.burst, int64(pays))
	}
	// perSecond·d needs more than 64 bits, and what does not make a whole unit is
	// kept for the next time. An hour fills any account that time alone can fill.
	hi, lo := bits.Mul64(uint64(b.perSecond), uint64(min(d, time.Hour)))
	lo, carry := bits.Add64(lo, b.rest, 0)
	paid, rest := bits.Div64(hi+carry, lo, uint64(token))
	b.rest = rest
	b.balance = min(b.balance+int64(paid), b.cap)
}
