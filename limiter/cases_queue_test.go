// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Field case B18: when the algorithm raises the limit, all who now fit are granted with
// no release; the rest sleep on, in order. It is the refusal of one caller more that
// ends the window.
func TestRaisedLimitWakesAllWhoFit(t *testing.T) {
	for limit, want := range map[int]int{6: 5, 3: 2, 1: 0, 100: 5} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{first: gradient.Decision{Limit: 1, MinLength: time.Second}}
			s.next = func(gradient.Window) gradient.Decision { return gradient.Decision{Limit: limit, MinLength: time.Hour} }
			l := limitedBy(t, s, limiter.Config{MaxWaiting: 5})
			deaf, _ := l.TryAcquire(limiter.Primary)
			stop := make(chan struct{})
			var woken [5]atomic.Bool
			for i := range 5 {
				go func() {
					p, err := l.Acquire(t.Context(), limiter.Primary)
					if err != nil {
						t.Error(err)
					}
					woken[i].Store(true)
					<-stop
					p.Release(permit.Success)
				}()
				synctest.Wait()
			}
			time.Sleep(time.Second)
			if _, err := l.Acquire(t.Context(), limiter.Primary); err != limiter.ErrLimitExceeded { //nolint:errorlint // the bare sentinel
				t.Errorf("the sixth in a queue of five: %v", err)
			}
			// Granted by whoever closed the window, before anybody is scheduled.
			if st := l.Stats().Ledger; st.Limit != limit || st.InFlight != 1+want || st.Waiting != 5-want {
				t.Errorf("limit %d: %+v, want %d woken", limit, st, want)
			}
			synctest.Wait()
			for i := range woken {
				if woken[i].Load() != (i < want) {
					t.Errorf("limit %d: caller %d was woken: %v", limit, i, woken[i].Load())
				}
			}
			close(stop)
			synctest.Wait()
			deaf.Release(permit.Success)
			synctest.Wait()
			probe(t, l)
		})
	}
}

