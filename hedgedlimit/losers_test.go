package hedgedlimit_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// bothPolicies runs a claim that holds whatever becomes of losers.
func bothPolicies(t *testing.T, claim func(t *testing.T, p hedgedlimit.LoserPolicy)) {
	for _, p := range []hedgedlimit.LoserPolicy{hedgedlimit.Cancel(), hedgedlimit.Drain(time.Minute)} {
		t.Run(strings.Fields(p.String())[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { claim(t, p) })
		})
	}
}

// free returns how many permits are to be had.
func free(l *limiter.Limiter) int {
	s := l.Stats().Ledger
	return s.Limit - s.InFlight
}

// Field case B01: the caller's time-out is not the end of the work.
func TestDeafWorkKeepsItsPermitWhenTheCallerTimesOut(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 1, limiter.Config{}), Losers: p})
		deaf := step{takes: 300 * ms, deaf: true}
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		run(t, ctx, h, want{err: context.DeadlineExceeded, at: 50 * ms, started: []time.Duration{0}}, deaf)
		settle(50 * ms)
		if _, ok := h.Limiter().TryAcquire(limiter.Primary); ok || h.Limiter().Stats().Ledger.Overhang != 1 {
			t.Errorf("at 100 ms a permit was free: %v; %+v", ok, h.Limiter().Stats().Ledger)
		}
		settle(201 * ms)
		probe(t, h)

		// Fifty impatient callers in a row do not make the work run twice at once.
		running, peak := 0, 0
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
			_, _ = hedgedlimit.Do(ctx, h, func(context.Context, hedgedlimit.Attempt) (int, error) {
				running++ // guarded by the only permit
				peak = max(peak, running)
				time.Sleep(300 * ms)
				running--
				return 0, nil
			})
			cancel()
			time.Sleep(10 * ms)
		}
		settle(time.Second)
		if peak != 1 {
			t.Errorf("%d ran at once under a limit of 1", peak)
		}
		probe(t, h)
	})
}

// Field case B03: a loser that ignores cancellation is counted until it ends.
func TestDeafLoserKeepsItsPermitUntilItEnds(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 2, limiter.Config{}), Losers: p})
		var body func(permit.Outcome) // the winner's, read until 70 ms
		result, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() == 1 {
				time.Sleep(400 * ms)
				return 1, nil
			}
			body = a.Hold()
			time.Sleep(10 * ms)
			return 2, nil
		})
		if result != 2 || err != nil || free(h.Limiter()) != 0 {
			t.Errorf("Do returned %v, %v with %d permits free", result, err, free(h.Limiter()))
		}
		time.Sleep(10 * ms)
		body(permit.Success)
		settle(30 * ms)
		if n := free(h.Limiter()); n != 1 {
			t.Errorf("at 100 ms %d permits are free", n)
		}
		if s := h.Limiter().Stats().Ledger; s.Overhang != 1 {
			t.Errorf("nobody waits for the deaf loser, overhang is %d", s.Overhang)
		}
		settle(299 * ms)
		if n := free(h.Limiter()); n != 1 {
			t.Errorf("at 399 ms %d permits are free", n)
		}
		settle(2 * ms)
		probe(t, h)
	})
}

func TestDrainedLoserMayFinishWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []hedgedlimit.AttemptEvent
		h := newHedger(t, hedgedlimit.Config{
			Losers:    hedgedlimit.Drain(100 * ms),
			OnAttempt: func(e hedgedlimit.AttemptEvent) { events = append(events, e) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		tr := run(t, ctx, h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 159 * ms}, step{takes: 10 * ms})
		cancel() // the caller's, as a deferred cancel does; the loser is not the caller's any more
		settle(time.Second)
		if tr.ended[1] != 159*ms || len(tr.stopped) != 0 {
			t.Errorf("the loser ended after %v, cancelled after %v", tr.ended[1], tr.stopped)
		}
		e := events[len(events)-1]
		if e.Number != 1 || !e.Lost || e.Won || e.Outcome != permit.Success {
			t.Errorf("a loser that drained to its end is a full sample: %+v", e)
		}
		if e.Returned.Sub(e.Granted) != 159*ms || e.Decided.Sub(e.Granted) != 60*ms || e.Ended.Before(e.Returned) {
			t.Errorf("its times: %+v", e)
		}
		probe(t, h)
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Losers: hedgedlimit.Drain(100 * ms), MaxAttempts: 3})
		tr := run(t, t.Context(), h, want{result: 3, at: 110 * ms, started: []time.Duration{0, 50 * ms, 100 * ms}},
			step{takes: time.Hour}, step{takes: time.Hour}, step{takes: 10 * ms})
		settle(time.Second)
		for n := 1; n <= 2; n++ {
			if tr.stopped[n] != 210*ms || tr.causes[n] != hedgedlimit.ErrLost { //nolint:errorlint // the sentinel itself
				t.Errorf("loser %d was cancelled after %v for %v", n, tr.stopped[n], tr.causes[n])
			}
		}
		if h.Stats().Ended[limiter.Primary][permit.Canceled] != 1 {
			t.Errorf("a loser that was cut short is no full sample: %+v", h.Stats())
		}
		probe(t, h)
	})
}

