package proptest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// The whole stack, driven by random scripts in virtual time. The test counts by
// itself what runs, inside the work, and never asks the limiter for it.

// ending is how an attempt's function ends.
type ending int

const (
	succeeds ending = iota
	failsNonFatal
	failsFatal
	panics
	exits
	numEndings
)

var (
	errNonFatal = errors.New("nonfatal")
	errFatal    = errors.New("fatal")
)

// attemptScript is what one attempt does.
type attemptScript struct {
	takes   time.Duration
	ends    ending
	deaf    bool          // ignores cancellation
	holds   time.Duration // goes on for so long after its function has returned
	discard time.Duration // its result takes so long to dispose of
}

// callScript is what one call does.
type callScript struct {
	starts   time.Duration
	cancel   time.Duration // after the start; 0 = never
	deadline bool          // cancel is a deadline
	attempts []attemptScript
}

// key names an attempt: the call and the number.
type key struct{ call, number int }

// stack is one run. Fields below mu are guarded by it.
type stack struct {
	t           *rapid.T
	hedger      *hedgedlimit.Hedger
	reserve     int
	maxAttempts int

	mu        sync.Mutex
	parts     map[key]int // of the work of an attempt that run: function, hold, discard
	functions map[int]int // of a call that run
	started   map[int]int // attempts of a call
	open      map[int]bool
	decisive  map[int]time.Time // when a call should have been decided
	succeeded map[key]bool
	discarded map[key]int
	failures  []string
}

func (s *stack) failf(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// part begins or ends one part of an attempt's work.
func (s *stack) part(k key, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[k] += n
	if s.parts[k] == 0 {
		delete(s.parts, k)
	}
}

// decide notes that a call should be decided now at the latest.
func (s *stack) decide(call int) {
	if _, ok := s.decisive[call]; !ok {
		s.decisive[call] = time.Now()
	}
}

// work is the function of call number i.
func (s *stack) work(i int, script callScript, caller context.Context) func(context.Context, hedgedlimit.Attempt) (key, error) {
	return func(ctx context.Context, a hedgedlimit.Attempt) (key, error) {
		k := key{i, a.Number()}
		todo := script.attempts[a.Number()-1]
		s.begin(k, a, caller)
		if todo.holds > 0 {
			release := a.Hold()
			s.part(k, 1)
			done := make(chan struct{})
			defer close(done)
			go func() {
				<-done
				time.Sleep(todo.holds)
				s.part(k, -1)
				release(permit.Success)
			}()
		}
		defer func() {
			s.mu.Lock()
			s.functions[i]--
			s.mu.Unlock()
			s.part(k, -1)
		}()
		if todo.deaf {
			time.Sleep(todo.takes)
		} else {
			select {
			case <-time.After(todo.takes):
			case <-ctx.Done():
				return k, ctx.Err()
			}
		}
		return k, s.end(k, todo.ends)
	}
}

func (s *stack) begin(k key, a hedgedlimit.Attempt, caller context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[k]++
	s.functions[k.call]++
	s.started[k.call]++
	if n := s.started[k.call]; n > s.maxAttempts || k.number > s.maxAttempts || s.parts[k] != 1 {
		s.failf("call %d: attempt %d, %d started of at most %d", k.call, k.number, n, s.maxAttempts)
	}
	g := a.Grant()
	switch {
	case g.InFlight < 1 || g.InFlight > g.Limit:
		s.failf("L5: attempt %v was granted at %+v", k, g)
	case a.Kind() == limiter.Hedge && (g.Waited || g.InFlight+s.reserve > g.Limit):
		s.failf("L4: hedge %v was granted at %+v with a reserve of %d", k, g, s.reserve)
	case k.number == 1 && a.Kind() != limiter.Primary, k.number > 1 && a.Kind() == limiter.Primary:
		s.failf("attempt %v is a %v", k, a.Kind())
	}
	if at, ok := s.decisive[k.call]; ok && time.Now().After(at) {
		s.failf("attempt %v starts after its call was decided", k)
	}
	if err := caller.Err(); err != nil && k.number > 1 {
		// In the same instant it may have been launched before.
		if d, ok := caller.Deadline(); ok && time.Now().After(d) {
			s.failf("attempt %v starts after the caller's deadline", k)
		}
	}
}

func (s *stack) end(k key, how ending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch how {
	case failsNonFatal:
		return errNonFatal
	case failsFatal:
		s.decide(k.call)
		return errFatal
	case panics:
		s.decide(k.call)
		panic(k)
	case exits:
		s.decide(k.call)
		runtime.Goexit()
	}
	s.decide(k.call)
	s.succeeded[k] = true
	return nil
}

// discard disposes of the result of a loser.
func (s *stack) discard(scripts []callScript) func(key) {
	return func(k key) {
		s.part(k, 1)
		defer s.part(k, -1)
		s.mu.Lock()
		s.discarded[k]++
		s.mu.Unlock()
		time.Sleep(scripts[k.call].attempts[k.number-1].discard)
	}
}

// run is the caller of call number i.
func (s *stack) run(i int, script callScript, scripts []callScript) {
	time.Sleep(script.starts)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if script.cancel > 0 {
		if script.deadline {
			ctx, cancel = context.WithTimeout(ctx, script.cancel)
			defer cancel()
		}
		stop := time.AfterFunc(script.cancel, func() {
			s.mu.Lock()
			if s.open[i] {
				s.decide(i)
			}
			s.mu.Unlock()
			cancel()
		})
		defer stop.Stop()
	}
	s.mu.Lock()
	s.open[i] = true
	s.mu.Unlock()
	var got key
	var err error
	panicked := true
	defer func() {
		v := recover()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, i)
		if at, ok := s.decisive[i]; ok && time.Now().After(at) {
			s.failf("L7: call %d was decided at %v and returned %v later", i, at, time.Since(at))
		}
		s.decide(i)
		switch {
		case panicked:
			if k, ok := v.(key); !ok || k.call != i {
				s.failf("L10: call %d panicked with %v", i, v)
			}
		case err == nil:
			if got.call != i || !s.succeeded[got] {
				s.failf("call %d returned the result of %v", i, got)
			}
			delete(s.succeeded, got) // the caller's: it must not be discarded
			if s.discarded[got] > 0 {
				s.failf("the result of %v was returned and discarded", got)
			}
		case errors.Is(err, hedgedlimit.ErrLost):
			s.failf("call %d returned the reason for cancelling losers: %v", i, err)
		}
	}()
	got, err = hedgedlimit.Do(ctx, s.hedger, s.work(i, script, ctx), hedgedlimit.Discard(s.discard(scripts)))
	panicked = false
}

