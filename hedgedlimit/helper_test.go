package hedgedlimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// The tests of this package run in bubbles of virtual time: a duration in them is
// exact, and a test that compares instants compares them with ==.

const ms = time.Millisecond

var (
	errRetryable = errors.New("connection refused") // NonFatal by classify
	errFatal     = errors.New("bad request")        // Fatal by classify
)

func classify(err error) hedgedlimit.Verdict {
	if errors.Is(err, errFatal) {
		return hedgedlimit.Fatal
	}
	return hedgedlimit.NonFatal
}

// newLimiter returns a limiter whose limit stands still, without a reserve for
// primaries unless config says so.
func newLimiter(t testing.TB, limit int, config limiter.Config) *limiter.Limiter {
	t.Helper()
	return newFixedLimiter(t, limit, config)
}

// newFixedLimiter is newLimiter for a *rapid.T as well.
func newFixedLimiter(t interface{ Fatal(...any) }, limit int, config limiter.Config) *limiter.Limiter {
	algorithm, err := gradient.NewFixed(limit)
	if err != nil {
		t.Fatal(err)
	}
	config.Algorithm = algorithm
	if config.Reserve == 0 {
		config.Reserve = limiter.NoReserve
	}
	l, err := limiter.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newHedger fills what config leaves open: ten permits, a hedge after 50 ms, no
// budget, no gates, and classify.
func newHedger(t testing.TB, config hedgedlimit.Config) *hedgedlimit.Hedger {
	t.Helper()
	if config.Limiter == nil {
		config.Limiter = newLimiter(t, 10, limiter.Config{})
	}
	if config.Delay == nil && config.Retry == nil {
		config.Delay = hedgedlimit.Fixed(50 * ms)
	}
	if config.Budget == nil {
		config.Budget = hedgedlimit.Unlimited
	}
	if config.Gates == nil {
		config.Gates = hedgedlimit.NoGates
	}
	if config.Classify == nil {
		config.Classify = classify
	}
	h, err := hedgedlimit.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// probe ends a test: all work is over, nothing is in flight, exactly Limit permits
// are to be had, and the counts obey the identities of hedgedlimit.Stats.
func probe(t testing.TB, h *hedgedlimit.Hedger) {
	t.Helper()
	l := h.Limiter()
	ledger := l.Stats().Ledger
	if ledger.InFlight != 0 || ledger.Waiting != 0 || ledger.Overhang != 0 {
		t.Fatalf("not at rest: %+v", ledger)
	}
	var got []limiter.Permit
	for {
		p, ok := l.TryAcquire(limiter.Primary)
		if !ok {
			break
		}
		got = append(got, p)
	}
	if len(got) != l.Limit() && !ledger.Closed {
		t.Errorf("%d permits are to be had, the limit is %d", len(got), l.Limit())
	}
	for _, p := range got {
		p.Release(permit.Ignored)
	}
	identities(t, h.Stats())
}

// identities checks what Stats promises of a hedger at rest.
func identities(t interface{ Errorf(string, ...any) }, s hedgedlimit.Stats) {
	if s.Calls != s.Refused+s.Succeeded+s.Failed+s.ContextEnded {
		t.Errorf("Calls != Refused + Succeeded + Failed + ContextEnded: %+v", s)
	}
	if s.Started[limiter.Primary] != s.Calls-s.Refused {
		t.Errorf("Started[Primary] != Calls - Refused: %+v", s)
	}
	var skipped, won uint64
	for _, n := range s.Skipped {
		skipped += n
	}
	if s.Due != s.Started[limiter.Hedge]+s.Started[limiter.Retry]+skipped {
		t.Errorf("Due != Started[Hedge] + Started[Retry] + Σ Skipped: %+v", s)
	}
	for k := range s.Started {
		var ended uint64
		for _, n := range s.Ended[k] {
			ended += n
		}
		if s.Started[k] != ended {
			t.Errorf("Started != Σ Ended for %v: %+v", limiter.Kind(k), s)
		}
		if s.Won[k]+s.Lost[k] > s.Started[k] {
			t.Errorf("Won + Lost > Started for %v: %+v", limiter.Kind(k), s)
		}
		won += s.Won[k]
	}
	if won != s.Succeeded {
		t.Errorf("Σ Won != Succeeded: %+v", s)
	}
	if s.Hedged > s.Started[limiter.Hedge] {
		t.Errorf("Hedged > Started[Hedge]: %+v", s)
	}
}

// step is what one attempt does.
type step struct {
	takes time.Duration
	err   error
	deaf  bool // does not look at its context
}

// trace is what a scripted call has seen. All times are since the call began.
type trace struct {
	mu      sync.Mutex
	began   time.Time
	started []time.Duration // by number of the attempt
	kinds   []limiter.Kind
	stopped map[int]time.Duration // when an attempt saw the end of its context
	causes  map[int]error         // and its cause
	ended   map[int]time.Duration // when the function returned
}

// script makes a function whose attempt number n does steps[n-1], and its trace.
// An attempt without a step fails the test. The result is the attempt's number.
func script(t testing.TB, steps ...step) (func(context.Context, hedgedlimit.Attempt) (int, error), *trace) {
	tr := &trace{began: time.Now(), stopped: map[int]time.Duration{}, causes: map[int]error{}, ended: map[int]time.Duration{}}
	return func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
		n := a.Number()
		tr.mu.Lock()
		tr.started = append(tr.started, time.Since(tr.began))
		tr.kinds = append(tr.kinds, a.Kind())
		tr.mu.Unlock()
		defer func() {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.ended[n] = time.Since(tr.began)
		}()
		if n > len(steps) {
			t.Errorf("attempt %d was not to be sent", n)
			return 0, errFatal
		}
		s := steps[n-1]
		if s.deaf {
			time.Sleep(s.takes)
			return n, s.err
		}
		select {
		case <-time.After(s.takes):
			return n, s.err
		case <-ctx.Done():
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.stopped[n], tr.causes[n] = time.Since(tr.began), context.Cause(ctx)
			return 0, ctx.Err()
		}
	}, tr
}

// want is what a scripted call is to come to.
type want struct {
	result  int
	err     error
	at      time.Duration   // when Do returns
	started []time.Duration // when each attempt begins
}

// run does one scripted call and compares, in the instant in which Do returns.
func run(t testing.TB, ctx context.Context, h *hedgedlimit.Hedger, w want, steps ...step) *trace {
	t.Helper()
	fn, tr := script(t, steps...)
	result, err := hedgedlimit.Do(ctx, h, fn)
	if at := time.Since(tr.began); at != w.at {
		t.Errorf("Do returned after %v, want %v", at, w.at)
	}
	if result != w.result || !errors.Is(err, w.err) {
		t.Errorf("Do returned %v, %v, want %v, %v", result, err, w.result, w.err)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.started) != len(w.started) {
		t.Errorf("attempts began after %v, want %v", tr.started, w.started)
		return tr
	}
	for i := range w.started {
		if tr.started[i] != w.started[i] {
			t.Errorf("attempts began after %v, want %v", tr.started, w.started)
			break
		}
	}
	return tr
}

// settle lets d pass, and all that is due then happen.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
