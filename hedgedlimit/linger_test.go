package hedgedlimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A loser that lingers is cancelled at once; its permit comes back when its work has
// ended and the other side is expected to be done, at the latest after the bound.
func TestLingerHoldsThePermitForTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		learnt bool
		bound  time.Duration
		until  time.Duration // the permit is out, since the call began
	}{
		"nothing learnt: the bound": {false, 300 * ms, 360 * ms},
		"the bound":                 {true, 10 * ms, 70 * ms},
		"what is expected":          {true, time.Hour, 80 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				delay := hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: 50 * ms, Max: 50 * ms, MinSamples: 10})
				for i := range 1000 { // half take 20 ms, a quarter 60, an eighth 80, the rest 100
					d := []time.Duration{20, 20, 20, 20, 60, 60, 80, 100}[i%8] * ms
					if c.learnt {
						hedgedlimit.Observe(delay, time.Now(), d, false)
					}
				}
				if !c.learnt {
					delay = hedgedlimit.Fixed(50 * ms)
				}
				h := newHedger(t, hedgedlimit.Config{Delay: delay, Losers: hedgedlimit.Linger(c.bound)})
				tr := run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
					step{takes: time.Hour}, step{takes: 10 * ms})
				synctest.Wait()
				if tr.stopped[1] != 60*ms {
					t.Errorf("the loser was cancelled after %v", tr.stopped[1])
				}
				for h.Limiter().InFlight() > 0 {
					settle(ms)
				}
				// The histogram that it was learnt from is 3 % wide.
				if at := time.Since(tr.began); at < c.until-5*ms || at > c.until+5*ms {
					t.Errorf("the permit came back after %v, want %v", at, c.until)
				}
				if s := h.Stats(); s.Ended[limiter.Primary][permit.Canceled] != 1 || s.Overhang < time.Duration(1) {
					t.Errorf("%+v", s)
				}
				probe(t, h)
			})
		})
	}
}

// A loser whose work goes on longer holds its permit until that has ended.
func TestLingerIsNoEndOfWorkThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Losers: hedgedlimit.Linger(30 * ms)})
		run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 200 * ms, deaf: true, err: errRetryable}, step{takes: 10 * ms})
		settle(139 * ms)
		if n := h.Limiter().InFlight(); n != 1 {
			t.Errorf("%d in flight, the work goes on", n)
		}
		settle(2 * ms)
		probe(t, h)
	})
}

// A loser that has returned a result is over on the other side too.
func TestLingerEndsWithAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Losers: hedgedlimit.Linger(time.Hour)})
		run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 100 * ms, deaf: true}, step{takes: 10 * ms})
		settle(41 * ms)
		probe(t, h)
	})
}

// A caller who leaves does not stop the other side either.
func TestLingerAfterTheCallerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Losers: hedgedlimit.Linger(40 * ms)})
		ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
		defer cancel()
		run(t, ctx, h, want{err: context.DeadlineExceeded, at: 20 * ms, started: []time.Duration{0}}, step{takes: time.Hour})
		settle(39 * ms)
		if n := h.Limiter().InFlight(); n != 1 {
			t.Errorf("%d in flight", n)
		}
		settle(2 * ms)
		probe(t, h)
	})
}

// Law L12: lingering is no latency.
func TestLingerTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spy{}
		l, err := limiter.New(limiter.Config{Algorithm: s})
		if err != nil {
			t.Fatal(err)
		}
		h := newHedger(t, hedgedlimit.Config{Limiter: l, Losers: hedgedlimit.Linger(2 * time.Second)})
		run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}}, step{takes: time.Hour}, step{takes: 10 * ms})
		settle(3 * time.Second) // its end closes the window
		if s.mean != 60*ms {
			t.Errorf("the limit learned a latency of %v", s.mean)
		}
		probe(t, h)
	})
}
