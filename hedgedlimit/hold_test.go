package hedgedlimit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// holder runs one call whose primary takes n holds and returns err after 10 ms. It
// returns the releases, the attempt's context, and where its event will be.
func holder(t *testing.T, h **hedgedlimit.Hedger, n int, err error) (releases []func(permit.Outcome), ctx context.Context, event *hedgedlimit.AttemptEvent) {
	event = new(hedgedlimit.AttemptEvent)
	*h = newHedger(t, hedgedlimit.Config{
		MaxAttempts: 1,
		OnAttempt:   func(e hedgedlimit.AttemptEvent) { *event = e },
	})
	_, got := hedgedlimit.Do(t.Context(), *h, func(c context.Context, a hedgedlimit.Attempt) (int, error) {
		ctx = c
		for range n {
			releases = append(releases, a.Hold())
		}
		time.Sleep(10 * ms)
		return 1, err
	})
	if got != err { //nolint:errorlint // unchanged
		t.Errorf("Do returned %v, want %v", got, err)
	}
	return releases, ctx, event
}

func TestHoldKeepsPermitAndContextUntilTheLastRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *hedgedlimit.Hedger
		releases, ctx, event := holder(t, &h, 3, nil)
		for _, release := range releases {
			settle(time.Minute)
			if h.Limiter().InFlight() != 1 || ctx.Err() != nil || event.Number != 0 {
				t.Fatalf("before the last release: in flight %d, context %v, event %+v", h.Limiter().InFlight(), ctx.Err(), *event)
			}
			release(permit.Success)
		}
		synctest.Wait()
		if ctx.Err() == nil || !event.Won || event.Outcome != permit.Success {
			t.Errorf("after the last release: context %v, event %+v", ctx.Err(), *event)
		}
		// The limit learns from the latency of the function, not of what came after.
		if event.Returned.Sub(event.Granted) != 10*ms || event.Ended.Sub(event.Granted) != 3*time.Minute+10*ms {
			t.Errorf("times: %+v", *event)
		}
		probe(t, h)
	})
}

func TestReleaseOfAHoldCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *hedgedlimit.Hedger
		releases, _, event := holder(t, &h, 2, nil)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { releases[0](permit.Success) })
		}
		wg.Wait()
		if h.Limiter().InFlight() != 1 {
			t.Fatal("one release, called ten times, counted as two")
		}
		releases[1](permit.Success)
		releases[1](permit.Overload) // too late to count
		if event.Outcome != permit.Success {
			t.Errorf("outcome %v", event.Outcome)
		}
		probe(t, h)
	})
}

// The releases of a Hold are told apart by a bit, of which a word has 64.
func TestEachOfManyHoldsCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 130
		var h *hedgedlimit.Hedger
		releases, _, event := holder(t, &h, n, nil)
		for i, release := range releases {
			if h.Limiter().InFlight() != 1 {
				t.Fatalf("the attempt has ended after %d of %d releases", i, n)
			}
			release(permit.Success)
			if i < n-1 {
				release(permit.Overload)
			}
		}
		if event.Outcome != permit.Success {
			t.Errorf("outcome %v", event.Outcome)
		}
		probe(t, h)
	})
}

// A record is used again, so a release that is called after its call is over finds the
// memory of another call.
func TestLateReleaseDoesNotReachAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		var releases []func(permit.Outcome)
		for range 20 {
			_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
				releases = append(releases, a.Hold())
				return 1, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			current := len(releases) - 1
			for _, late := range releases[:current] {
				late(permit.Overload)
			}
			if h.Limiter().InFlight() != 1 {
				t.Fatal("a release of a call that is over has ended the attempt of another")
			}
			releases[current](permit.Success)
			synctest.Wait()
		}
		if n := h.Stats().Ended[limiter.Primary][permit.Success]; n != 20 {
			t.Errorf("%d of 20 attempts were a success", n)
		}
		probe(t, h)
	})
}

func TestFirstOutcomeOtherThanSuccessDecides(t *testing.T) {
	const bad = permit.Outcome(200)
	for _, c := range []struct {
		err  error
		held []permit.Outcome
		want permit.Outcome
	}{
		{nil, []permit.Outcome{permit.Success}, permit.Success},
		{nil, []permit.Outcome{permit.Overload}, permit.Overload},
		{nil, []permit.Outcome{permit.Success, permit.Canceled, permit.Overload}, permit.Canceled},
		{nil, []permit.Outcome{permit.Ignored, permit.Overload}, permit.Ignored},
		{context.DeadlineExceeded, []permit.Outcome{permit.Overload}, permit.Expired}, // the function's own outcome stands
		{nil, []permit.Outcome{bad}, permit.Ignored},                                  // no outcome: nothing is learnt
	} {
		synctest.Test(t, func(t *testing.T) {
			var h *hedgedlimit.Hedger
			releases, _, event := holder(t, &h, len(c.held), c.err)
			for i, release := range releases {
				release(c.held[i])
			}
			if event.Outcome != c.want || h.Stats().Ended[limiter.Primary][c.want] != 1 {
				t.Errorf("%v, %v: outcome %v, want %v", c.err, c.held, event.Outcome, c.want)
			}
			probe(t, h)
		})
	}
}

// A Hold outlives the failure of its function: whoever took it says when its work
// has ended. The call goes on meanwhile.
func TestHoldOutlivesTheFailureOfItsFunction(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":  func() error { return errFatal },
		"panic":  func() error { panic("hold") },
		"goexit": func() error { goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHedger(t, hedgedlimit.Config{OnPanic: func(any, []byte) {}})
				var release func(permit.Outcome)
				_, err := caught(func() (int, error) {
					return hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
						release = a.Hold()
						return 0, fail()
					})
				})
				settle(time.Minute)
				if err == nil || h.Limiter().InFlight() != 1 || h.Limiter().Stats().Ledger.Overhang != 1 {
					t.Errorf("Do returned %v; %+v", err, h.Limiter().Stats().Ledger)
				}
				release(permit.Success)
				probe(t, h)
			})
		})
	}
}

func TestHoldOfALoserKeepsItsPermit(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Losers: p})
		var release func(permit.Outcome)
		var order []string
		_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() == 2 {
				return 2, nil
			}
			release = a.Hold()
			time.Sleep(100 * ms)
			return 1, nil
		}, hedgedlimit.Discard(func(n int) { order = append(order, "discard") }))
		settle(time.Hour)
		if err != nil || len(order) != 1 || h.Limiter().InFlight() != 1 {
			t.Errorf("Do returned %v; discarded %v; in flight %d", err, order, h.Limiter().InFlight())
		}
		release(permit.Success)
		probe(t, h)
	})
}

func TestHoldAfterTheEndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		var attempt hedgedlimit.Attempt
		_, _ = hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			attempt = a
			return 1, nil
		})
		if _, err := caught(func() (int, error) { attempt.Hold(); return 0, nil }); err == nil {
			t.Error("an attempt that has ended could be held")
		}
		probe(t, h)
	})
}
