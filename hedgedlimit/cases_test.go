// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package hedgedlimit_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// admits tries n times for a permit, returns how often that went well, and gives all
// of them back.
func admits(l *limiter.Limiter, n int) (ok int) {
	var held []limiter.Permit
	for range n {
		if p, free := l.TryAcquire(limiter.Primary); free {
			held = append(held, p)
		}
	}
	for _, p := range held {
		p.Release(permit.Ignored)
	}
	return len(held)
}

// Field case B01: from the time-out of the caller at 50 ms until deaf work ends at
// 300 ms nothing is admitted, and afterwards exactly one.
func TestNothingIsAdmittedUntilDeafWorkEnds(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 1, limiter.Config{}), Losers: p})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		run(t, ctx, h, want{err: context.DeadlineExceeded, at: 50 * ms, started: []time.Duration{0}}, step{takes: 300 * ms, deaf: true})
		for _, at := range []time.Duration{51 * ms, 100 * ms, 299 * ms, 301 * ms} {
			settle(at - time.Since(start))
			want := 0
			if at > 300*ms {
				want = 1
			}
			if n := admits(h.Limiter(), 2); n != want || h.Limiter().InFlight() != 1-want {
				t.Errorf("at %v %d were admitted, want %d; in flight %d", at, n, want, h.Limiter().InFlight())
			}
		}
		probe(t, h)
	})
}

// Field case B03: of two tries while a deaf loser runs on, one succeeds, and two after
// it has ended.
func TestOneOfTwoIsAdmittedWhileADeafLoserRuns(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 2, limiter.Config{}), Losers: p})
		run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 400 * ms, deaf: true}, step{takes: 10 * ms})
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{40 * ms, 1}, {299 * ms, 1}, {2 * ms, 2}} {
			settle(c.after)
			if n := admits(h.Limiter(), 2); n != c.want {
				t.Errorf("%v later %d were admitted, want %d", c.after, n, c.want)
			}
		}
		probe(t, h)
	})
}

// Field case B10: when neither result is wanted and their disposal takes two seconds,
// each holds its own permit and no other, and the caller has left long before.
func TestDisposalThatTakesTimeHoldsItsOwnPermitOnly(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Losers: p})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(55*ms, cancel)
		bodies := []*body{{takes: 2 * time.Second}, {}}
		start := time.Now()
		_, err := hedgedlimit.Do(ctx, h, func(_ context.Context, a hedgedlimit.Attempt) (*body, error) {
			time.Sleep(time.Second - time.Since(start)) // deaf, both until one second
			return bodies[a.Number()-1], nil
		})
		if err != context.Canceled || time.Since(start) != 55*ms { //nolint:errorlint // ctx.Err() itself
			t.Errorf("Do returned %v after %v", err, time.Since(start))
		}
		for at, inFlight := range []int{2, 1, 1, 0} {
			settle(time.Duration(at)*time.Second + ms - time.Since(start))
			if n := h.Limiter().InFlight(); n != inFlight {
				t.Errorf("after %d s: in flight %d, want %d", at, n, inFlight)
			}
		}
		for i, b := range bodies {
			if b.closed != 1 {
				t.Errorf("result %d was closed %d times", i+1, b.closed)
			}
		}
		probe(t, h)
	})
}

// Field case B13: no attempt starts once the context is done, whether a permit is free
// or becomes free in that instant.
func TestNoAttemptOfACallerWhoHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, limiter.Config{MaxWaiting: limiter.Unbounded})
		h := newHedger(t, hedgedlimit.Config{Limiter: l, Delay: hedgedlimit.Fixed(0)})
		fn := func(context.Context, hedgedlimit.Attempt) (int, error) {
			t.Error("an attempt started for a caller who had gone")
			return 0, nil
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 1000 {
			if _, err := hedgedlimit.Do(gone, h, fn); err != context.Canceled { //nolint:errorlint // ctx.Err() itself
				t.Fatalf("Do returned %v", err)
			}
		}
		for range 1000 {
			held, _ := l.TryAcquire(limiter.Primary)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := hedgedlimit.Do(ctx, h, fn)
				done <- err
			}()
			synctest.Wait()
			cancel()
			held.Release(permit.Success)
			if err := <-done; err != context.Canceled { //nolint:errorlint // ctx.Err() itself
				t.Fatalf("Do returned %v", err)
			}
		}
		if s := h.Stats(); s.Refused != 2000 || s.Started[limiter.Primary] != 0 {
			t.Errorf("%+v", s)
		}
		probe(t, h)
	})
}

