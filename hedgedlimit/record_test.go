package hedgedlimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// An Attempt that is kept after its end tells what it was, and its Hold panics, also
// when its record serves another call by then.
func TestAttemptThatIsKeptIsNotOfTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		shared := false
		for range 100 { // a pool may forget
			var old hedgedlimit.Attempt
			call := func(fn func(a hedgedlimit.Attempt)) {
				_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) { fn(a); return 0, nil })
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			call(func(a hedgedlimit.Attempt) { old = a })
			p, _ := h.Limiter().TryAcquire(limiter.Primary) // the next grant looks different
			call(func(a hedgedlimit.Attempt) {
				shared = shared || hedgedlimit.SameRecord(old, a)
				if old.Number() != 1 || old.Kind() != limiter.Primary || old.Grant().InFlight != 1 || a.Grant().InFlight != 2 {
					t.Errorf("%v %v %+v", old.Number(), old.Kind(), old.Grant())
				}
				defer func() {
					if recover() == nil {
						t.Error("Hold of an attempt that has ended did not panic")
					}
				}()
				old.Hold()
			})
			p.Release(permit.Success)
		}
		if !shared {
			t.Error("no record was used again: the test shows nothing")
		}
		probe(t, h)
	})
}

// A loser that ends long after its call touches nothing of the calls that have begun
// since: its result goes to its own Discard, its error to nobody.
func TestLateLoserTouchesNoLaterCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 1000, limiter.Config{}), MaxAttempts: 3, Delay: hedgedlimit.Fixed(10 * ms)})
		var mu sync.Mutex
		discarded := map[string]int{}
		for i := range 200 {
			got, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (string, error) {
				time.Sleep([]time.Duration{170, 90, 5}[a.Number()-1] * ms) // deaf
				return fmt.Sprint(i, " ", a.Number()), nil
			}, hedgedlimit.Discard(func(s string) {
				mu.Lock()
				defer mu.Unlock()
				discarded[s]++
			}))
			if want := fmt.Sprint(i, " 3"); got != want || err != nil {
				t.Fatalf("call %d returned %q, %v", i, got, err)
			}
			time.Sleep(time.Duration(i%7) * ms)
		}
		settle(time.Second)
		if len(discarded) != 400 {
			t.Errorf("%d results were discarded, want 400", len(discarded))
		}
		for s, n := range discarded {
			if n != 1 {
				t.Errorf("%q was discarded %d times", s, n)
			}
		}
		probe(t, h)
	})
}

// One hedger serves calls of several types, one after the other and at once.
func TestCallsOfSeveralTypes(t *testing.T) {
	h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 100, limiter.Config{})})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				n, err := hedgedlimit.Do(context.Background(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return i, nil })
				if n != i || err != nil {
					t.Errorf("%v, %v", n, err)
				}
				s, err := hedgedlimit.Do(context.Background(), h, func(context.Context, hedgedlimit.Attempt) (string, error) { return "x", nil })
				if s != "x" || err != nil {
					t.Errorf("%v, %v", s, err)
				}
			}
		})
	}
	wg.Wait()
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	probe(t, h)
}

// A timer that fires in the instant in which it is set gives its right to the record back
// before the caller has gone on. The record must not be used again by then, or the caller
// finds nothing in it.
func TestTimerThatFiresAtOnceDoesNotEndTheCall(t *testing.T) {
	h := newHedger(t, hedgedlimit.Config{
		MaxAttempts: 3, Delay: hedgedlimit.Fixed(0),
		Classify: func(error) hedgedlimit.Verdict { return hedgedlimit.NonFatal },
	})
	failed := errors.New("failed")
	for range 2000 {
		_, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return 0, failed })
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
	}
}
