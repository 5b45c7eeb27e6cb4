package hedgedlimit

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

const (
	defaultMaxAttempts = 2
	// maxMaxAttempts is the most that gRFC A6 lets a service config ask for.
	maxMaxAttempts = 5
)

// Config describes a Hedger. The zero value is a working one: at most one hedge a
// call, after the 95th percentile of the latency, within a budget of a tenth of
// the calls, where the gates see room and hedges pay, under a limiter that finds its
// limit by itself.
type Config struct {
	// Limiter gives the permits. Nil means limiter.New with its defaults. It may
	// be shared with other hedgers and with code that hedges nothing.
	Limiter *limiter.Limiter

	// MaxAttempts is the most attempts of one call, the primary included, from 1
	// (no hedging) to 5. 0 means 2.
	MaxAttempts int

	// Delay says how long to wait before the next hedge: Fixed, Quantile, PerKey or
	// DelayFunc. Nil means Quantile(QuantileConfig{}). With Retry it must be nil.
	Delay Delay

	// Gates keep hedges from doing harm. Nil means new ones; NoGates are none.
	// Hedgers that share a limiter should share theirs.
	Gates *Gates

	// Budget bounds hedges and retries as a share of the primaries. Nil means
	// NewRatioBudget(RatioConfig{}) of its own; Unlimited has no bound. It may be
	// shared between hedgers.
	Budget Budget

	// Retry makes attempts follow failures only, each after a back-off: no hedge is
	// ever sent. Nil means hedging, and a retry follows a failure at once.
	Retry *Backoff

	// Pushback reads from the error of an attempt when the other side wants the next
	// one, if it said so: the next attempt of the call is then due after that time,
	// and neither before nor by a delay or back-off. A negative time means never: no
	// further attempt of the call is sent. Nil means that it never says so.
	Pushback func(error) (after time.Duration, ok bool)

	// Holdback is the share of calls, from 0 to 1, of which no hedge is ever sent.
	// They are counted apart, as Stats.HeldBack, to compare with.
	Holdback float64

	// Rand returns a random number of [0, 1): for the win gate, the holdback and the
	// back-off. Nil means that of math/rand/v2. It must be safe for concurrent use.
	Rand func() float64

	// Classify says what the error of an attempt means for its call. Nil means
	// NonFatal for every error. It is not asked about nil errors.
	Classify func(error) Verdict

	// Losers says what happens to attempts that still run when the call has been
	// decided. The zero value cancels them.
	Losers LoserPolicy

	// OnAttempt is told of each attempt that has ended, after its permit was
	// released, in the goroutine that ended it. Nil means nobody is told.
	OnAttempt func(AttemptEvent)

	// Observer is told the story of each call, when its last attempt has ended, in the
	// goroutine that ended it. Nil means nobody is told, and nothing is noted down.
	Observer func(CallEvent)

	// OnPanic is told of every panic in code of the user that a call runs, with
	// its stack. A panic of the attempt's function, a classifier, the delay or the
	// budget is raised again in the caller, with the same value, while the call is
	// undecided; later ones, and those of OnAttempt, Observer and Discard, end there. Nil
	// means an error in the default slog logger.
	OnPanic func(value any, stack []byte)

	_ struct{}
}

// validate names the first field that makes no sense, with its value.
func (c *Config) validate() error {
	if c.MaxAttempts < 0 || c.MaxAttempts > maxMaxAttempts {
		return fmt.Errorf("hedgedlimit: MaxAttempts %d is not between 0 and %d", c.MaxAttempts, maxMaxAttempts)
	}
	for field, v := range map[string]any{"Budget": c.Budget, "Delay": c.Delay} {
		if isNilPointer(v) {
			return fmt.Errorf("hedgedlimit: %s is a nil %T", field, v)
		}
	}
	if err := c.validateRest(); err != nil {
		return err
	}
	if c.Delay != nil {
		if err := c.Delay.validate(); err != nil {
			return err
		}
	}
	return c.Losers.validate()
}

func (c *Config) validateRest() error {
	switch {
	case c.Retry != nil && c.Delay != nil:
		return errors.New("hedgedlimit: both Retry and Delay are set: retries follow failures, hedges do not wait for them")
	case math.IsNaN(c.Holdback) || c.Holdback < 0 || c.Holdback > 1:
		return fmt.Errorf("hedgedlimit: Holdback %v is not between 0 and 1", c.Holdback)
	}
	if all, ok := c.Budget.(*allOf); ok {
		if err := all.validate(); err != nil {
			return err
		}
	}
	if c.Retry != nil {
		return c.Retry.validate()
	}
	return nil
}

// isNilPointer reports whether v is an interface around a nil pointer, which the
// ignored error of a constructor leaves behind.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
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
	if c.Gates == nil {
		c.Gates = new(Gates)
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Retry != nil {
		retry := c.Retry.filled()
		c.Retry = &retry
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
