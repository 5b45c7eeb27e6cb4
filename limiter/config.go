package limiter

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/permit"
)

// NoReserve as Config.Reserve lets hedges take the last permit.
const NoReserve = -1

// Unbounded as Config.MaxWaiting lets any number of callers wait.
const Unbounded = -1

// HalfMaxWait as Config.LIFOAfter is half of MaxWait.
const HalfMaxWait time.Duration = -1

var (
	// ErrLimitExceeded is returned when a call is refused: no permit is free and
	// it may not wait, the queue is full, or MaxWait is over. Nothing has been
	// run and no permit is held. It is returned as it is, without wrapping.
	ErrLimitExceeded = errors.New("limiter: limit exceeded")

	// ErrClosed is returned once Close has been called, also to those who were
	// waiting. It is permit.ErrClosed.
	ErrClosed = permit.ErrClosed
)

// Config describes a limiter. The zero value is a working one: it finds its
// limit by itself, starting at 20, and refuses what does not fit at once.
type Config struct {
	// Name tells limiters apart in metrics and logs. It may be empty.
	Name string

	// Algorithm sets the limit. Nil means gradient.New with its defaults. An
	// algorithm has state and must not be shared between limiters. One that is a
	// gradient.Sampler, such as those of gradient.FromLimit, is told besides of each
	// primary and retry that has succeeded or was dropped, in the goroutine that releases
	// it.
	Algorithm gradient.Algorithm

	// MaxWaiting is how many callers may wait for a permit: 0 refuses at once,
	// Unbounded (−1) lets any number wait.
	MaxWaiting int

	// MaxWait bounds one wait; the call is refused when it is over. 0 means as
	// long as the context allows. It needs MaxWaiting to be other than 0.
	MaxWait time.Duration

	// LIFOAfter says in which order those who wait are served. 0 is first in first out.
	// Above 0, or HalfMaxWait (−1), it is the pressure from which on the order turns: once
	// the one who has waited longest has waited for longer than this, the one who came last
	// is served first, until nobody has waited so long any more; see permit.Config. Choose
	// it where those who wait give up: with MaxWait or deadlines. It needs MaxWaiting to be
	// other than 0, and HalfMaxWait needs MaxWait.
	//
	// HalfMaxWait is the choice for most: MaxWait is the longest wait that is still worth
	// an answer, the target of the queue, and who has half of it behind him in a queue that
	// stands will hardly get one. A burst that is served within half of it keeps its order.
	LIFOAfter time.Duration

	// Reserve is how many permits a hedge must leave free. 0 means one tenth of
	// the limit, and at least 1; NoReserve (−1) means none.
	Reserve int

	// Shadow has the limiter measure, and refuse nothing: to see what a limit would do
	// before it does. An attempt that finds no room gets a permit outside the limit at
	// once, is counted in Stats.Shadowed, and is to the windows a refusal: it teaches no
	// latency. Nobody waits, hedges find room always, and MaxWaiting, MaxWait and
	// LIFOAfter say nothing. What is inside the limit is decided as ever, so Shadowed counts what would
	// have been refused, or made to wait, of just this traffic. But the other side
	// has all the traffic to bear: where that is more than it can take, the latency from
	// which the limit is learnt is worse than it would be, and the limit lower.
	Shadow bool

	// Classify says what the error of a finished call teaches the limit. Nil
	// means DefaultClassify. It runs in the goroutine of the call.
	Classify func(error) permit.Outcome

	// OnLimitChange is told of each new limit, after it is in force and outside
	// all locks, in the goroutine of the attempt whose end or refusal closed the
	// window. It should return quickly: that attempt's caller waits for it, and a change that
	// follows may be told on another goroutine before it has returned. The changes form a
	// chain, the New of one being the Old of the next.
	OnLimitChange func(Change)

	// OnPanic is told of a panic in Algorithm, OnLimitChange or OnLeak, with its stack.
	// The limit stays as it was and the call goes on. Nil means an error in the
	// default slog logger.
	OnPanic func(value any, stack []byte)

	// OnLeak is told of each permit whose holder lost it without a Release, on a
	// goroutine of the runtime, some time after a garbage collection. Nil means an
	// error in the default slog logger. See permit.Config for this field and the next
	// two.
	OnLeak func(permit.Leak)

	// StackEvery has one grant of about StackEvery note where it was acquired, for
	// permit.Leak. 0 means none.
	StackEvery int

	// ReclaimLeaks gives the place of a leaked permit back. Without it the permit
	// stays in flight for ever, and the limit is that much smaller.
	ReclaimLeaks bool

	_ struct{}
}

// Change is one change of the limit.
type Change struct {
	Old, New int
	// Reason is the algorithm's own word for why.
	Reason gradient.Reason
}

// isNilPointer reports whether v is an interface around a nil pointer, which the
// ignored error of a constructor leaves behind.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// validate names the first field that makes no sense, with its value.
func (c *Config) validate() error {
	switch {
	case isNilPointer(c.Algorithm):
		return fmt.Errorf("limiter: Algorithm is a nil %T", c.Algorithm)
	case c.MaxWaiting < Unbounded:
		return fmt.Errorf("limiter: MaxWaiting %d is below -1", c.MaxWaiting)
	case c.MaxWait < 0:
		return fmt.Errorf("limiter: MaxWait %v is negative", c.MaxWait)
	case c.MaxWait > 0 && c.MaxWaiting == 0:
		return fmt.Errorf("limiter: MaxWait %v needs MaxWaiting, which is 0: nobody may wait", c.MaxWait)
	case c.LIFOAfter < 0 && c.LIFOAfter != HalfMaxWait:
		return fmt.Errorf("limiter: LIFOAfter %v is negative", c.LIFOAfter)
	case c.LIFOAfter == HalfMaxWait && c.MaxWaiting == 0:
		return errors.New("limiter: LIFOAfter HalfMaxWait needs MaxWaiting, which is 0: nobody may wait")
	case c.LIFOAfter != 0 && c.MaxWaiting == 0:
		return fmt.Errorf("limiter: LIFOAfter %v needs MaxWaiting, which is 0: nobody may wait", c.LIFOAfter)
	case c.LIFOAfter == HalfMaxWait && c.MaxWait == 0:
		return errors.New("limiter: LIFOAfter HalfMaxWait needs MaxWait, which is 0")
	case c.Reserve < NoReserve:
		return fmt.Errorf("limiter: Reserve %d is below -1", c.Reserve)
	case c.StackEvery < 0:
		return fmt.Errorf("limiter: StackEvery %d is below 0", c.StackEvery)
	}
	return nil
}
