package hedgedlimit

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A Hedger holds what the calls to one dependency have in common: the limiter,
// the delay, the budget and the counts. Use it through Do.
//
// It must be made by New, may be used by any number of goroutines, and starts no
// goroutine but those of the attempts. Close waits for the losers of calls that have
// returned.
type Hedger struct {
	// Immutable after New.
	config     Config
	comparable Budget   // config.Budget, if it may be compared with others
	follower   Follower // config.Budget, if it follows attempts
	holdback   *holdback

	counts  counts
	depth   depth         // of the stacks of attempts
	records sync.Pool     // of *record[T], for whatever T was used last
	live    atomic.Int64  // 2 for each call that is not over, and 1 if closed
	over    chan struct{} // closed when live has come down to 1
	once    sync.Once     // closes over
}

// New returns a hedger. On a bad field it returns nil and an error that names the
// field and the value.
func New(config Config) (*Hedger, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if err := config.fill(); err != nil {
		return nil, err
	}
	h := &Hedger{config: config, over: make(chan struct{}), comparable: comparableBudget(config.Budget)}
	h.follower, _ = config.Budget.(Follower)
	if config.Holdback > 0 {
		h.holdback = new(holdback)
	}
	return h, nil
}

// enter lets a call begin, unless the hedger is closed. leave must follow.
func (h *Hedger) enter() bool {
	if h.live.Add(2)&1 == 0 {
		return true
	}
	h.leave()
	return false
}

// leave ends a call whose attempts have all ended.
func (h *Hedger) leave() {
	if h.live.Add(-2) == 1 {
		h.once.Do(func() { close(h.over) })
	}
}

