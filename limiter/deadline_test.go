package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Of a service with two places and 100 ms a call, the one who comes k-th to the queue is
// done after k·50 ms + 100 ms. A caller whose deadline is before that is refused at
// once, and not before a window has told of the 100 ms.
func TestCallerWhoWouldBeTooLateIsRefusedAtOnce(t *testing.T) {
	for name, config := range map[string]limiter.Config{
		"unbounded": {MaxWaiting: limiter.Unbounded}, "bounded": {MaxWaiting: 4}, "for a while": {MaxWaiting: 4, MaxWait: time.Hour},
		"unbounded for a while": {MaxWaiting: limiter.Unbounded, MaxWait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{first: gradient.Decision{Limit: 2, MinLength: time.Second, MinSamples: 1}}
				s.next = func(gradient.Window) gradient.Decision { return gradient.Decision{Limit: 2, MinLength: time.Hour} }
				l := limitedBy(t, s, config)
				work := func(ctx context.Context) error { time.Sleep(100 * time.Millisecond); return nil }
				call := func(deadline time.Duration) (error, time.Duration) {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					start := time.Now()
					err := l.Do(ctx, work)
					return err, time.Since(start)
				}
				fill := func(waiting int) {
					for range 2 + waiting {
						go func() {
							if err := l.Do(t.Context(), work); err != nil {
								t.Error(err)
							}
						}()
					}
					synctest.Wait()
					if st := l.Stats().Ledger; st.InFlight != 2 || st.Waiting != waiting {
						t.Fatalf("%+v", st)
					}
				}
				fill(0)
				if err, after := call(50 * time.Millisecond); err != context.DeadlineExceeded || after != 50*time.Millisecond { //nolint:errorlint // bare
					t.Errorf("with no window known: %v after %v", err, after)
				}
				time.Sleep(time.Second)
				for range 2 { // the first ends the window
					if err, after := call(time.Millisecond); err != nil || after != 100*time.Millisecond || len(s.windows) != 1 {
						t.Errorf("with a permit free: %v after %v, %d windows", err, after, len(s.windows))
					}
				}
				for waiting := range 4 {
					done := time.Duration(waiting+1)*50*time.Millisecond + 100*time.Millisecond
					fill(waiting)
					before := l.Stats().Rejected.Deadline
					if err, after := call(done - 5*time.Millisecond); err != limiter.ErrLimitExceeded || after != 0 { //nolint:errorlint // bare
						t.Errorf("%d wait, too late: %v after %v", waiting, err, after)
					}
					if r := l.Stats().Rejected; r.Deadline != before+1 || r.QueueFull != 0 || r.Limit != 0 || r.MaxWait != 0 {
						t.Errorf("%d wait, too late: %+v", waiting, r)
					}
					if d := time.Since(l.LastPressure()); d != 0 {
						t.Errorf("last pressure %v ago", d)
					}
					// Served: two at a time, so that it may be sooner or later by half a turn.
					if err, after := call(done + 60*time.Millisecond); err != nil || after > done+60*time.Millisecond {
						t.Errorf("%d wait, in time: %v after %v", waiting, err, after)
					}
					time.Sleep(time.Second)
				}
				if config.MaxWaiting == 4 {
					fill(4)
					if err, _ := call(time.Millisecond); err != limiter.ErrLimitExceeded || l.Stats().Rejected.QueueFull != 1 { //nolint:errorlint // bare
						t.Errorf("queue full: %v, %+v", err, l.Stats().Rejected)
					}
					time.Sleep(time.Second)
				}
				fill(0)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				_ = l.Close(ended)
				if err, _ := call(time.Millisecond); err != limiter.ErrClosed { //nolint:errorlint // bare
					t.Errorf("closed: %v", err)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// A quiet window is not a slow service: what counts is how long a permit is out, not how
// few came.
func TestQuietWindowRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 1, MinLength: 10 * time.Second, MinSamples: 1}}
		l := limitedBy(t, s, limiter.Config{MaxWaiting: 1})
		time.Sleep(10 * time.Second)
		work := func(context.Context) error { time.Sleep(time.Millisecond); return nil }
		if err := l.Do(t.Context(), work); err != nil || len(s.windows) != 1 {
			t.Fatalf("%v, %d windows", err, len(s.windows))
		}
		p, _ := l.TryAcquire(limiter.Primary)
		time.AfterFunc(time.Millisecond, func() { p.Release(permit.Success) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if err := l.Do(ctx, work); err != nil {
			t.Errorf("one who has time enough: %v, %+v", err, l.Stats().Rejected)
		}
	})
}
