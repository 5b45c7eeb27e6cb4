package hedgedlimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Field case B52: calls leave no goroutine and no timer behind. A bubble ends only
// when no goroutine of it is left, and time in it stands still while one is busy.
func TestCallsLeaveNothingBehind(t *testing.T) {
	sleep := func(d time.Duration) step { return step{takes: d, deaf: true} }
	for name, c := range map[string]struct {
		calls  int
		delay  time.Duration
		leaves time.Duration
		steps  []step
	}{
		"deaf losers":     {1000, ms, time.Hour, []step{sleep(52 * ms), sleep(ms)}},
		"quick calls":     {20_000, time.Hour, time.Hour, []step{sleep(10 * time.Microsecond)}},
		"impatient calls": {1000, time.Hour, ms, []step{sleep(2 * ms)}},
	} {
		t.Run(name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
				h := newHedger(t, hedgedlimit.Config{
					Limiter: newLimiter(t, 200, limiter.Config{}), Delay: hedgedlimit.Fixed(c.delay), Losers: p,
				})
				for range c.calls {
					ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
					fn, _ := script(t, c.steps...)
					_, _ = hedgedlimit.Do(ctx, h, fn)
					cancel()
				}
				settle(time.Second)
				if n := h.Stats().Calls; n != uint64(c.calls) {
					t.Errorf("%d calls", n)
				}
				probe(t, h)
			})
		})
	}
}

// Field case B62: the counts add up after calls of every outcome.
func TestCountsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		h := newHedger(t, hedgedlimit.Config{
			Limiter: newLimiter(t, 4, limiter.Config{Reserve: 1, MaxWaiting: 2}), MaxAttempts: 3, Delay: hedgedlimit.Fixed(5 * ms),
			Budget: newBudget(t, hedgedlimit.RatioConfig{}), OnPanic: func(any, []byte) {},
		})
		var wg sync.WaitGroup
		for range 10_000 {
			var steps []step
			for range 3 {
				steps = append(steps, step{
					takes: time.Duration(random.IntN(20)) * ms,
					err:   []error{nil, nil, errRetryable, errFatal}[random.IntN(4)],
					deaf:  random.IntN(2) == 0,
				})
			}
			leaves := time.Duration(1+random.IntN(40)) * ms
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), leaves)
				defer cancel()
				fn, _ := script(t, steps...)
				_, _ = hedgedlimit.Do(ctx, h, fn)
			})
			time.Sleep(time.Duration(random.IntN(6)) * ms)
		}
		wg.Wait()
		settle(time.Second)
		s := h.Stats()
		if s.Calls != 10_000 || s.Refused == 0 || s.Succeeded == 0 || s.Failed == 0 || s.ContextEnded == 0 ||
			s.Skipped[hedgedlimit.SkipBudget] == 0 || s.Skipped[hedgedlimit.SkipPermit] == 0 || s.Won[limiter.Hedge] == 0 {
			t.Errorf("something did not occur: %+v", s)
		}
		probe(t, h)
	})
}

// Callers, losers, resizes and scrapes in real time, for a second or as long as
// HOLDFAST_STRESS says. What runs at once is counted in the work itself.
func TestStress(t *testing.T) {
	duration := time.Second
	if s := os.Getenv("HOLDFAST_STRESS"); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatalf("HOLDFAST_STRESS: %v", err)
		}
	} else if testing.Short() {
		duration = 100 * ms
	}
	goroutines := runtime.NumGoroutine()
	const limit = 16
	for _, losers := range []hedgedlimit.LoserPolicy{hedgedlimit.Cancel(), hedgedlimit.Drain(2 * ms), hedgedlimit.Linger(ms)} {
		h := newHedger(t, hedgedlimit.Config{
			Limiter:     newLimiter(t, limit, limiter.Config{Reserve: 2, MaxWaiting: 8}),
			MaxAttempts: 4, Delay: hedgedlimit.Fixed(200 * time.Microsecond), Losers: losers, OnPanic: func(any, []byte) {},
			Budget: newBudget(t, hedgedlimit.RatioConfig{Ratio: 1, PerSecond: 1000}),
		})
		var running, calls, results, taken, discarded atomic.Int64
		attempt := func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			if n := running.Add(1); n > limit {
				t.Errorf("%d attempts run under a limit of %d", n, limit)
			}
			var parts atomic.Int64 // of this attempt that run: the function and a hold
			parts.Add(1)
			done := func() {
				if parts.Add(-1) == 0 {
					running.Add(-1)
				}
			}
			defer done()
			if rand.IntN(4) == 0 {
				release := a.Hold()
				parts.Add(1)
				time.AfterFunc(time.Duration(rand.IntN(1500))*time.Microsecond, func() { done(); release(permit.Success) })
			}
			takes := time.NewTimer(time.Duration(rand.IntN(1000)) * time.Microsecond)
			defer takes.Stop()
			select {
			case <-takes.C:
			case <-ctx.Done():
				if rand.IntN(2) == 0 {
					return 0, ctx.Err()
				}
				<-takes.C // deaf
			}
			switch rand.IntN(20) {
			case 0:
				return 0, errFatal
			case 1:
				panic("stress")
			case 2:
				goexit()
			case 3, 4, 5:
				return 0, errRetryable
			}
			results.Add(1)
			return 1, nil
		}
		end := time.Now().Add(duration / 3)
		var wg sync.WaitGroup
		for range limit {
			wg.Go(func() {
				for time.Now().Before(end) {
					calls.Add(1)
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(3000))*time.Microsecond)
					_, err := caught(func() (int, error) {
						return hedgedlimit.Do(ctx, h, attempt, hedgedlimit.Discard(func(int) { discarded.Add(1) }))
					})
					cancel()
					if err == nil {
						taken.Add(1)
					}
					if errors.Is(err, hedgedlimit.ErrLost) {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			for time.Now().Before(end) {
				ledger := h.Limiter().Stats().Ledger
				if ledger.InFlight > limit || ledger.Overhang > ledger.InFlight {
					t.Errorf("%+v", ledger)
				}
				_ = h.Stats()
				runtime.Gosched()
			}
		})
		wg.Wait()
		if err := h.Limiter().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Nothing is in flight, so the counts are complete.
		if s := h.Stats(); s.Calls != uint64(calls.Load()) || running.Load() != 0 || results.Load() != taken.Load()+discarded.Load() {
			t.Errorf("%d calls, %d attempts running; %d results, %d taken and %d discarded; %+v",
				calls.Load(), running.Load(), results.Load(), taken.Load(), discarded.Load(), s)
		}
		probe(t, h)
	}
	for range 100 {
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		time.Sleep(10 * ms)
	}
	t.Errorf("%d goroutines at first, %d now", goroutines, runtime.NumGoroutine())
}
