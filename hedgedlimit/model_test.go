package hedgedlimit_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// The executable form of the table in the package comment. One call is scripted: what
// each attempt does, when the budget says no, when no permit is free, when the context
// ends. The reference works out what must come of it, step by step from the table, and
// the real thing must do the same in the same instants.
//
// No two events fall into one instant. Times of the configuration lie on a grid of 10
// ms; attempt n ends 2ⁿ µs off the grid of its start, permits come and go 5 ms off it,
// a little more each time, and the context ends 3 ms off it. So the reference needs no rule for ties; those have
// tests of their own.

type modelAttempt struct {
	takes    time.Duration
	ends     ending
	pushed   bool
	pushback time.Duration
}

type model struct {
	maxAttempts int
	delay       time.Duration // 0 = never
	retries     bool          // retry mode
	waits       bool          // a retry may wait for its permit
	broke       []bool        // by steps of the grid: the budget says no
	full        []bool        // by steps of the grid, the first of which is false: no permit is free
	leaves      time.Duration // 0 = never
	deadline    bool
	attempts    []modelAttempt
}

// The outcome of a call. Everything is comparable by reflect.DeepEqual.
type modelOutcome struct {
	result  string // who won, or the kind of the error
	at      time.Duration
	starts  []string // kind, reason and time of each attempt
	skipped []string // number, reason and time
}

const leaveOff = 3*ms + 256*time.Microsecond

// permitsAt is when step i of full begins. Each step has a place of its own off the
// grid, since a retry that waited begins then.
func permitsAt(i int) time.Duration {
	return time.Duration(i)*(grid+64*time.Microsecond) - 5*ms
}

func (m *model) isBroke(at time.Duration) bool {
	i := int(at / grid)
	return i < len(m.broke) && m.broke[i]
}

func (m *model) isFull(at time.Duration) bool { return m.freeAt(at) != at }

// freeAt is when a permit is free again, from at on.
func (m *model) freeAt(at time.Duration) time.Duration {
	for i, none := range m.full {
		if none && permitsAt(i) <= at && at < permitsAt(i+1) {
			at = permitsAt(i + 1)
		}
	}
	return at
}

// reference works the outcome out.
func (m *model) reference() modelOutcome {
	var o modelOutcome
	type running struct {
		number int
		ends   time.Duration
	}
	var (
		now     time.Duration
		active  []running
		n       int // launched
		errs    int
		timer   = time.Duration(-1)
		why     string
		frozen  bool
		backoff = 10 * ms
	)
	start := func(kind, why string) {
		a := m.attempts[n]
		n++
		active = append(active, running{n, now + a.takes + time.Microsecond<<n})
		o.starts = append(o.starts, fmt.Sprint(kind, " ", why, " ", now))
	}
	skip := func(reason string) { o.skipped = append(o.skipped, fmt.Sprint(n+1, " ", reason, " ", now)) }
	arm := func() {
		timer = -1
		if n < m.maxAttempts && !frozen && m.delay > 0 && !m.retries {
			timer, why = now+m.delay, "delay"
		}
	}
	failed := func() string {
		if errs == 1 {
			return "its error"
		}
		return fmt.Sprint(errs, " errors")
	}
	contextEnd := time.Duration(1<<63 - 1)
	if m.leaves > 0 {
		contextEnd = m.leaves
	}
	// hedge is what follows when a hedge is due.
	hedge := func(why string) {
		switch {
		case n >= m.maxAttempts || frozen || m.retries:
			timer = -1
			return
		case m.isBroke(now):
			skip("budget")
		case m.isFull(now):
			skip("no_permit")
		default:
			start("hedge", why)
		}
		arm()
	}
	// retry is what follows when a retry is due. It returns how the call ends, or "".
	retry := func(why string) string {
		if m.isBroke(now) {
			skip("budget")
			return failed()
		}
		if m.isFull(now) {
			free := m.freeAt(now)
			switch {
			case !m.waits:
				skip("no_permit")
				return failed()
			case free > contextEnd:
				// The skip is noted at the time when it was due.
				skip("no_permit")
				now = contextEnd
				return "context"
			}
			now = free
		}
		start("retry", why)
		arm()
		return ""
	}
	start("primary", "first")
	arm()
	notBefore := time.Duration(0) // what the other side has asked for
	for {
		next := contextEnd
		if timer >= 0 {
			next = min(next, timer)
		}
		which := -1
		for i, r := range active {
			if r.ends <= next {
				next, which = r.ends, i
			}
		}
		now = next
		if which < 0 {
			if now == contextEnd {
				o.result, o.at = "context", now
				return o
			}
			timer = -1
			if len(active) > 0 {
				hedge(why)
			} else if o.result = retry(why); o.result != "" {
				o.at = now
				return o
			}
			continue
		}
		number := active[which].number
		active = slices.Delete(active, which, which+1)
		a := m.attempts[number-1]
		switch a.ends {
		case succeeds:
			o.result = fmt.Sprint("attempt ", number)
		case failsFatal, exits:
			errs++
			o.result = failed()
		case panics:
			o.result = "panic"
		case failsRetryable:
			errs++
			if a.pushed && a.pushback < 0 {
				frozen, timer = true, -1
			}
			if a.pushed && a.pushback >= 0 {
				notBefore, backoff = max(notBefore, now+a.pushback), 10*ms
			}
			left := n < m.maxAttempts && !frozen
			wait, reason := time.Duration(-1), ""
			switch {
			case left && (a.pushed || notBefore > now):
				wait, reason = max(notBefore-now, 0), "pushback"
			case left && len(active) == 0 && m.retries:
				wait, reason = backoff, "backoff"
				backoff = min(2*backoff, 30*ms)
			}
			switch {
			case !left && len(active) == 0:
				o.result = failed()
			case !left:
			case wait >= 0 && len(active) == 0 && m.deadline && now+wait >= contextEnd:
				skip("deadline")
				o.result = failed()
			case wait >= 0:
				timer, why = now+wait, reason
			case len(active) > 0:
				hedge("failure")
			default:
				o.result = retry("failure")
			}
		}
		if o.result != "" {
			o.at = now
			return o
		}
	}
}

