package hedgedlimit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// id names an attempt.
type id struct{ call, number int }

// work is what the test knows of one attempt: it was there.
type work struct {
	kind     limiter.Kind
	parts    int // of its work that run: the function, each Hold, the disposal
	began    time.Time
	returned time.Time // when the function ended; zero while it runs
	last     time.Time // when a part ended
	ends     ending    // how the function ended
	stopped  time.Time // when it saw the end of its context, and did not run to its own end

	discarded int
	event     *hedgedlimit.AttemptEvent
}

// caller is what the test knows of one call. It has a hedger of its own, since an
// AttemptEvent does not say whose it is; limiter, budget and delay are shared.
type caller struct {
	script   callScript
	hedger   *hedgedlimit.Hedger
	ctx      context.Context
	deadline time.Time // zero if none
	open     bool
	works    map[int]*work
	running  int       // functions
	since    time.Time // when nothing of it began to run: its start, or the end of the last function
	decisive time.Time // when something happened that decides it
	left     time.Time // when its context ended while it was open
	failures []time.Time
	starts   []time.Time
	returned time.Time
	winner   int // 0 if it returned no result
	byCtx    bool
}

// law is one run. All fields below mu are guarded by it.
type law struct {
	t      *rapid.T
	script lawScript
	l      *limiter.Limiter

	mu       sync.Mutex
	calls    []*caller
	broken   []string // what was violated
	others   map[int]bool
	queueing map[int]time.Time // others that wait, since when
	atOnce   bool              // a permit was granted without a wait since the last check
	waited   []string          // who waited at the last check

	primaries, extras int
	taken             int     // withdrawals less refunds
	lowest            float64 // of taken − ratio·primaries so far
	panics            int
}

// broke notes a violation; the first few say it all.
func (w *law) broke(format string, args ...any) {
	if len(w.broken) == 5 {
		return
	}
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// count is how much work runs now, by the test's own count.
func (w *law) count() int {
	n := len(w.others)
	for _, c := range w.calls {
		for _, x := range c.works {
			if x.parts > 0 {
				n++
			}
		}
	}
	return n
}

// enough checks, in any instant, that no work runs without a permit (L1).
func (w *law) enough() {
	if inFlight, n := w.l.InFlight(), w.count(); inFlight < n {
		w.broke("L1: %d run with %d permits", n, inFlight)
	}
}

// The budget of the run is the run itself: it counts and asks the one below.
type countingBudget struct {
	hedgedlimit.Budget
	w *law
}

func (b countingBudget) Withdraw(now time.Time) bool {
	ok := b.Budget.Withdraw(now)
	if ok {
		b.w.mu.Lock()
		b.w.taken++
		b.w.mu.Unlock()
	}
	return ok
}

func (b countingBudget) Refund(now time.Time) {
	b.w.mu.Lock()
	b.w.taken--
	b.w.mu.Unlock()
	b.Budget.Refund(now)
}

// begin notes the start of a function, and what it was granted.
func (w *law) begin(c *caller, k id, a hedgedlimit.Attempt) *work {
	now := time.Now()
	x := &work{kind: a.Kind(), parts: 1, began: now}
	if c.works[k.number] != nil || k.number < 1 || k.number > w.script.maxAttempts || c.script.noHedge && k.number > 1 {
		w.broke("attempt %v of at most %d, no hedge: %v", k, w.script.maxAttempts, c.script.noHedge)
	}
	if (k.number == 1) != (x.kind == limiter.Primary) {
		w.broke("attempt %v is a %v", k, x.kind)
	}
	w.granted(x.kind, a.Grant())
	switch {
	case x.kind == limiter.Primary:
		w.primaries++
	case !c.decisive.IsZero() && now.After(c.decisive):
		w.broke("attempt %v starts %v after its call was decided", k, now.Sub(c.decisive))
	case x.kind == limiter.Hedge && !w.due(c, now):
		w.broke("hedge %v starts at %v: not a delay after the starts %v, nor at one of the failures %v", k, now, c.starts, c.failures)
	}
	if x.kind != limiter.Primary {
		w.extras++
	}
	c.starts = append(c.starts, now)
	c.works[k.number] = x
	c.running++
	w.enough()
	return x
}

// due tells whether a hedge may start now: when an attempt has failed, or a multiple
// of the delay after the last start or failure.
func (w *law) due(c *caller, now time.Time) bool {
	if slices.ContainsFunc(c.failures, now.Equal) {
		return true
	}
	if w.script.delay <= 0 {
		return w.script.delay == 0
	}
	var last time.Time
	for _, at := range append(slices.Clone(c.starts), c.failures...) {
		if at.Before(now) && at.After(last) {
			last = at
		}
	}
	return now.Sub(last)%w.script.delay == 0
}

// granted checks a grant (L4, L5).
func (w *law) granted(kind limiter.Kind, g permit.Grant) {
	if g.InFlight < 1 || g.InFlight > g.Limit {
		w.broke("L5: granted at %+v", g)
	}
	if kind == limiter.Hedge && (g.Waited || g.InFlight+max(w.script.reserve, 0) > g.Limit) {
		w.broke("L4: a hedge was granted at %+v with a reserve of %d", g, w.script.reserve)
	}
	w.atOnce = w.atOnce || !g.Waited
}

// reason is the error of a context that has ended. Its deadline may have passed and
// its timer not have fired yet.
func (c *caller) reason() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return context.DeadlineExceeded
}