// Field case B19: a caller who waits is served before those who come later, however
// often they come back: after at most one grant for each who waited before.
func TestCallersWhoComeBackDoNotOvertake(t *testing.T) {
	const rivals, before, bound = 8, 4, 64
	l := fixed(t, 1, limiter.Config{MaxWaiting: limiter.Unbounded, MaxWait: time.Minute})
	waiting := func(n int) {
		t.Helper()
		tick := time.NewTicker(50 * time.Microsecond)
		defer tick.Stop()
		deadline := time.After(20 * time.Second)
		for l.Stats().Ledger.Waiting != n {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%d wait, want %d", l.Stats().Ledger.Waiting, n)
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var grants atomic.Int64
	var late sync.RWMutex // keeps half of the rivals out of the queue
	var all sync.WaitGroup
	for i := range rivals {
		enter := func() bool {
			if i >= before {
				late.RLock()
				defer late.RUnlock()
			}
			return true
		}
		all.Go(func() {
			for enter() && l.Do(ctx, func(context.Context) error {
				grants.Add(1)
				<-time.After(200 * time.Microsecond)
				return nil
			}) == nil {
			}
		})
	}
	for range 20 {
		late.Lock()
		gate, err := l.Acquire(t.Context(), limiter.Primary)
		if err != nil {
			t.Fatal(err)
		}
		// Those of the late ones who were in the queue already are served first.
		for l.Stats().Ledger.Waiting != before {
			gate.Release(permit.Success)
			if gate, err = l.Acquire(t.Context(), limiter.Primary); err != nil {
				t.Fatal(err)
			}
			<-time.After(100 * time.Microsecond)
		}
		served := make(chan error, 1)
		go func() {
			deadline, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			served <- l.Do(deadline, func(context.Context) error {
				if n := grants.Load(); n > before {
					t.Errorf("%d were served before the one who waited, %d waited before it (the bound is %d)", n, before, bound)
				}
				return nil
			})
		}()
		waiting(before + 1)
		late.Unlock()
		waiting(rivals + 1)
		grants.Store(0)
		gate.Release(permit.Success)
		if err := <-served; err != nil {
			t.Fatalf("the one who waited: %v", err)
		}
	}
	stop()
	all.Wait()
	probe(t, l)
}

// Field case B60: what a call came to is told by its error, and exactly one of them
// answers to errors.Is; why it was refused is told by the counts besides. A refusal
// looks neither like a cancellation nor like a deadline.
func TestEachEndOfACallHasItsOwnError(t *testing.T) {
	failure := errors.New("failure")
	sentinels := map[string]error{
		"limit": limiter.ErrLimitExceeded, "closed": limiter.ErrClosed, "canceled": context.Canceled,
		"deadline": context.DeadlineExceeded, "failure": failure,
	}
	counted := func(r limiter.Rejections) map[string]uint64 {
		return map[string]uint64{"limit": r.Limit, "queue full": r.QueueFull, "max wait": r.MaxWait, "closed": r.Closed, "canceled": r.Canceled}
	}
	queue := limiter.Config{MaxWaiting: 1, MaxWait: time.Second}
	for name, c := range map[string]struct {
		config  limiter.Config
		free    bool // a permit is free
		waiting bool // one caller waits already
		leaves  func(context.Context) (context.Context, context.CancelFunc)
		during  func(*limiter.Limiter) // 10 ms later
		want    string
		count   string
		after   time.Duration
	}{
		"no queue":      {want: "limit", count: "limit"},
		"queue full":    {config: queue, waiting: true, want: "limit", count: "queue full"},
		"queue timeout": {config: queue, want: "limit", count: "max wait", after: time.Second},
		"cancelled while queued": {config: queue, leaves: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(500*time.Millisecond, cancel)
			return ctx, cancel
		}, want: "canceled", count: "canceled", after: 500 * time.Millisecond},
		"deadline while queued": {config: queue, leaves: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 500*time.Millisecond)
		}, want: "deadline", count: "canceled", after: 500 * time.Millisecond},
		"deadline with a cause while queued": {config: queue, leaves: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, 500*time.Millisecond, failure)
		}, want: "deadline", count: "canceled", after: 500 * time.Millisecond},
		"closed while queued": {config: queue, during: func(l *limiter.Limiter) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = l.Close(ended)
		}, want: "closed", count: "closed", after: 10 * time.Millisecond},
		"the work failed":    {free: true, want: "failure"},
		"the work succeeded": {free: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, c.config)
				var held limiter.Permit
				if !c.free {
					held, _ = l.TryAcquire(limiter.Primary)
				}
				if c.waiting {
					go func() {
						p, err := l.Acquire(t.Context(), limiter.Primary)
						if err != nil {
							t.Error(err)
						}
						p.Release(permit.Success)
					}()
					synctest.Wait()
				}
				ctx := t.Context()
				if c.leaves != nil {
					var cancel context.CancelFunc
					ctx, cancel = c.leaves(ctx)
					defer cancel()
				}
				if c.during != nil {
					time.AfterFunc(10*time.Millisecond, func() { c.during(l) })
				}
				start, ran := time.Now(), false
				err := l.Do(ctx, func(context.Context) error {
					ran = true
					if c.want == "" {
						return nil
					}
					return fmt.Errorf("wrapped: %w", failure)
				})
				if ran != c.free || time.Since(start) != c.after || (err == nil) != (c.want == "") {
					t.Errorf("Do returned %v after %v, the work ran: %v", err, time.Since(start), ran)
				}
				for sentinel, e := range sentinels {
					if errors.Is(err, e) != (sentinel == c.want) {
						t.Errorf("errors.Is(%v, %s) is %v", err, sentinel, errors.Is(err, e))
					}
				}
				for reason, n := range counted(l.Stats().Rejected) {
					if want := reason == c.count; (n == 1) != want || n > 1 {
						t.Errorf("refusals counted as %s: %d", reason, n)
					}
				}
				held.Release(permit.Success)
				synctest.Wait()
				if !l.Stats().Ledger.Closed {
					probe(t, l)
				}
			})
		})
	}
}
