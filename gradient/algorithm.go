package gradient

import "time"

// Algorithm sets a limit. It is told what happened in one window after the other,
// and answers each with a decision.
//
// An Algorithm is pure: it has no clock, no lock and no goroutine, and two that
// are shown the same decide the same. It has state, so it must not be shared, and
// its methods must not be called at the same time; package limiter sees to that.
type Algorithm interface {
	// Start is called once, before the first window, and returns the first limit.
	Start(now time.Time) Decision
	// Next is called at the end of each window. The window and its histogram are
	// only valid during the call.
	Next(now time.Time, w *Window) Decision
}

// Window is what happened in one stretch of time.
type Window struct {
	// Limit was in force.
	Limit int
	// Elapsed is the length of the window.
	Elapsed time.Duration
	// InFlight is the mean number of attempts in flight over the window, of every
	// kind, and MaxInFlight the greatest.
	InFlight    float64
	MaxInFlight int
	// Admitted and Refused count the primaries that got a permit, and those that
	// got none. Waited counts those of the admitted that had to wait for theirs.
	Admitted, Refused, Waited int
	// Completed counts every attempt that ended, whatever its kind and whenever it
	// began, without those that the other side refused. Completed/Elapsed is the
	// throughput.
	Completed int
	// Drops counts the primaries of the present epoch that were refused by the
	// other side or ran into their deadline.
	Drops int
	// Saturated tells that a primary was refused, had to wait, or took the last
	// permit: the limit, and not the demand, bounded what was in flight.
	Saturated bool
	// Latency holds the latencies of primaries that were admitted in the present
	// epoch. Those that were cancelled or expired are lower bounds.
	Latency *Histogram

	_ struct{}
}

// Decision is the limit to put in force, and what the next window must be like.
type Decision struct {
	// Limit is at least 1.
	Limit int
	// Reason says in a word why.
	Reason Reason
	// NewEpoch tells that attempts admitted before this instant must not teach
	// latency any more: they ran under another limit.
	NewEpoch bool
	// Settle is how long to wait before the next window begins, so that work
	// admitted under the old limit can drain.
	Settle time.Duration
	// MinLength and MinSamples are what a window needs to be closed. With its age
	// it needs fewer samples; see Due.
	MinLength  time.Duration
	MinSamples int
	// Probe tells that the limit was lowered to measure, and will come back.
	Probe bool
}

// Reason is why a limit is what it is: a word for logs, metrics and traces.
type Reason string

// The reasons of the algorithms in this package.
const (
	ReasonStart    Reason = "start"     // the first limit
	ReasonHold     Reason = "hold"      // nothing speaks for a change
	ReasonIdle     Reason = "idle"      // the limit has not been needed for long
	ReasonGrow     Reason = "grow"      // fewer wait at the other side than may
	ReasonQueue    Reason = "queue"     // more wait at the other side than may
	ReasonLatency  Reason = "latency"   // above the target latency
	ReasonDrops    Reason = "drops"     // refused by the other side, or expired
	ReasonProbe    Reason = "probe"     // lowered to measure the latency without a queue
	ReasonProbeEnd Reason = "probe-end" // measured
	ReasonKnee     Reason = "knee"      // moved a little, to compare the throughput
	ReasonKneeEnd  Reason = "knee-end"  // compared
	ReasonExternal Reason = "external"  // what a limit of another library says
)

const (
	// A burst of drops needs no samples: an outage, which has none, must not hide behind
	// that. Five in one window, and one in five, is no accident. But the window has its
	// length: a refusal comes back long before a good answer does, so in the first
	// moments of a window there are hardly any others. A probe waits a second for its
	// samples all the same: the limit is low already, and what it measures stays.
	burstDrops = 5
	burstShare = 5

	// Ages from which fewer samples are enough, so that a slow service gets an
	// answer at all; a probe, which can do lasting harm, asks for more.
	oldAge, olderAge, oldestAge = time.Second, 2 * time.Second, 3 * time.Second
	oldSamples, oldProbeSamples = 10, 30
	oldestSamples               = 3
)

// Due reports whether a window of this age, with so many latency samples and
// drops, may be closed.
func (d Decision) Due(elapsed time.Duration, samples, drops int) bool {
	need := d.MinSamples
	if drops >= burstDrops && drops > samples/burstShare && (!d.Probe || elapsed > oldAge) {
		need = 0
	}
	switch {
	case elapsed > oldestAge:
		need = min(need, oldestSamples)
	case elapsed > olderAge, elapsed > oldAge && !d.Probe:
		need = min(need, oldSamples)
	case elapsed > oldAge:
		need = min(need, oldProbeSamples)
	}
	return elapsed >= d.MinLength && samples >= need
}