// decide notes that a call is to be decided now, if it was not before.
func (c *caller) decide() {
	if c.open && c.decisive.IsZero() {
		c.decisive = time.Now()
	}
}

// end notes the end of one part of an attempt's work.
func (w *law) end(x *work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enough()
	x.parts--
	x.last = time.Now()
}

// fn is the function of a call.
func (w *law) fn(ctx context.Context, a hedgedlimit.Attempt, i int) (id, error) {
	k := id{i, a.Number()}
	w.mu.Lock()
	c := w.calls[i]
	x := w.begin(c, k, a)
	w.mu.Unlock()
	s := c.script.attempts[k.number-1]
	ended := make(chan struct{})
	for _, d := range s.holds {
		release := a.Hold()
		w.mu.Lock()
		x.parts++
		w.mu.Unlock()
		go func() {
			<-ended
			time.Sleep(d)
			w.mu.Lock()
			late := c.ctx.Err() != nil || !c.deadline.IsZero() && !time.Now().Before(c.deadline)
			if c.winner == k.number && !c.script.letsGo && !late && ctx.Err() != nil {
				w.broke("the context of winner %v ended before its work: %v", k, context.Cause(ctx))
			}
			w.mu.Unlock()
			w.end(x)
			release(permit.Success)
			release(permit.Overload)
		}()
	}
	how, stopped := s.ends, false
	defer func() {
		w.mu.Lock()
		x.ends, x.returned = how, time.Now()
		if stopped {
			x.stopped = x.returned
		}
		if how == failsRetryable {
			c.failures = append(c.failures, x.returned)
		} else {
			c.decide()
		}
		if how == panics {
			w.panics++
		}
		if c.running--; c.running == 0 {
			c.since = x.returned
		}
		w.mu.Unlock()
		w.end(x)
		close(ended)
	}()
	if s.deaf {
		time.Sleep(s.takes)
	} else {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			stopped = true
			if !s.stubborn {
				how = failsRetryable
				return id{}, ctx.Err()
			}
		}
	}
	switch how {
	case failsRetryable:
		return id{}, errRetryable
	case failsFatal:
		return id{}, errFatal
	case panics:
		panic(k)
	case exits:
		goexit()
	}
	return k, nil
}

// discard disposes of a result.
func (w *law) discard(k id) {
	w.mu.Lock()
	x := w.calls[k.call].works[k.number]
	x.discarded++
	x.parts++
	w.enough()
	w.mu.Unlock()
	defer w.end(x)
	s := w.calls[k.call].script.attempts[k.number-1]
	time.Sleep(s.discard)
	switch s.discards {
	case panics:
		w.mu.Lock()
		w.panics++
		w.mu.Unlock()
		panic(k)
	case exits:
		goexit()
	}
}

// call is the goroutine of a caller.
func (w *law) call(i int) {
	c := w.calls[i]
	time.Sleep(c.script.starts)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	end := func() {
		w.mu.Lock()
		if c.open {
			c.left = time.Now()
			c.decide()
		}
		w.mu.Unlock()
		cancel()
	}
	w.mu.Lock()
	if d := c.script.leaves; d > 0 {
		if c.script.deadline {
			c.deadline = time.Now().Add(d)
			timed, stop := context.WithDeadline(ctx, c.deadline)
			defer stop()
			ctx = timed
			end = func() { // the context ends by itself
				w.mu.Lock()
				defer w.mu.Unlock()
				if c.open {
					c.left = time.Now()
					c.decide()
				}
			}
		}
		defer time.AfterFunc(d, end).Stop()
	}
	c.ctx, c.open, c.since = ctx, true, time.Now()
	w.mu.Unlock()

	options := []hedgedlimit.CallOption[id]{hedgedlimit.Discard(w.discard)}
	if c.script.noHedge {
		options = append(options, hedgedlimit.NoHedge[id]())
	}
	var got id
	var err error
	func() {
		defer func() {
			if v := recover(); v != nil {
				err = panicError{v}
			}
		}()
		got, err = hedgedlimit.Do(ctx, c.hedger, func(ctx context.Context, a hedgedlimit.Attempt) (id, error) { return w.fn(ctx, a, i) }, options...)
	}()
	w.mu.Lock()
	w.answer(i, c, got, err)
	w.mu.Unlock()
	if !c.script.letsGo {
		// The caller keeps its context until all is over.
		for w.unfinished(c) {
			time.Sleep(grid)
		}
	}
}

func (w *law) unfinished(c *caller) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range c.works {
		if x.parts > 0 {
			return true
		}
	}
	return false
}

// other is somebody else who uses the limiter.
func (w *law) other(i int, s otherScript) {
	time.Sleep(s.starts)
	var p limiter.Permit
	ok := false
	if s.waits && s.kind != limiter.Hedge {
		w.mu.Lock()
		w.queueing[i] = time.Now()
		w.mu.Unlock()
		var err error
		p, err = w.l.Acquire(context.Background(), s.kind)
		ok = err == nil
		w.mu.Lock()
		delete(w.queueing, i)
		w.mu.Unlock()
	} else {
		p, ok = w.l.TryAcquire(s.kind)
	}
	if !ok {
		return
	}
	w.mu.Lock()
	w.others[i] = true
	w.granted(s.kind, p.Grant())
	w.enough()
	w.mu.Unlock()
	time.Sleep(s.takes)
	w.mu.Lock()
	w.enough()
	delete(w.others, i)
	w.mu.Unlock()
	p.Release(permit.Success)
}