// Close refuses all further calls, with limiter.ErrClosed, and waits until those that
// run have returned and all of their attempts have ended. It returns nil then, or
// ctx.Err() if ctx ends before; the hedger stays closed, and Close may be called
// again. It cancels nothing. The limiter, which others may use, is not closed.
func (h *Hedger) Close(ctx context.Context) error {
	if h.live.Or(1)>>1 == 0 {
		return nil
	}
	select {
	case <-h.over:
		return nil
	default:
	}
	select {
	case <-h.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Limiter returns the limiter whose permits the attempts hold.
func (h *Hedger) Limiter() *limiter.Limiter { return h.config.Limiter }

// MaxAttempts returns the most attempts that one call may have, the primary
// included.
func (h *Hedger) MaxAttempts() int { return h.config.MaxAttempts }

// Skip is why a hedge or retry that was due was not sent.
type Skip uint8

const (
	// SkipAttempts: the layers around this call had used the attempts up. It is final
	// for the call.
	SkipAttempts Skip = iota
	// SkipDeadline: less time is left than an attempt usually takes.
	SkipDeadline
	// SkipPressure, SkipStandstill, SkipSurge and SkipWin are those of Gates. The last is
	// final for the call.
	SkipPressure
	SkipStandstill
	SkipSurge
	SkipWin
	// SkipBudget: the budget had nothing left.
	SkipBudget
	// SkipPermit: no permit was free beyond the reserve; for a retry, none was to
	// be had by waiting either.
	SkipPermit

	// NumSkips is the number of reasons, for arrays indexed by Skip.
	NumSkips = 8
)

var skipNames = [NumSkips]string{"attempts", "deadline", "pressure", "standstill", "surge", "win_rate", "budget", "no_permit"}

// String returns the reason in lower case, fit for a metric label. A value that
// is no reason is "invalid".
func (s Skip) String() string {
	if int(s) >= len(skipNames) {
		return "invalid"
	}
	return skipNames[s]
}

// counts are all atomic and only ever grow.
type counts struct {
	calls, refused            atomic.Uint64
	succeeded, failed, ctxEnd atomic.Uint64
	hedged, due               atomic.Uint64
	started, won, lost        [limiter.NumKinds]atomic.Uint64
	ended                     [limiter.NumKinds][permit.NumOutcomes]atomic.Uint64
	skipped                   [NumSkips]atomic.Uint64
	panics, overhang          atomic.Uint64 // overhang in ns
}

// Stats counts what a hedger has done since it was made. The counts are read one
// after the other; at rest, when no call runs and no loser is left, they obey
//
//	Calls == Refused + Succeeded + Failed + ContextEnded
//	Started[Primary] == Calls − Refused
//	Due == Started[Hedge] + Started[Retry] + Σ Skipped
//	Started[k] == Σ Ended[k] for each kind k
//	Σ Won == Succeeded
type Stats struct {
	// Calls counts the calls of Do that got as far as asking for a permit.
	Calls uint64
	// Refused counts the calls whose primary got no permit.
	Refused uint64
	// Succeeded, Failed and ContextEnded count the calls that returned a result,
	// an error of their attempts (or a panic), and the error of their context.
	Succeeded, Failed, ContextEnded uint64
	// Hedged counts the calls for which at least one hedge was sent.
	Hedged uint64
	// Due counts the hedges and retries that were due.
	Due uint64
	// Started counts the attempts by kind; Won those whose result was returned,
	// Lost those that ran when their call was decided without them.
	Started, Won, Lost [limiter.NumKinds]uint64
	// Ended counts the attempts that have ended, each before its permit comes back.
	Ended [limiter.NumKinds][permit.NumOutcomes]uint64
	// Skipped counts the hedges and retries that were due and not sent.
	Skipped [NumSkips]uint64
	// Overhang is for how long losers held their permits after they had lost, summed
	// over those that have ended.
	Overhang time.Duration
	// Panics counts the panics in code of the user.
	Panics uint64
	// Delay is how long a call would now wait for its first hedge. DelayKnown is
	// false while there is no such delay, or it is worked out by a DelayFunc or by key.
	Delay      time.Duration
	DelayKnown bool
	// BudgetBalance is how many extra attempts the budget allows now.
	BudgetBalance float64
	// Gates is what the gates have learnt.
	Gates GateStats
	// HeldBack and Hedgeable compare the calls of which no hedge is ever sent with the
	// others. They are zero without Config.Holdback.
	HeldBack, Hedgeable Arm
}

// Stats returns the counts. It never fails and may be called at any time.
func (h *Hedger) Stats() Stats {
	c := &h.counts
	now := time.Now()
	s := Stats{
		Hedged:        c.hedged.Load(),
		Due:           c.due.Load(),
		Panics:        c.panics.Load(),
		Overhang:      time.Duration(c.overhang.Load()),
		Calls:         c.calls.Load(),
		Refused:       c.refused.Load(),
		Succeeded:     c.succeeded.Load(),
		Failed:        c.failed.Load(),
		ContextEnded:  c.ctxEnd.Load(),
		BudgetBalance: h.config.Budget.Balance(now),
		Gates:         h.config.Gates.Stats(),
	}
	if h.holdback != nil {
		s.HeldBack, s.Hedgeable = h.holdback.stats()
	}
	for k := range s.Started {
		s.Started[k] = c.started[k].Load()
		s.Won[k] = c.won[k].Load()
		s.Lost[k] = c.lost[k].Load()
		for o := range s.Ended[k] {
			s.Ended[k][o] = c.ended[k][o].Load()
		}
	}
	for i := range s.Skipped {
		s.Skipped[i] = c.skipped[i].Load()
	}
	// A DelayFunc is the user's code for one call, not for a scrape.
	if _, ok := h.config.Delay.(DelayFunc); !ok && h.config.Retry == nil {
		s.Delay, s.DelayKnown = h.config.Delay.next(now, 1)
	}
	return s
}

// panicked counts a panic in code of the user and tells OnPanic. A panic of
// OnPanic itself is logged and ends there.
func (h *Hedger) panicked(value any) {
	h.counts.panics.Add(1)
	stack := debug.Stack()
	defer func() {
		if v := recover(); v != nil {
			slog.Error("hedgedlimit: panic in OnPanic", "panic", v, "while reporting", value)
		}
	}()
	h.config.OnPanic(value, stack)
}

// guard runs a callback of the user whose failure must not spread: a panic is
// reported and ends here.
func (h *Hedger) guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			h.panicked(v)
		}
	}()
	f()
}
