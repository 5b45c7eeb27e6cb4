package hedgedlimit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// The calls held back are never hedged and are counted apart, so that what hedging
// brings can be read off.
func TestHoldbackMeasuresWhatHedgingBrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draws := 0
		var mu sync.Mutex
		var held, hedged int
		h := newHedger(t, hedgedlimit.Config{
			Holdback: 0.25, Rand: func() float64 { draws++; return float64(draws%4) / 4 },
			Observer: func(e hedgedlimit.CallEvent) {
				mu.Lock()
				defer mu.Unlock()
				if e.HeldBack {
					held++
					if len(e.Attempts) != 1 || len(e.Skips) != 0 {
						t.Errorf("a call that is held back: %+v", e)
					}
				} else if len(e.Attempts) == 2 {
					hedged++
				}
			},
		})
		for i := range 4000 {
			primary := step{takes: 10 * ms}
			if i%16 < 4 {
				primary.takes = time.Second
			}
			fn, _ := script(t, primary, step{takes: 10 * ms})
			if _, err := hedgedlimit.Do(t.Context(), h, fn); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		s := h.Stats()
		if held != 1000 || hedged != 750 || s.HeldBack.Calls != 1000 || s.Hedgeable.Calls != 3000 || s.HeldBack.Failed+s.Hedgeable.Failed != 0 {
			t.Errorf("%d held back, %d hedged; %+v, %+v", held, hedged, s.HeldBack, s.Hedgeable)
		}
		if !near(s.HeldBack.P99, time.Second) || !near(s.Hedgeable.P99, 60*ms) || !near(s.HeldBack.P50, 10*ms) || !near(s.Hedgeable.P50, 10*ms) {
			t.Errorf("%+v, %+v", s.HeldBack, s.Hedgeable)
		}
		probe(t, h)
	})
}

// A call that is held back is retried all the same: only hedges are left out.
func TestHeldBackCallIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Holdback: 1})
		run(t, t.Context(), h, want{result: 2, at: 110 * ms, started: []time.Duration{0, 10 * ms}},
			step{takes: 10 * ms, err: errRetryable}, step{takes: 100 * ms})
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		run(t, ctx, h, want{err: context.DeadlineExceeded, at: 100 * ms, started: []time.Duration{0}}, step{takes: time.Hour})
		if s := h.Stats(); s.Started[limiter.Hedge] != 0 || s.HeldBack.Calls != 2 || s.HeldBack.Failed != 1 || s.Hedgeable != (hedgedlimit.Arm{}) {
			t.Errorf("%+v", s)
		}
		settle(time.Second)
		probe(t, h)
	})
}
