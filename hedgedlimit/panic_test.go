package hedgedlimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A panicError is a panic that caught has turned into an error.
type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

var errExited = errors.New("the goroutine has exited")

func goexit() { runtime.Goexit() }

// caught runs f in a goroutine of its own and returns what it returned, or how it
// ended otherwise: a panicError or errExited.
func caught(f func() (int, error)) (result int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = errExited
		defer func() {
			if v := recover(); v != nil {
				err = panicError{v}
			}
		}()
		result, err = f()
	}()
	<-done
	return result, err
}

// told collects what OnPanic is told, perhaps by several calls at once: the last act of one
// may come after the first of the next. It is read when all have ended.
type told struct {
	mu     sync.Mutex
	values []any
	stacks []string
}

func (p *told) OnPanic(value any, stack []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values = append(p.values, value)
	p.stacks = append(p.stacks, string(stack))
}

// Field case B65: however the function ends, the permit comes back, OnPanic is told,
// and the caller sees the value unchanged.
func TestPanicReachesTheUndecidedCaller(t *testing.T) {
	var m map[string]int
	failure := errors.New("failure")
	for name, c := range map[string]struct {
		panics func()
		same   any // the value that comes out; nil for a runtime error
	}{
		"string":        {func() { panic("text") }, "text"},
		"error":         {func() { panic(failure) }, failure},
		"abort handler": {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"runtime error": {func() { m["x"] = 1 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for range 100 {
					var p told
					h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 2, limiter.Config{}), OnPanic: p.OnPanic})
					started := time.Now()
					_, err := caught(func() (int, error) {
						return hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
							if a.Number() == 2 {
								c.panics()
							}
							<-ctx.Done() // the primary is cancelled by the hedge's panic
							return 0, ctx.Err()
						})
					})
					var got panicError
					if !errors.As(err, &got) || c.same != nil && got.value != c.same || time.Since(started) != 50*ms {
						t.Fatalf("Do ended with %v after %v", err, time.Since(started))
					}
					if _, ok := got.value.(runtime.Error); !ok && c.same == nil {
						t.Fatalf("Do panicked with %v", got.value)
					}
					synctest.Wait()
					if len(p.values) != 1 || p.values[0] != got.value || !strings.Contains(p.stacks[0], "panic_test.go") {
						t.Fatalf("OnPanic was told %v", p.values)
					}
					s := h.Stats()
					if s.Panics != 1 || s.Failed != 1 || s.Ended[limiter.Hedge][permit.Ignored] != 1 {
						t.Fatalf("a panic teaches nothing: %+v", s)
					}
					probe(t, h)
				}
			})
		})
	}
}

func TestPanicOfALoserEndsThere(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy hedgedlimit.LoserPolicy) {
		var p told
		h := newHedger(t, hedgedlimit.Config{Losers: policy, OnPanic: p.OnPanic})
		result, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() == 2 {
				return 2, nil
			}
			time.Sleep(time.Second)
			panic("too late")
		})
		if result != 2 || err != nil {
			t.Errorf("Do returned %v, %v", result, err)
		}
		settle(time.Second)
		if len(p.values) != 1 || p.values[0] != "too late" {
			t.Errorf("OnPanic was told %v", p.values)
		}
		probe(t, h)
	})
}

func TestGoexitOfAnAttemptIsAFatalFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		for range 100 {
			_, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) {
				goexit()
				return 1, nil
			})
			if err != hedgedlimit.ErrGoexit { //nolint:errorlint // the bare error of the only attempt
				t.Fatalf("Do returned %v", err)
			}
		}
		if s := h.Stats(); s.Failed != 100 || s.Panics != 0 || s.Ended[limiter.Primary][permit.Ignored] != 100 {
			t.Errorf("%+v", s)
		}
		probe(t, h)
	})
}

// hostile is a budget whose methods do what the test says.
type hostile struct{ deposit, withdraw, refund func() }

func (b hostile) Deposit(time.Time)         { b.deposit() }
func (b hostile) Withdraw(time.Time) bool   { b.withdraw(); return true }
func (b hostile) Refund(time.Time)          { b.refund() }
func (b hostile) Balance(time.Time) float64 { return 1 }

