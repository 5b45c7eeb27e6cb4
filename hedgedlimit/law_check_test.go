package hedgedlimit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Whatever attempts do, whenever callers come and leave, whoever else uses the
// limiter and whatever becomes of the limit, the law holds:
//
//   - L1, L2: the permits out are those of the work that runs, in every instant no
//     fewer and at rest no more; each comes back when its work ends.
//   - L3, L4, L5: an attempt starts with a permit, which was granted below the limit;
//     a hedge's leaves the reserve, and was not taken past somebody who waited.
//   - L7: a call returns in the instant in which it is decided.
//   - L8: a call of which nothing runs waits for a permit, or has returned.
//   - L9: extra attempts stay within the budget over any window, and what was
//     reserved and not used comes back.
//   - L10: panics and exits of the goroutine leave the accounts balanced.
//   - L11: in the end nothing is left.
func TestLawHolds(t *testing.T) { rapid.Check(t, checkLaw) }

func checkLaw(t *rapid.T) {
	rapid.SyncTest(t, func(t *rapid.T) {
		w := &law{t: t, script: drawScript(t), others: map[int]bool{}, queueing: map[int]time.Time{}}
		w.l = w.script.newLimiter(t)
		budget := countingBudget{hedgedlimit.Unlimited, w}
		if w.script.bounded {
			budget.Budget = newBudget(t, hedgedlimit.RatioConfig{Ratio: w.script.ratio, PerSecond: -1, Burst: w.script.burst})
		}
		for _, s := range w.script.calls {
			c := &caller{script: s, works: map[int]*work{}}
			config := w.script.config()
			config.Limiter, config.Budget = w.l, budget
			config.OnAttempt = func(e hedgedlimit.AttemptEvent) { w.onAttempt(c, e) }
			config.OnPanic = func(any, []byte) {}
			var err error
			if c.hedger, err = hedgedlimit.New(config); err != nil {
				t.Fatal(err)
			}
			w.calls = append(w.calls, c)
		}
		left := len(w.calls) + len(w.script.others)
		done := make(chan struct{}, left)
		for i := range w.calls {
			go func() { w.call(i); done <- struct{}{} }()
		}
		for i, s := range w.script.others {
			go func() { w.other(i, s); done <- struct{}{} }()
		}
		// After a violation the run goes on to its end, so that its goroutines are gone
		// when the test fails.
		for range 5000 {
			synctest.Wait()
			if running := w.check(); running == 0 && len(done) == left {
				w.finish()
				return
			}
			time.Sleep(grid / 2) // what is not on the grid is half-way
		}
		t.Fatalf("the run does not come to rest: in flight %d, %v", w.l.InFlight(), w.broken)
	})
}

// check compares everything when all that happens in an instant has happened. It
// returns how much work runs.
func (w *law) check() (running int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	ledger := w.l.Stats().Ledger
	if running = w.count(); ledger.InFlight != running {
		w.broke("L1: in flight %d, %d run", ledger.InFlight, running)
	}
	var waiting []string
	retries, overhang := 0, 0
	for i, c := range w.calls {
		for n, x := range c.works {
			if x.parts > 0 && !c.open && n != c.winner {
				overhang++
			}
		}
		if !c.open {
			continue
		}
		if !c.decisive.IsZero() {
			w.broke("L7: call %d was decided at %v and has not returned", i, c.decisive)
		}
		if c.running == 0 {
			waiting = append(waiting, fmt.Sprintf("call %d after %d attempts", i, len(c.works)))
			if len(c.works) > 0 {
				retries++
			}
			w.late(now.Sub(c.since))
		}
	}
	for i, since := range w.queueing {
		waiting = append(waiting, fmt.Sprintf("other %d", i))
		w.late(now.Sub(since))
	}
	switch {
	case ledger.Waiting != len(waiting):
		w.broke("L8: %d wait for a permit, and these have nothing running: %v", ledger.Waiting, waiting)
	case ledger.Waiting > 0 && ledger.InFlight < ledger.Limit:
		w.broke("L6: %v wait with %d of %d permits out", waiting, ledger.InFlight, ledger.Limit)
	case ledger.Overhang != overhang:
		w.broke("overhang %d, %d run whose call is over", ledger.Overhang, overhang)
	case w.taken-w.extras != retries:
		w.broke("L9: %d taken from the budget, %d used, %d retries wait", w.taken, w.extras, retries)
	}
	for _, who := range w.waited {
		if w.atOnce && slices.Contains(waiting, who) {
			w.broke("L4, L6: %s was overtaken", who)
		}
	}
	w.waited, w.atOnce = waiting, false
	w.window()
	return running
}

// late checks a wait for a permit against its bound.
func (w *law) late(wait time.Duration) {
	if w.script.maxWait > 0 && wait >= w.script.maxWait {
		w.broke("somebody waits for %v, the bound is %v", wait, w.script.maxWait)
	}
}

// window checks L9 over every window that ends now: what was taken out, less what the
// primaries paid in, has risen by no more than the cap since it was lowest. A retry
// that waits for its permit has taken its share already.
func (w *law) window() {
	balance := float64(w.taken) - w.script.ratio*float64(w.primaries)
	most := max(float64(w.script.burst), w.script.ratio*float64(len(w.calls)))
	if w.script.bounded && balance-w.lowest > most+1e-9 {
		w.broke("L9: %d taken out for %d primaries", w.taken, w.primaries)
	}
	w.lowest = min(w.lowest, balance)
}