// check is made whenever everything that can happen in an instant has happened.
func (s *stack) check() {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	ledger := s.hedger.Limiter().Stats().Ledger
	if ledger.InFlight != len(s.parts) {
		s.failf("L1: in flight %d, running %v", ledger.InFlight, s.parts)
	}
	for i := range s.open {
		if s.started[i] > 0 && s.functions[i] == 0 && ledger.Waiting == 0 {
			s.failf("L8: no attempt of call %d runs, it waits for no permit, and it has not returned", i)
		}
	}
}

// wobble is an algorithm that sets the limits it was told to, one after the other.
type wobble struct {
	limits []int
	i      int
}

func (w *wobble) decision() gradient.Decision {
	w.i++
	return gradient.Decision{Limit: w.limits[w.i%len(w.limits)], Reason: "wobble", MinLength: 20 * time.Millisecond}
}
func (w *wobble) Start(time.Time) gradient.Decision                  { return w.decision() }
func (w *wobble) Next(time.Time, *gradient.Window) gradient.Decision { return w.decision() }

func millis(from, to int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(from, to), func(n int) time.Duration { return time.Duration(n) * 10 * time.Millisecond })
}

func drawScripts(t *rapid.T, maxAttempts int) []callScript {
	attempt := rapid.Custom(func(t *rapid.T) attemptScript {
		a := attemptScript{
			takes: millis(0, 20).Draw(t, "takes"),
			deaf:  rapid.Bool().Draw(t, "deaf"),
		}
		if rapid.Bool().Draw(t, "does not succeed") {
			a.ends = ending(rapid.IntRange(0, int(numEndings)-1).Draw(t, "ends"))
		}
		if rapid.IntRange(0, 2).Draw(t, "goes on") == 0 {
			a.holds = millis(0, 10).Draw(t, "holds")
		}
		a.discard = millis(0, 3).Draw(t, "discard")
		return a
	})
	call := rapid.Custom(func(t *rapid.T) callScript {
		c := callScript{
			starts:   millis(0, 30).Draw(t, "starts"),
			deadline: rapid.Bool().Draw(t, "deadline"),
			attempts: rapid.SliceOfN(attempt, maxAttempts, maxAttempts).Draw(t, "attempts"),
		}
		if rapid.Bool().Draw(t, "leaves") {
			c.cancel = millis(1, 20).Draw(t, "cancel")
		}
		return c
	})
	return rapid.SliceOfN(call, 1, 8).Draw(t, "calls")
}