func drawModel(t *rapid.T) *model {
	m := &model{
		maxAttempts: rapid.IntRange(1, 5).Draw(t, "max attempts"),
		retries:     rapid.Bool().Draw(t, "retry mode"),
		delay:       times(0, 4).Draw(t, "delay"),
		waits:       rapid.Bool().Draw(t, "retries wait"),
		broke:       rapid.SliceOfN(rapid.Bool(), 0, 12).Draw(t, "no budget"),
		full:        append([]bool{false}, rapid.SliceOfN(rapid.Bool(), 0, 12).Draw(t, "no permit")...),
		deadline:    rapid.Bool().Draw(t, "deadline"),
	}
	if rapid.Bool().Draw(t, "leaves") {
		m.leaves = times(0, 20).Draw(t, "after") + leaveOff
	}
	m.deadline = m.deadline && m.leaves > 0
	for range m.maxAttempts {
		a := modelAttempt{takes: times(0, 8).Draw(t, "takes")}
		a.ends = rapid.SampledFrom([]ending{succeeds, failsRetryable, failsRetryable, failsRetryable, failsFatal, panics, exits}).Draw(t, "ends")
		if a.pushed = oneIn(t, 3, "pushback"); a.pushed {
			a.pushback = times(-1, 5).Draw(t, "after")
		}
		m.attempts = append(m.attempts, a)
	}
	return m
}

// A modelError carries its pushback.
type modelError struct{ modelAttempt }

func (e *modelError) Error() string { return "attempt failed" }

// scriptedBudget says no when the script does.
type scriptedBudget struct {
	m     *model
	began time.Time
}

func (b *scriptedBudget) Deposit(time.Time)             {}
func (b *scriptedBudget) Withdraw(now time.Time) bool   { return !b.m.isBroke(now.Sub(b.began)) }
func (b *scriptedBudget) Refund(time.Time)              {}
func (b *scriptedBudget) Balance(now time.Time) float64 { return 0 }

