package hedgedlimit_test

import (
	"context"
	"errors"
	"strings"
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
	} {
		if p.String() != want {
			t.Errorf("%q, want %q", p, want)
		}
	}
}
