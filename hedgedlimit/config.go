package hedgedlimit

import (
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

const (
	defaultMaxAttempts = 2
	// maxMaxAttempts is the most that gRFC A6 lets a service config ask for.
	maxMaxAttempts = 5
)

// Config describes a Hedger. The zero value is a working one: at most one hedge a
// call, after the 95th percentile of the latency, within a budget of a tenth of
// the calls, under a limiter that finds its limit by itself.
type Config struct {
	// Limiter gives the permits. Nil means limiter.New with its defaults. It may
	// be shared with other hedgers and with code that hedges nothing.
	Limiter *limiter.Limiter

	// MaxAttempts is the most attempts of one call, the primary included, from 1
	// (no hedging) to 5. 0 means 2.
	MaxAttempts int

	// Delay says how long to wait before the next hedge: Fixed, Quantile or
	// DelayFunc. Nil means Quantile(QuantileConfig{}).
	Delay Delay

	// Budget bounds hedges and retries as a share of the primaries. Nil means
	// NewRatioBudget(RatioConfig{}) of its own; Unlimited has no bound. It may be
	// shared between hedgers.
	Budget Budget

	// Classify says what the error of an attempt means for its call. Nil means
	// NonFatal for every error. It is not asked about nil errors.
	Classify func(error) Verdict

	// Losers says what happens to attempts that still run when the call has been
	// decided. The zero value cancels them.
	Losers LoserPolicy

	// OnAttempt is told of each attempt that has ended, after its permit was
	// released, in the goroutine that ended it. Nil means nobody is told.
	OnAttempt func(AttemptEvent)

	// OnPanic is told of every panic in code of the user that a call runs, with
	// its stack. A panic of the attempt's function, a classifier, the delay or the
	// budget is raised again in the caller, with the same value, while the call is
	// undecided; later ones, and those of OnAttempt and Discard, end there. Nil
	// means an error in the default slog logger.
	OnPanic func(value any, stack []byte)

	_ struct{}
}

// AttemptEvent tells the story of one attempt.
type AttemptEvent struct {
	// Number is 1 for the primary.
	Number int
	// Kind is Primary, Hedge or Retry.
	Kind limiter.Kind
	// Won tells that the call returned this attempt's result.
	Won bool
	// Lost tells that the call was decided without this attempt while it ran.
	Lost bool
	// Outcome is what the limit learned.
	Outcome permit.Outcome
	// Grant is what the ledger showed when the permit was taken.
	Grant permit.Grant
	// Granted, Returned and Ended are when the permit had been taken, when the
	// function had returned, and when the work had ended, just before the permit
	// was released. Decided is when a loser lost, and zero for others.
	Granted, Returned, Decided, Ended time.Time
}

// validate names the first field that makes no sense, with its value.
func (c *Config) validate() error {
	if c.MaxAttempts < 0 || c.MaxAttempts > maxMaxAttempts {
		return fmt.Errorf("hedgedlimit: MaxAttempts %d is not between 0 and %d", c.MaxAttempts, maxMaxAttempts)
	}
	for field, v := range map[string]any{"Budget": c.Budget, "Delay": c.Delay} {
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
			return fmt.Errorf("hedgedlimit: %s is a nil %T", field, v)
		}
	}
	if c.Delay != nil {
		if err := c.Delay.validate(); err != nil {
			return err
		}
	}
	return c.Losers.validate()
}

// fill replaces nil and 0 by the defaults.
func (c *Config) fill() error {
	if c.Limiter == nil {
		l, err := limiter.New(limiter.Config{})
		if err != nil {
			return err
		}
		c.Limiter = l
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = defaultMaxAttempts
	}
	if c.Delay == nil {
		c.Delay = Quantile(QuantileConfig{})
	}
	if c.Budget == nil {
		b, err := NewRatioBudget(RatioConfig{})
		if err != nil {
			return err
		}
		c.Budget = b
	}
	if c.Classify == nil {
		c.Classify = func(error) Verdict { return NonFatal }
	}
	if c.OnPanic == nil {
		name := c.Limiter.Name()
		c.OnPanic = func(value any, stack []byte) {
			slog.Error("hedgedlimit: panic in an attempt or a callback", "limiter", name, "panic", value, "stack", string(stack))
		}
	}
	return nil
}