func TestCallersDeadlineStillBoundsADrainedLoser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Losers: hedgedlimit.Drain(time.Hour)})
		ctx, cancel := context.WithTimeout(t.Context(), 200*ms)
		tr := run(t, ctx, h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 2 * time.Hour}, step{takes: 10 * ms})
		cancel()
		settle(time.Second)
		if tr.stopped[1] != 200*ms || tr.causes[1] != context.DeadlineExceeded { //nolint:errorlint // the cause itself
			t.Errorf("the loser was cancelled after %v for %v", tr.stopped[1], tr.causes[1])
		}
		// The call had its answer in time: its deadline is no sign of overload.
		if h.Stats().Ended[limiter.Primary][permit.Canceled] != 1 {
			t.Errorf("%+v", h.Stats())
		}
		probe(t, h)
	})
}

func TestCallersCancellationBeforeTheDecisionReachesEveryAttempt(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		for range 100 {
			h := newHedger(t, hedgedlimit.Config{Losers: p, MaxAttempts: 3})
			why := errors.New("the user has closed the page")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(70*ms, func() { cancel(why) })
			tr := run(t, ctx, h, want{err: context.Canceled, at: 70 * ms, started: []time.Duration{0, 50 * ms}},
				step{takes: time.Hour}, step{takes: time.Hour})
			synctest.Wait()
			for n := 1; n <= 2; n++ {
				if tr.stopped[n] != 70*ms || tr.causes[n] != why { //nolint:errorlint // the caller's cause itself
					t.Errorf("attempt %d was cancelled after %v for %v", n, tr.stopped[n], tr.causes[n])
				}
			}
			probe(t, h)
		}
	})
}

// Law L13: an attempt has the caller's deadline and values, and sees the deadline
// pass as a deadline.
func TestAttemptsSeeTheCallersDeadlineUnchanged(t *testing.T) {
	type tag struct{}
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		for range 100 {
			h := newHedger(t, hedgedlimit.Config{Losers: p, MaxAttempts: 2})
			deadline := time.Now().Add(250 * ms)
			ctx, cancel := context.WithDeadline(context.WithValue(t.Context(), tag{}, "value"), deadline)
			seen := make(chan error, 2)
			_, err := hedgedlimit.Do(ctx, h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
				if d, ok := ctx.Deadline(); !ok || !d.Equal(deadline) || ctx.Value(tag{}) != "value" {
					t.Errorf("attempt %d has deadline %v, value %v", a.Number(), d, ctx.Value(tag{}))
				}
				<-ctx.Done()
				seen <- ctx.Err()
				return 0, ctx.Err()
			})
			if err != context.DeadlineExceeded || !time.Now().Equal(deadline) { //nolint:errorlint // ctx.Err() itself
				t.Errorf("Do returned %v, %v from the deadline", err, time.Since(deadline))
			}
			for range 2 {
				if err := <-seen; err != context.DeadlineExceeded { //nolint:errorlint // what user code compares with
					t.Fatalf("an attempt saw the deadline pass as %v", err)
				}
			}
			cancel()
			synctest.Wait()
			if s := h.Stats(); s.Ended[limiter.Primary][permit.Expired] != 1 || s.Ended[limiter.Hedge][permit.Expired] != 1 {
				t.Fatalf("attempts that ran into the deadline expired: %+v", s.Ended)
			}
			probe(t, h)
		}
	})
}

func TestWinnersContextIsNotCancelledBeforeItsWorkEnds(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Losers: p})
		var winner context.Context
		var release func(permit.Outcome)
		_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() == 1 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			winner, release = ctx, a.Hold()
			return 2, nil
		})
		settle(time.Second)
		if err != nil || winner.Err() != nil {
			t.Errorf("Do returned %v; the winner's context: %v", err, winner.Err())
		}
		release(permit.Success)
		settle(2 * time.Minute)
		if winner.Err() == nil {
			t.Error("the winner's context outlives its work")
		}
		probe(t, h)
	})
}

func TestPolicyTellsItselfInWords(t *testing.T) {
	for want, p := range map[string]hedgedlimit.LoserPolicy{
		"cancel":                  {},
		"drain for at most 250ms": hedgedlimit.Drain(250 * ms),
		"chosen when the call is decided": hedgedlimit.ChooseLosers(func(time.Duration) hedgedlimit.LoserPolicy {
			return hedgedlimit.Cancel()
		}),
	} {
		if p.String() != want {
			t.Errorf("%q, want %q", p, want)
		}
	}
}

