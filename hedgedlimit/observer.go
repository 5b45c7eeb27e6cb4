package hedgedlimit

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// AttemptEvent tells the story of one attempt.
type AttemptEvent struct {
	// Number is 1 for the primary.
	Number int
	// Kind is Primary, Hedge or Retry.
	Kind limiter.Kind
	// Start is why it was started.
	Start Start
	// Won tells that the call returned this attempt's result.
	Won bool
	// Lost tells that the call was decided without this attempt while it ran.
	Lost bool
	// Err is what its function returned, ErrGoexit, or nil; also if it panicked.
	Err error
	// Outcome is what the limit learned.
	Outcome permit.Outcome
	// Grant is what the ledger showed when the permit was taken.
	Grant permit.Grant
	// Granted, Returned and Ended are when the permit had been taken, when the
	// function had returned, and when the work had ended, just before the permit
	// was released. Decided is when a loser lost, and zero for others. Answered is
	// when the latency ended if the function said so, and zero otherwise.
	Granted, Answered, Returned, Decided, Ended time.Time
}

// Overhang is how long a loser held its permit after it had lost, and 0 for others.
func (e *AttemptEvent) Overhang() time.Duration {
	if !e.Lost {
		return 0
	}
	return e.Ended.Sub(e.Decided)
}

// SkipEvent is one attempt that was due and not sent.
type SkipEvent struct {
	// Number is what the attempt would have been.
	Number int
	Reason Skip
	At     time.Time
}

// CallEvent tells the story of one call: why each attempt was started, or was not,
// and what became of it.
type CallEvent struct {
	// Began is when Do was called, and Over when the last of its attempts had ended,
	// which may be long after it returned.
	Began, Over time.Time
	// Winner is the number of the attempt whose result was returned, or 0.
	Winner int
	// Err is what Do returned. It is nil if Do panicked.
	Err error
	// Panicked tells that Do panicked.
	Panicked bool
	// HeldBack tells that the call was one of Config.Holdback.
	HeldBack bool
	// Attempts are in the order of their numbers. There are none if the primary got no
	// permit.
	Attempts []AttemptEvent
	// Skips are the attempts that were due and not sent, in the order of time, but for
	// the last of more than 16. SkipsLeftOut is how many more there were.
	Skips        []SkipEvent
	SkipsLeftOut int
}

// maxSkips bounds what one call remembers: a short delay comes due often.
const maxSkips = 16

// skipLog collects the skips of one call.
type skipLog struct {
	events  []SkipEvent
	leftOut int
}

func (l *skipLog) add(e SkipEvent) {
	if len(l.events) == maxSkips {
		l.leftOut++
		return
	}
	l.events = append(l.events, e)
}

// event returns the story of an attempt that has ended.
func (t *attempt) event() AttemptEvent {
	t.call.mu.Lock()
	defer t.call.mu.Unlock()
	return AttemptEvent{
		Number: t.number, Kind: t.kind, Start: t.why,
		Won: t.won, Lost: t.decided != 0, Err: t.err, Outcome: t.final, Grant: t.permit.Grant(),
		Granted: t.granted, Answered: t.at(t.answered), Returned: t.at(t.returned), Decided: t.at(t.decided), Ended: t.at(t.ended),
	}
}

// event returns the story of a call that is over.
func (c *call) event(now time.Time) CallEvent {
	e := CallEvent{
		Began: c.began, Over: now, Err: c.end.err, Panicked: c.end.panicked, HeldBack: c.heldBack,
		Skips: slices.Clip(c.skips.events), SkipsLeftOut: c.skips.leftOut,
	}
	if c.end.winner != nil {
		e.Winner = c.end.winner.number
	}
	if e.Panicked {
		e.Err = nil
	}
	for _, t := range c.attempts {
		e.Attempts = append(e.Attempts, t.event())
	}
	return e
}