func checkStack(t *rapid.T) {
	rapid.SyncTest(t, func(t *rapid.T) {
		s := &stack{
			t:           t,
			maxAttempts: rapid.IntRange(1, 4).Draw(t, "max attempts"),
			parts:       map[key]int{}, functions: map[int]int{}, started: map[int]int{}, open: map[int]bool{},
			decisive: map[int]time.Time{}, succeeded: map[key]bool{}, discarded: map[key]int{},
		}
		scripts := drawScripts(t, s.maxAttempts)
		config := limiter.Config{
			Algorithm:  &wobble{limits: rapid.SliceOfN(rapid.IntRange(1, 6), 1, 5).Draw(t, "limits")},
			MaxWaiting: rapid.IntRange(-1, 3).Draw(t, "max waiting"),
			Reserve:    rapid.SampledFrom([]int{limiter.NoReserve, 1, 2}).Draw(t, "reserve"),
		}
		s.reserve = max(config.Reserve, 0)
		if config.MaxWaiting != 0 && rapid.Bool().Draw(t, "last in first out") {
			config.LIFOAfter = 5 * time.Millisecond
		}
		l, err := limiter.New(config)
		if err != nil {
			t.Fatal(err)
		}
		budget := hedgedlimit.Unlimited
		bounded := rapid.Bool().Draw(t, "bounded")
		if bounded {
			budget, err = hedgedlimit.NewRatioBudget(hedgedlimit.RatioConfig{Ratio: 0.5, PerSecond: -1, Burst: 1})
			if err != nil {
				t.Fatal(err)
			}
		}
		losers := hedgedlimit.Cancel()
		if rapid.Bool().Draw(t, "drain") {
			losers = hedgedlimit.Drain(millis(1, 10).Draw(t, "bound"))
		}
		s.hedger, err = hedgedlimit.New(hedgedlimit.Config{
			Gates: hedgedlimit.NoGates, Limiter: l, MaxAttempts: s.maxAttempts, Budget: budget, Losers: losers,
			Delay: hedgedlimit.Fixed(millis(0, 8).Draw(t, "delay")),
			Classify: func(err error) hedgedlimit.Verdict {
				if errors.Is(err, errFatal) {
					return hedgedlimit.Fatal
				}
				return hedgedlimit.NonFatal
			},
			OnPanic: func(any, []byte) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, script := range scripts {
			go s.run(i, script, scripts)
		}
		// Half a step off the grid of the scripts' times, and on it.
		for range 400 {
			s.check()
			time.Sleep(5 * time.Millisecond)
		}
		s.check()
		// Only now may the test fail: a bubble in which somebody still waits cannot
		// be left. So those are woken first.
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.Close(gone)
		synctest.Wait()
		if len(s.failures) > 0 {
			t.Fatalf("%s", s.failures[0])
		}
		s.finish(bounded)
	})
}

// finish checks what must be true when all is over.
func (s *stack) finish(bounded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.t
	if len(s.open) > 0 || len(s.parts) > 0 {
		t.Fatalf("still open %v, running %v", s.open, s.parts)
	}
	for k := range s.succeeded {
		if s.discarded[k] != 1 {
			t.Errorf("the result of %v, which nobody took, was discarded %d times", k, s.discarded[k])
		}
	}
	for k, n := range s.discarded {
		if n != 1 || !s.succeeded[k] {
			t.Errorf("%v was discarded %d times; it was to be: %v", k, n, s.succeeded[k])
		}
	}
	h := s.hedger.Stats()
	ledger := s.hedger.Limiter().Stats().Ledger
	if ledger.InFlight != 0 || ledger.Waiting != 0 || ledger.Overhang != 0 {
		t.Errorf("L11: not at rest: %+v", ledger)
	}
	var started, ended, won, skipped uint64
	for k := range h.Started {
		var of uint64
		for _, n := range h.Ended[k] {
			of += n
		}
		if of != h.Started[k] {
			t.Errorf("%v: %d started, %d ended", limiter.Kind(k), h.Started[k], of)
		}
		started, ended, won = started+h.Started[k], ended+of, won+h.Won[k]
	}
	for _, n := range h.Skipped {
		skipped += n
	}
	extra := h.Started[limiter.Hedge] + h.Started[limiter.Retry]
	switch {
	case h.Calls != h.Refused+h.Succeeded+h.Failed+h.ContextEnded,
		h.Started[limiter.Primary] != h.Calls-h.Refused,
		h.Due != extra+skipped,
		won != h.Succeeded:
		t.Errorf("the counts do not add up: %+v", h)
	case bounded && float64(extra) > 1+0.5*float64(h.Started[limiter.Primary]):
		t.Errorf("L9: %d extra attempts for %d primaries", extra, h.Started[limiter.Primary])
	}
}

// Whatever calls do, the law holds: L1 (in flight is what runs), L2 (a permit ends
// with the work alone), L3, L4 (hedges leave the reserve and never wait), L5, L7
// (the caller never waits for a loser), L8 (no call idles), L9, L10 and L11.
func TestLawHoldsOverTheWholeStack(t *testing.T) { rapid.Check(t, checkStack) }

func FuzzStack(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkStack)) }