// Field case B16: the end of the context and the hedge delay in the same instant, with
// the order forced. The context first: no hedge. The hedge first: that one, and no
// other.
func TestTieOfCancellationAndHedge(t *testing.T) {
	for name, first := range map[string]int{"context first": 1, "hedge first": 2} {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var started atomic.Int64
					start := time.Now()
					h := newHedger(t, hedgedlimit.Config{MaxAttempts: 4, Delay: hedgedlimit.DelayFunc(func(n int) (time.Duration, bool) {
						if n == 1 && first == 1 {
							// The caller is kept here until 50 ms: the timer is set when it is due.
							time.Sleep(50 * ms)
							cancel()
						}
						return 50 * ms, true
					})})
					_, err := hedgedlimit.Do(ctx, h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
						if started.Add(1); a.Number() == 2 {
							cancel() // in the instant of the hedge, and after it
						}
						time.Sleep(time.Second) // deaf
						return a.Number(), nil
					})
					if err != context.Canceled || time.Since(start) != 50*ms { //nolint:errorlint // ctx.Err() itself
						t.Errorf("Do returned %v after %v", err, time.Since(start))
					}
					settle(2 * time.Second)
					if n := started.Load(); n != int64(first) {
						t.Errorf("%d attempts, want %d", n, first)
					}
					probe(t, h)
				})
			}
		})
	}
}

// Field case B17: the work of an attempt, what ends it and what is told of it may use
// the limiter and the hedger; it is over within five seconds, and all permits are back.
func TestEndOfAnAttemptMayCallBack(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		var h *hedgedlimit.Hedger
		var uses, nested atomic.Int64
		var events func()
		use := func() {
			uses.Add(1)
			l := h.Limiter()
			_, _, _ = l.InFlight(), l.Limit(), h.Stats()
			admits(l, 1)
		}
		h = newHedger(t, hedgedlimit.Config{
			Limiter: newLimiter(t, 3, limiter.Config{}), Losers: p, Budget: hedgedlimit.Unlimited,
			OnAttempt: func(hedgedlimit.AttemptEvent) { use(); events() },
		})
		events = func() {
			if nested.Add(1) > 1 {
				return // the nested call is told of, too
			}
			if _, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return 1, nil }); err != nil {
				t.Error(err)
			}
		}
		done := make(chan struct{})
		loser := &body{onlyIf: use}
		go func() {
			defer close(done)
			got, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (*body, error) {
				release := a.Hold()
				context.AfterFunc(ctx, func() { release(permit.Success); use() })
				time.AfterFunc(time.Second, func() { release(permit.Success); use() })
				if a.Number() == 1 {
					time.Sleep(200 * ms)
					return loser, nil
				}
				return &body{}, nil
			})
			if err != nil || got == loser {
				t.Errorf("Do returned %v, %v", got, err)
			}
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatal("the call hangs")
		}
		settle(2 * time.Minute)
		if uses.Load() < 8 || loser.closed != 1 {
			t.Errorf("called back %d times, the loser's result was closed %d times", uses.Load(), loser.closed)
		}
		probe(t, h)
	})
}

// Field case B49, 5,000 times in each order of delivery: the caller finds both ends
// when it looks. A success is never hidden, there is one winner, and each other result
// is disposed of once.
func TestForcedTies(t *testing.T) {
	for name, c := range map[string]struct {
		errs   [2]error // of the primary and of the hedge
		leaves bool
		winner int
	}{
		"error and success":        {errs: [2]error{errRetryable, nil}, winner: 2},
		"two successes":            {winner: 1},
		"two errors":               {errs: [2]error{errRetryable, errRetryable}},
		"success and cancellation": {errs: [2]error{nil, errRetryable}, leaves: true, winner: 1},
	} {
		for order, takes := range map[string][2]time.Duration{"primary first": {ms, 2 * ms}, "hedge first": {2 * ms, ms}} {
			t.Run(name+", "+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var cancel context.CancelFunc
					h := newHedger(t, hedgedlimit.Config{MaxAttempts: 3, Delay: hedgedlimit.DelayFunc(func(n int) (time.Duration, bool) {
						if n == 2 {
							time.Sleep(3 * ms) // both end meanwhile
							if c.leaves {
								cancel()
							}
						}
						return 0, n == 1
					}), Budget: &evenly{}})
					discarded := map[int]int{}
					for range rounds {
						var ctx context.Context
						ctx, cancel = context.WithCancel(t.Context())
						got, err := hedgedlimit.Do(ctx, h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
							time.Sleep(takes[a.Number()-1])
							return a.Number(), c.errs[a.Number()-1]
						}, hedgedlimit.Discard(func(n int) { discarded[n]++ }))
						cancel()
						if got != c.winner || (err == nil) != (c.winner > 0) || err != nil && !errors.Is(err, errRetryable) {
							t.Fatalf("Do returned %v, %v, want %v", got, err, c.winner)
						}
						synctest.Wait()
					}
					for i, err := range c.errs {
						n := 0
						if err == nil && c.winner != i+1 {
							n = rounds
						}
						if discarded[i+1] != n {
							t.Errorf("results of attempt %d were disposed of %d times, want %d", i+1, discarded[i+1], n)
						}
					}
					if s := h.Stats(); c.winner > 0 && (s.Won[c.winner-1] != rounds || s.Succeeded != rounds) {
						t.Errorf("%+v", s)
					}
					probe(t, h)
				})
			})
		}
	}
}