// The choice is made when the call is decided, by what is known then, and is handed the
// delay that the call has waited. What it returns is checked: nonsense cancels.
func TestLosersAreChosenWhenTheCallIsDecided(t *testing.T) {
	always := func(p hedgedlimit.LoserPolicy) func(time.Duration) hedgedlimit.LoserPolicy {
		return func(time.Duration) hedgedlimit.LoserPolicy { return p }
	}
	for name, row := range map[string]struct {
		choose  func(time.Duration) hedgedlimit.LoserPolicy
		stopped time.Duration // since the call began; it is decided after 60 ms
		free    time.Duration // when the permit of the loser is back
		panics  uint64
	}{
		"drain":          {always(hedgedlimit.Drain(100 * ms)), 160 * ms, 160 * ms, 0},
		"by the delay":   {hedgedlimit.Drain, 110 * ms, 110 * ms, 0},
		"cancel":         {always(hedgedlimit.Cancel()), 60 * ms, 60 * ms, 0},
		"linger":         {always(hedgedlimit.Linger(100 * ms)), 60 * ms, 160 * ms, 0},
		"no bound":       {always(hedgedlimit.Drain(0)), 60 * ms, 60 * ms, 0},
		"another choice": {always(hedgedlimit.ChooseLosers(always(hedgedlimit.Drain(time.Hour)))), 60 * ms, 60 * ms, 0},
		"no function":    {always(hedgedlimit.ChooseLosers(nil)), 60 * ms, 60 * ms, 0},
		"panic":          {func(time.Duration) hedgedlimit.LoserPolicy { panic("which?") }, 60 * ms, 60 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				h := newHedger(t, hedgedlimit.Config{
					OnPanic: func(any, []byte) {},
					Losers: hedgedlimit.ChooseLosers(func(delay time.Duration) hedgedlimit.LoserPolicy {
						asked++
						return row.choose(delay)
					}),
				})
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				fn, tr := script(t, step{takes: time.Hour}, step{takes: 10 * ms})
				var primary atomic.Value // its context
				result, err := hedgedlimit.Do(ctx, h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
					if a.Number() == 1 {
						primary.Store(ctx)
					}
					return fn(ctx, a)
				})
				if result != 2 || err != nil || time.Since(began) != 60*ms {
					t.Errorf("Do returned %v, %v after %v", result, err, time.Since(began))
				}
				if cut := primary.Load().(context.Context).Err() != nil; cut != (row.stopped == 60*ms) {
					t.Errorf("when Do returned, the loser was cancelled: %v", cut)
				}
				cancel() // after the decision: it reaches no loser that drains
				settle(row.free - time.Since(began) - 1)
				if row.free > 60*ms && h.Limiter().InFlight() != 1 {
					t.Errorf("in flight just before %v: %d", row.free, h.Limiter().InFlight())
				}
				settle(1)
				if tr.stopped[1] != row.stopped || asked != 1 || h.Stats().Panics != row.panics {
					t.Errorf("stopped after %v, asked %d times, %d panics", tr.stopped[1], asked, h.Stats().Panics)
				}
				probe(t, h)
			})
		})
	}
}

// A call that is alone asks nobody what to do with its losers, and one that used no
// delay says so.
func TestLosersAreChosenOnlyWhereThereAreAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var mu sync.Mutex
		var delays []time.Duration
		h := newHedger(t, hedgedlimit.Config{
			Delay: hedgedlimit.DelayFunc(func(int) (time.Duration, bool) {
				calls++
				return time.Hour, calls == 1 // the second call has none, and not that of the first
			}),
			Losers: hedgedlimit.ChooseLosers(func(d time.Duration) hedgedlimit.LoserPolicy {
				mu.Lock()
				defer mu.Unlock()
				delays = append(delays, d)
				return hedgedlimit.Drain(time.Hour)
			}),
		})
		run(t, t.Context(), h, want{result: 1, at: 10 * ms, started: []time.Duration{0}}, step{takes: 10 * ms})
		if len(delays) != 0 {
			t.Error("a call without losers had them chosen")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		tr := run(t, ctx, h, want{err: context.DeadlineExceeded, at: 10 * ms, started: []time.Duration{0}}, step{takes: time.Hour})
		settle(0)
		// The end of the caller's context is no choice: nothing drains.
		if tr.stopped[1] != 10*ms || len(delays) == 0 || delays[0] != 0 {
			t.Errorf("stopped after %v, chosen by %v", tr.stopped[1], delays)
		}
		probe(t, h)
	})
}

// Law L10: a choice that ends the caller's goroutine leaves nothing behind, not even
// the attempt that was to win.
func TestChoiceThatNeverReturnsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{
			Losers: hedgedlimit.ChooseLosers(func(time.Duration) hedgedlimit.LoserPolicy {
				runtime.Goexit()
				return hedgedlimit.Drain(time.Hour)
			}),
		})
		fn, tr := script(t, step{takes: time.Hour}, step{takes: 10 * ms})
		discarded := 0
		go func() {
			_, _ = hedgedlimit.Do(t.Context(), h, fn, hedgedlimit.Discard(func(int) { discarded++ }))
			t.Error("Do returned")
		}()
		settle(time.Second)
		if tr.stopped[1] != 60*ms || discarded != 1 {
			t.Errorf("the loser was stopped after %v, %d results were discarded", tr.stopped[1], discarded)
		}
		probe(t, h)
	})
}