// real lets a hedger do what the script says.
func (m *model) real(t *rapid.T) modelOutcome {
	const limit = 8
	config := limiter.Config{}
	if m.waits {
		config.MaxWaiting = limiter.Unbounded
	}
	l := newFixedLimiter(t, limit, config)
	began := time.Now()
	var story hedgedlimit.CallEvent
	told := 0
	hc := hedgedlimit.Config{
		Limiter: l, MaxAttempts: m.maxAttempts, Gates: hedgedlimit.NoGates, Budget: &scriptedBudget{m, began},
		Rand:     func() float64 { return 0.5 },
		OnPanic:  func(any, []byte) {},
		Observer: func(e hedgedlimit.CallEvent) { story = e; told++ },
		Classify: func(err error) hedgedlimit.Verdict {
			if e := (*modelError)(nil); errors.As(err, &e) && e.ends == failsFatal {
				return hedgedlimit.Fatal
			}
			return hedgedlimit.NonFatal
		},
		Pushback: func(err error) (time.Duration, bool) {
			e := (*modelError)(nil)
			if !errors.As(err, &e) {
				return 0, false
			}
			return e.pushback, e.pushed
		},
	}
	switch {
	case m.retries:
		hc.Retry = &hedgedlimit.Backoff{Initial: 10 * ms, Max: 30 * ms}
	case m.delay > 0:
		hc.Delay = hedgedlimit.Fixed(m.delay)
	default:
		hc.Delay = hedgedlimit.DelayFunc(func(int) (time.Duration, bool) { return 0, false })
	}
	h, err := hedgedlimit.New(hc)
	if err != nil {
		t.Fatal(err)
	}
	full := make(chan struct{})
	go func() { // takes all permits that are free, when the script says so
		defer close(full)
		var held []limiter.Permit
		for i, none := range m.full {
			time.Sleep(permitsAt(i) - time.Since(began))
			for none {
				p, ok := l.TryAcquire(limiter.Bypass)
				if !ok {
					break
				}
				held = append(held, p)
			}
			for ; !none && len(held) > 0; held = held[1:] {
				held[0].Release(permit.Ignored)
			}
		}
		time.Sleep(permitsAt(len(m.full)) - time.Since(began))
		for _, p := range held {
			p.Release(permit.Ignored)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if m.leaves > 0 && m.deadline {
		ctx, cancel = context.WithDeadline(ctx, began.Add(m.leaves))
		defer cancel()
	} else if m.leaves > 0 {
		defer time.AfterFunc(m.leaves, cancel).Stop()
	}
	var o modelOutcome
	var mu sync.Mutex
	var holds []func(permit.Outcome)
	number, err := caught(func() (int, error) {
		return hedgedlimit.Do(ctx, h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			s := m.attempts[a.Number()-1]
			// A permit that came back would be free in spite of the script.
			mu.Lock()
			holds = append(holds, a.Hold())
			mu.Unlock()
			select {
			case <-time.After(s.takes + time.Microsecond<<a.Number()):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			switch s.ends {
			case panics:
				panic("scripted")
			case exits:
				goexit()
			case succeeds:
				return a.Number(), nil
			case failsRetryable, failsFatal:
			}
			return 0, &modelError{s}
		})
	})
	o.at = time.Since(began)
	many, few := (*hedgedlimit.AttemptsError)(nil), (*modelError)(nil)
	switch {
	case err == nil:
		o.result = fmt.Sprint("attempt ", number)
	case err == (panicError{"scripted"}):
		o.result = "panic"
	case err == context.Canceled, err == context.DeadlineExceeded: //nolint:errorlint // bare
		o.result = "context"
	case errors.As(err, &many):
		o.result = fmt.Sprint(len(many.Unwrap()), " errors")
	case errors.As(err, &few), err == hedgedlimit.ErrGoexit: //nolint:errorlint // bare
		o.result = "its error"
	default:
		o.result = err.Error()
	}
	<-full
	mu.Lock()
	for _, release := range holds {
		release(permit.Success)
	}
	mu.Unlock()
	if err := h.Close(context.Background()); err != nil || told != 1 {
		t.Errorf("Close returned %v, the observer was told %d times", err, told)
	}
	for _, a := range story.Attempts {
		o.starts = append(o.starts, fmt.Sprint(a.Kind, " ", a.Start, " ", a.Granted.Sub(began)))
	}
	for _, s := range story.Skips {
		o.skipped = append(o.skipped, fmt.Sprint(s.Number, " ", s.Reason, " ", s.At.Sub(began)))
	}
	if left := l.InFlight(); left != 0 {
		t.Errorf("%d permits are out at the end", left)
	}
	identities(t, h.Stats())
	return o
}

// The call does what the table of the package comment says, for all verdicts, attempts
// left, others that run, budgets, permits and contexts.
func TestCallFollowsItsTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			m := drawModel(t)
			want := m.reference()
			got := m.real(t)
			want.skipped = want.skipped[:min(len(want.skipped), 16)]
			if !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
			synctest.Wait()
		})
	})
}