// evenly is a budget that lets each call have one attempt more.
type evenly struct{ left int }

func (b *evenly) Deposit(time.Time) { b.left = 1 }
func (b *evenly) Withdraw(time.Time) bool {
	b.left--
	return b.left >= 0
}
func (b *evenly) Refund(time.Time)          { b.left++ }
func (b *evenly) Balance(time.Time) float64 { return float64(b.left) }

// Field case B63: a delay function may say anything, and a number of attempts of 1
// means that nothing is hedged, however short the delay.
func TestDelayFunctionMaySayAnything(t *testing.T) {
	for name, c := range map[string]struct {
		delay   hedgedlimit.DelayFunc
		started []time.Duration
	}{
		"negative":        {func(int) (time.Duration, bool) { return -1, true }, []time.Duration{0}},
		"most negative":   {func(int) (time.Duration, bool) { return -1 << 63, true }, []time.Duration{0}},
		"zero":            {func(int) (time.Duration, bool) { return 0, true }, []time.Duration{0, 0}},
		"for ever":        {func(int) (time.Duration, bool) { return 1<<63 - 1, true }, []time.Duration{0}},
		"never":           {func(int) (time.Duration, bool) { return 0, false }, []time.Duration{0}},
		"later and later": {func(n int) (time.Duration, bool) { return time.Duration(n) * 7 * ms, true }, []time.Duration{0, 7 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := step{takes: time.Second}
				h := newHedger(t, hedgedlimit.Config{Delay: c.delay})
				run(t, t.Context(), h, want{result: 1, at: time.Second, started: c.started}, slow, step{takes: time.Hour})
				settle(time.Second)
				probe(t, h)
				off := newHedger(t, hedgedlimit.Config{Delay: c.delay, MaxAttempts: 1})
				run(t, t.Context(), off, want{result: 1, at: time.Second, started: []time.Duration{0}}, slow)
				if s := off.Stats(); s.Due != 0 {
					t.Errorf("with one attempt %d hedges were due", s.Due)
				}
				probe(t, off)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // a panic is the caller's, and costs nothing
		h := newHedger(t, hedgedlimit.Config{
			OnPanic: func(any, []byte) {},
			Delay:   hedgedlimit.DelayFunc(func(int) (time.Duration, bool) { panic("delay") }),
		})
		for range 100 {
			_, err := caught(func() (int, error) {
				return hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { time.Sleep(ms); return 1, nil })
			})
			if err != (panicError{"delay"}) {
				t.Fatalf("Do ended with %v", err)
			}
			settle(ms)
		}
		probe(t, h)
	})
}

// Field case B65: a hundred ends of every kind in every code of the user under a limit
// of two; no permit is lost and none is counted as a success.
func TestHundredPanicsCostNoPermit(t *testing.T) {
	var nothing map[string]int
	for name, bad := range map[string]func(){
		"string": func() { panic("text") }, "runtime error": func() { nothing["x"] = 1 }, "Goexit": runtime.Goexit, //nolint:staticcheck // the panic is what is wanted
	} {
		for where, config := range map[string]hedgedlimit.Config{
			"function":  {},
			"Classify":  {Classify: func(error) hedgedlimit.Verdict { bad(); return hedgedlimit.Fatal }},
			"OnAttempt": {OnAttempt: func(hedgedlimit.AttemptEvent) { bad() }, Classify: func(error) hedgedlimit.Verdict { return hedgedlimit.Fatal }},
			"Delay":     {Delay: hedgedlimit.DelayFunc(func(int) (time.Duration, bool) { bad(); return 0, false })},
		} {
			t.Run(name+" in "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config.Limiter = newLimiter(t, 2, limiter.Config{})
					config.OnPanic = func(any, []byte) {}
					h := newHedger(t, config)
					for range 100 {
						got, err := caught(func() (int, error) {
							return hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) {
								if where == "function" {
									bad()
								}
								time.Sleep(ms)
								return 1, errFatal
							})
						})
						if got != 0 || err == nil {
							t.Fatalf("Do returned %v, %v", got, err)
						}
						settle(ms)
						if n := h.Limiter().InFlight(); n != 0 {
							t.Fatalf("in flight %d", n)
						}
					}
					if n := h.Limiter().Stats().Ledger.Released[permit.Success]; n != 0 {
						t.Errorf("%d were counted as a success", n)
					}
					probe(t, h)
				})
			})
		}
	}
}
