package hedgedlimit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// The story of one call explains it: why each attempt was started or was not, which
// won, and how long a loser held its permit after it had lost.
func TestObserverExplainsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stories []hedgedlimit.CallEvent
		var told atomic.Int32
		l := newLimiter(t, 3, limiter.Config{})
		h := newHedger(t, hedgedlimit.Config{
			Limiter: l, MaxAttempts: 4, Observer: func(e hedgedlimit.CallEvent) { told.Add(1); stories = append(stories, e) },
		})
		began := time.Now()
		p, _ := l.TryAcquire(limiter.Primary)
		time.AfterFunc(120*ms, func() { p.Release(permit.Success) })
		// 0: primary. 50: hedge. 100: no permit. 140: the hedge fails, another at once.
		// 160: it wins, and the primary is deaf until 400.
		run(t, t.Context(), h, want{result: 3, at: 160 * ms, started: []time.Duration{0, 50 * ms, 140 * ms}},
			step{takes: 400 * ms, deaf: true}, step{takes: 90 * ms, err: errRetryable}, step{takes: 20 * ms})
		if told.Load() != 0 {
			t.Error("the story was told before it was over")
		}
		settle(time.Second)
		if len(stories) != 1 {
			t.Fatalf("%d stories", len(stories))
		}
		s := stories[0]
		at := func(x time.Time) time.Duration { return x.Sub(began) }
		if s.Winner != 3 || s.Err != nil || s.Panicked || s.HeldBack || at(s.Began) != 0 || at(s.Over) != 400*ms {
			t.Errorf("%+v", s)
		}
		if len(s.Skips) != 1 || s.Skips[0].Number != 3 || s.Skips[0].Reason != hedgedlimit.SkipPermit || at(s.Skips[0].At) != 100*ms || s.SkipsLeftOut != 0 {
			t.Errorf("skips %+v", s.Skips)
		}
		if len(s.Attempts) != 3 {
			t.Fatalf("attempts %+v", s.Attempts)
		}
		for i, want := range []struct {
			kind      limiter.Kind
			start     hedgedlimit.Start
			won, lost bool
			outcome   permit.Outcome
			err       error
			overhang  time.Duration
		}{
			{limiter.Primary, hedgedlimit.StartFirst, false, true, permit.Success, nil, 240 * ms},
			{limiter.Hedge, hedgedlimit.StartDelay, false, false, permit.Ignored, errRetryable, 0},
			{limiter.Hedge, hedgedlimit.StartFailure, true, false, permit.Success, nil, 0},
		} {
			a := s.Attempts[i]
			if a.Number != i+1 || a.Kind != want.kind || a.Start != want.start || a.Won != want.won || a.Lost != want.lost ||
				a.Outcome != want.outcome || !errors.Is(a.Err, want.err) || a.Overhang() != want.overhang {
				t.Errorf("attempt %d: %+v", i+1, a)
			}
		}
		if s := h.Stats(); s.Overhang != 240*ms {
			t.Errorf("overhang %v", s.Overhang)
		}
		probe(t, h)
	})
}

// A call that was refused, that failed or that panicked has a story too.
func TestObserverIsToldOfCallsWithoutAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var story hedgedlimit.CallEvent
		l := newLimiter(t, 1, limiter.Config{})
		h := newHedger(t, hedgedlimit.Config{Limiter: l, OnPanic: func(any, []byte) {}, Observer: func(e hedgedlimit.CallEvent) { story = e }})
		do := func(fn func() (int, error)) {
			story = hedgedlimit.CallEvent{}
			_, _ = caught(func() (int, error) {
				return hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return fn() })
			})
			synctest.Wait()
		}
		do(func() (int, error) { return 0, errFatal })
		if story.Err != errFatal || len(story.Attempts) != 1 || story.Attempts[0].Err != errFatal { //nolint:errorlint // bare
			t.Errorf("%+v", story)
		}
		do(func() (int, error) { panic("x") })
		if story.Err != nil || !story.Panicked || len(story.Attempts) != 1 {
			t.Errorf("%+v", story)
		}
		p, _ := l.TryAcquire(limiter.Primary)
		do(func() (int, error) { return 0, nil })
		if story.Err != limiter.ErrLimitExceeded || len(story.Attempts) != 0 { //nolint:errorlint // bare
			t.Errorf("%+v", story)
		}
		p.Release(permit.Success)
		probe(t, h)
	})
}

// What one call remembers is bounded.
func TestObserverRemembersSixteenSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var story hedgedlimit.CallEvent
		h := newHedger(t, hedgedlimit.Config{
			Limiter: newLimiter(t, 1, limiter.Config{}), Delay: hedgedlimit.Fixed(10 * ms), Observer: func(e hedgedlimit.CallEvent) { story = e },
		})
		run(t, t.Context(), h, want{result: 1, at: time.Second, started: []time.Duration{0}}, step{takes: time.Second})
		synctest.Wait()
		if len(story.Skips) != 16 || story.SkipsLeftOut != 99-16 && story.SkipsLeftOut != 100-16 {
			t.Errorf("%d skips, %d left out", len(story.Skips), story.SkipsLeftOut)
		}
		probe(t, h)
	})
}

// Law L10: an observer that panics or exits breaks nothing.
func TestObserverThatDoesNotReturn(t *testing.T) {
	for name, bad := range map[string]func(){"panics": func() { panic("observer") }, "exits": goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p told
				h := newHedger(t, hedgedlimit.Config{OnPanic: p.OnPanic, Observer: func(hedgedlimit.CallEvent) { bad() }})
				for range 10 {
					_, _ = caught(func() (int, error) {
						return hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return 1, nil })
					})
				}
				synctest.Wait()
				if told := len(p.values) == 10; told != (name == "panics") {
					t.Errorf("OnPanic was told %v", p.values)
				}
				if err := h.Close(t.Context()); err != nil {
					t.Error(err)
				}
				probe(t, h)
			})
		})
	}
}
