package gradient

import (
	"errors"
	"reflect"
	"sync"
	"time"
)

// Limit is what the limits of Netflix's concurrency-limits, and of the libraries that
// came of it, have in common: it is told of one call after the other.
type Limit interface {
	// EstimatedLimit returns the limit to put in force.
	EstimatedLimit() int
	// OnSample tells of one call that has ended: when it began and how long it took,
	// in nanoseconds, how many were in flight when it began, itself among them, and
	// whether it was refused by the other side or ran into its deadline.
	OnSample(startTime, rtt int64, inFlight int, didDrop bool)
}

// Sampler is an Algorithm that learns from single calls and not from windows. A limiter
// tells it of each call that teaches, as soon as it has ended, and shows it windows as
// well: these are when a new limit is asked for.
type Sampler interface {
	Algorithm
	// Sample tells of a call: when it was admitted, as a time since Start, its latency
	// from then, how many were in flight under the limit when it was, itself among
	// them, and whether it was dropped. A call that its caller cancelled, or whose
	// error says nothing about the other side, is no sample.
	//
	// It may be called at any time after Start and from any number of goroutines at
	// once, also while Next runs.
	Sample(start, latency time.Duration, inFlight int, dropped bool)
}

// External is an Algorithm around a Limit from another library. It must be made by
// FromLimit.
type External struct {
	mu sync.Mutex // a leaf, but for what the limit locks itself
	// Guarded by mu.

	limit Limit
	base  time.Time // the time of Start
}

// FromLimit makes an Algorithm of a limit in the manner of Netflix's concurrency-limits,
// such as those of platinummonkey/go-concurrency-limits. Nothing needs to be imported:
// any type with the two methods will do.
//
// The limit is told of each call under one lock, so it need not be safe for concurrent
// use, and a call costs that lock. Its answer is in force from the end of a window on,
// a tenth of a second at the earliest; the limits of concurrency-limits that collect
// windows themselves work as well, and answer later by theirs. It brings its own
// faults along: what it takes for the latency without a queue, and where it stops to
// grow, is all its own.
//
// It needs a limiter that tells a Sampler of calls. FromLimit fails, and returns nil, if
// limit is nil.
func FromLimit(limit Limit) (*External, error) {
	if v := reflect.ValueOf(limit); limit == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("gradient: FromLimit of a nil Limit")
	}
	return &External{limit: limit}, nil
}

// Start returns what the limit says at first.
func (e *External) Start(now time.Time) Decision {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.base = now
	return e.decisionLocked(ReasonStart)
}

// Sample tells the limit of a call. What no clock can have measured counts as 0.
func (e *External) Sample(start, latency time.Duration, inFlight int, dropped bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limit.OnSample(e.base.Add(start).UnixNano(), int64(max(latency, 0)), max(inFlight, 0), dropped)
}

// Next returns what the limit says now. The window itself teaches nothing: the calls in
// it have been told already.
func (e *External) Next(time.Time, *Window) Decision {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.decisionLocked(ReasonExternal)
}

// decisionLocked asks the limit. e.mu must be held.
func (e *External) decisionLocked(reason Reason) Decision {
	return Decision{
		Limit: min(max(e.limit.EstimatedLimit(), 1), maxMax), Reason: reason,
		// No window has to hold a sample: they have been told already.
		MinLength: minWindow,
	}
}