// Law L10: a panic or runtime.Goexit in any code of the user leaves the accounts
// balanced. Where the call still depends on that code, it ends the call; where it
// does not, it ends there.
func TestCodeOfTheUserThatDoesNotReturn(t *testing.T) {
	// The primary takes a second, a hedge due at 50 ms fails at once.
	fn := func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
		if a.Number() == 1 {
			time.Sleep(time.Second)
			return 1, nil
		}
		return 0, errRetryable
	}
	nothing := func() {}
	type outcome struct {
		at       time.Duration
		panicked bool // the value came out of Do
		exited   bool // the goroutine of the caller has exited
		err      error
		result   int
	}
	success := outcome{at: time.Second, result: 1}
	for name, c := range map[string]struct {
		config        func(bad func()) hedgedlimit.Config
		limit         int
		panics, exits outcome
		quiet         bool // the panics are not the hedger's to count
	}{
		"Classify": {
			config: func(bad func()) hedgedlimit.Config {
				return hedgedlimit.Config{Classify: func(error) hedgedlimit.Verdict { bad(); return hedgedlimit.NonFatal }}
			},
			panics: outcome{at: 50 * ms, panicked: true},
			exits:  outcome{at: 50 * ms, err: hedgedlimit.ErrGoexit},
		},
		"Classify of the limiter": {
			config: func(bad func()) hedgedlimit.Config {
				return hedgedlimit.Config{Limiter: newLimiter(t, 10, limiter.Config{Classify: func(error) permit.Outcome { bad(); return permit.Success }})}
			},
			panics: outcome{at: 50 * ms, panicked: true},
			exits:  outcome{at: 50 * ms, err: hedgedlimit.ErrGoexit},
		},
		"OnAttempt of a hedge": {
			config: func(bad func()) hedgedlimit.Config {
				return hedgedlimit.Config{OnAttempt: func(e hedgedlimit.AttemptEvent) {
					if e.Number == 2 {
						bad()
					}
				}}
			},
			panics: success, exits: success,
		},
		"OnAttempt of the winner": {
			config: func(bad func()) hedgedlimit.Config {
				return hedgedlimit.Config{OnAttempt: func(e hedgedlimit.AttemptEvent) {
					if e.Number == 1 {
						bad()
					}
				}}
			},
			panics: success, exits: outcome{at: time.Second, exited: true},
		},
		"DelayFunc at the start": {
			config: func(bad func()) hedgedlimit.Config {
				return hedgedlimit.Config{Delay: hedgedlimit.DelayFunc(func(int) (time.Duration, bool) { bad(); return 0, true })}
			},
			panics: outcome{panicked: true}, exits: outcome{exited: true},
		},
		"DelayFunc later": {
			config: func(bad func()) hedgedlimit.Config {
				return hedgedlimit.Config{MaxAttempts: 3, Delay: hedgedlimit.DelayFunc(func(n int) (time.Duration, bool) {
					if n == 2 {
						bad()
					}
					return 50 * ms, true
				})}
			},
			panics: outcome{at: 50 * ms, panicked: true}, exits: outcome{at: 50 * ms, exited: true},
		},
		"Budget.Deposit": {
			config: func(bad func()) hedgedlimit.Config { return hedgedlimit.Config{Budget: hostile{bad, nothing, nothing}} },
			panics: outcome{panicked: true}, exits: outcome{exited: true},
		},
		"Budget.Withdraw": {
			config: func(bad func()) hedgedlimit.Config { return hedgedlimit.Config{Budget: hostile{nothing, bad, nothing}} },
			panics: outcome{at: 50 * ms, panicked: true}, exits: outcome{at: 50 * ms, exited: true},
		},
		"Budget.Refund": {
			config: func(bad func()) hedgedlimit.Config { return hedgedlimit.Config{Budget: hostile{nothing, nothing, bad}} },
			limit:  1, // the hedge finds no permit
			panics: outcome{at: 50 * ms, panicked: true}, exits: outcome{at: 50 * ms, exited: true},
		},
	} {
		for how, bad := range map[string]func(){"panics": func() { panic(mark(name)) }, "exits": goexit} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var p told
					config := c.config(bad)
					config.OnPanic = p.OnPanic
					if c.limit > 0 {
						config.Limiter = newLimiter(t, c.limit, limiter.Config{})
					}
					h := newHedger(t, config)
					discarded := 0
					start := time.Now()
					var got outcome
					result, err := caught(func() (int, error) {
						return hedgedlimit.Do(t.Context(), h, fn, hedgedlimit.Discard(func(int) { discarded++ }))
					})
					got = outcome{at: time.Since(start), result: result, err: err, exited: err == errExited}
					var value panicError
					if got.panicked = errors.As(err, &value); got.panicked || got.exited {
						got.err = nil
					}
					expect := c.panics
					if how == "exits" {
						expect = c.exits
					}
					if !errors.Is(got.err, expect.err) {
						t.Errorf("Do returned %v, want %v", got.err, expect.err)
					}
					if got.err, expect.err = nil, nil; got != expect {
						t.Errorf("Do ended as %+v, want %+v", got, expect)
					}
					if got.panicked && value.value != mark(name) {
						t.Errorf("Do panicked with %v", value.value)
					}
					settle(2 * time.Second)
					if none := got.result == 1 || name == "OnAttempt of the winner" || name == "Budget.Deposit"; (discarded == 0) != none {
						t.Errorf("the primary's result was discarded %d times", discarded)
					}
					if told := len(p.values) > 0; told != (how == "panics") {
						t.Errorf("OnPanic was told %v", p.values)
					}
					probe(t, h)
				})
			})
		}
	}
}

// mark is the value of the panics above.
type mark string

// OnAttempt is told before the caller hears of a failure. That it exits must not keep
// the caller waiting.
func TestOnAttemptThatExitsDoesNotSwallowTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{OnAttempt: func(hedgedlimit.AttemptEvent) { goexit() }})
		fail := step{takes: 10 * ms, err: errRetryable}
		run(t, t.Context(), h, want{err: errRetryable, at: 20 * ms, started: []time.Duration{0, 10 * ms}}, fail, fail)
		probe(t, h)
	})
}

func TestPanicInOnPanicIsLoggedAndEndsThere(t *testing.T) {
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		for _, onPanic := range []func(any, []byte){
			nil, // the default logs the panic itself
			func(any, []byte) { panic("OnPanic") },
		} {
			log.Reset()
			h := newHedger(t, hedgedlimit.Config{OnPanic: onPanic})
			_, err := caught(func() (int, error) {
				return hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { panic("the work's own") })
			})
			if err != (panicError{"the work's own"}) {
				t.Errorf("Do ended with %v", err)
			}
			if !strings.Contains(log.String(), "the work's own") {
				t.Errorf("the log says %q", log.String())
			}
			probe(t, h)
		}
	})
}