// onAttempt is told of the end of an attempt.
func (w *law) onAttempt(c *caller, e hedgedlimit.AttemptEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := c.works[e.Number]
	switch {
	case x == nil || x.event != nil || x.kind != e.Kind:
		w.broke("an event that is not to be: %+v", e)
	case x.parts != 0 || !e.Ended.Equal(x.last):
		w.broke("L2: released at %v with %d parts of the work running, the last ended at %v", e.Ended, x.parts, x.last)
	case !e.Returned.Equal(x.returned) || e.Granted.After(x.began) || e.Outcome >= permit.NumOutcomes:
		w.broke("event %+v of work %+v", e, *x)
	}
	if x != nil {
		x.event = &e
	}
}

// answer checks what a call has come to, in the instant in which Do returns (L7).
func (w *law) answer(i int, c *caller, got id, err error) {
	now := time.Now()
	c.open, c.returned = false, now
	if now.Equal(c.deadline) {
		c.left = now // the test's own timer may be about to say so
	}
	if !c.decisive.IsZero() && !c.decisive.Equal(now) {
		w.broke("L7: call %d was decided at %v and returned at %v", i, c.decisive, now)
	}
	ended := func(number int, how ending) bool {
		x := c.works[number]
		return x != nil && x.ends == how && x.returned.Equal(now)
	}
	anyEnded := func(how ending) bool {
		for n := range c.works {
			if ended(n, how) {
				return true
			}
		}
		return false
	}
	var p panicError
	switch {
	case err == nil:
		c.winner = got.number
		if got.call != i || !ended(got.number, succeeds) {
			w.broke("call %d returned the result of %v", i, got)
		}
	case errors.As(err, &p):
		if k, ok := p.value.(id); !ok || k.call != i || !ended(k.number, panics) {
			w.broke("L10: call %d panicked with %v", i, p.value)
		}
	case errors.Is(err, hedgedlimit.ErrLost):
		w.broke("call %d returned our reason for cancelling losers: %v", i, err)
	case errors.Is(err, hedgedlimit.ErrGoexit):
		if !anyEnded(exits) {
			w.broke("call %d returned %v", i, err)
		}
	case errors.Is(err, errFatal):
		if !anyEnded(failsFatal) {
			w.broke("call %d returned %v", i, err)
		}
	case c.left.Equal(now) && err == c.reason(): //nolint:errorlint // the bare error
		c.byCtx = true
	case err == limiter.ErrLimitExceeded: //nolint:errorlint // the bare sentinel
		if len(c.works) > 0 {
			w.broke("call %d was refused after %d attempts", i, len(c.works))
		}
	case errors.Is(err, errRetryable):
		if c.running > 0 {
			w.broke("call %d failed with %d functions running: %v", i, c.running, err)
		}
	default:
		w.broke("call %d returned %v", i, err)
	}
}

// finish checks what must be true when all is over.
func (w *law) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.t
	if len(w.broken) > 0 {
		t.Fatal(strings.Join(w.broken, "\n"))
	}
	ledger := w.l.Stats().Ledger
	if ledger.InFlight != 0 || ledger.Waiting != 0 || ledger.Overhang != 0 {
		t.Errorf("L11: not at rest: %+v", ledger)
	}
	panicked := uint64(0)
	for i, c := range w.calls {
		s := c.hedger.Stats()
		identities(t, s)
		panicked += s.Panics
		var started [limiter.NumKinds]uint64
		for n, x := range c.works {
			started[x.kind]++
			w.over(t, id{i, n}, c, x)
		}
		if s.Started != started || s.Succeeded > 0 != (c.winner > 0) || s.ContextEnded > 0 && !c.left.Equal(c.returned) {
			t.Errorf("call %d: %v attempts, winner %d, %+v", i, started, c.winner, s)
		}
	}
	if panicked != uint64(w.panics) {
		t.Errorf("L10: %d panics, %d counted", w.panics, panicked)
	}
}

// over checks one attempt of a call that is over.
func (w *law) over(t *rapid.T, k id, c *caller, x *work) {
	won := c.winner == k.number
	if x.event == nil || x.event.Won != won || x.event.Won && x.event.Lost {
		t.Errorf("attempt %v, won: %v: event %+v", k, won, x.event)
	}
	want := 0
	if x.ends == succeeds && !won {
		want = 1
	}
	if x.discarded != want {
		t.Errorf("the result of attempt %v was discarded %d times, want %d", k, x.discarded, want)
	}
	// A loser is cancelled when its policy says, and not before.
	stop := c.returned
	if !c.byCtx && w.script.drain > 0 {
		stop = stop.Add(w.script.drain)
		if !c.deadline.IsZero() && c.deadline.Before(stop) {
			stop = c.deadline
		}
	}
	// If the caller leaves in the instant of the decision, either may come first.
	tie := c.left.Equal(c.returned) && x.stopped.Equal(c.returned)
	if !x.stopped.IsZero() && !x.stopped.Equal(stop) && !tie {
		t.Errorf("attempt %v was cancelled at %v, its call returned at %v: want %v", k, x.stopped, c.returned, stop)
	}
	if deaf := c.script.attempts[k.number-1].deaf; !deaf && x.returned.After(stop) {
		t.Errorf("attempt %v ran until %v and was to be cancelled at %v", k, x.returned, stop)
	}
}
