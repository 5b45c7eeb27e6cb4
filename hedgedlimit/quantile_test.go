package hedgedlimit_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// sample is the latency of one primary.
type sample struct {
	d        time.Duration
	censored bool
}

// learn shows samples to a new delay, which looks at them when all have come in.
func learn(config hedgedlimit.QuantileConfig, samples []sample) hedgedlimit.Delay {
	config.MinSamples = len(samples)
	d := hedgedlimit.Quantile(config)
	now := time.Now()
	for _, s := range samples {
		hedgedlimit.Observe(d, now, s.d, s.censored)
	}
	return d
}

// near tells that got is want but for the width of a bucket.
func near(got, want time.Duration) bool {
	return math.Abs(float64(got-want)) <= 0.035*float64(want)
}

func TestDelayIsTheQuantile(t *testing.T) {
	var samples []sample
	for i := range 1000 {
		samples = append(samples, sample{d: time.Duration(i+1) * ms})
	}
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
		d := learn(hedgedlimit.QuantileConfig{Quantile: q}, samples)
		got, known := hedgedlimit.Next(d, time.Now())
		if want := time.Duration(q*1000) * ms; !known || !near(got, want) {
			t.Errorf("quantile %v: %v, %v, want %v", q, got, known, want)
		}
		if usual, known := hedgedlimit.Expected(d); !known || !near(usual, 500*ms) {
			t.Errorf("the usual latency is %v, %v", usual, known)
		}
	}
}

func TestNoDelayBeforeEnoughSamples(t *testing.T) {
	for config, want := range map[hedgedlimit.QuantileConfig]int{
		{}: 100, {MinSamples: 1}: 1, {MinSamples: 250}: 250, {MinSamples: 3000}: 3000,
	} {
		d := hedgedlimit.Quantile(config)
		now := time.Now()
		for i := range want {
			if got, known := hedgedlimit.Next(d, now); known {
				t.Fatalf("MinSamples %d: a delay of %v after %d samples", config.MinSamples, got, i)
			}
			hedgedlimit.Observe(d, now, time.Second, false)
		}
		if _, known := hedgedlimit.Next(d, now); !known {
			t.Errorf("MinSamples %d: no delay after %d samples", config.MinSamples, want)
		}
	}
}

// Field case B50: a service with little traffic learns its delay too, if slowly.
func TestTrickleOfSamplesIsEnough(t *testing.T) {
	d := hedgedlimit.Quantile(hedgedlimit.QuantileConfig{})
	now := time.Now()
	for range 100 {
		hedgedlimit.Observe(d, now, time.Second, false)
		now = now.Add(20 * time.Second)
	}
	if got, known := hedgedlimit.Next(d, now); !known || !near(got, time.Second) {
		t.Errorf("after 100 samples the delay is %v, %v", got, known)
	}
}

// Law L12: a latency that was cut short is a lower bound. It may raise the delay or
// make it unknown, and never lowers it: neither when it comes in besides, nor in the
// place of the full one.
func TestCensoredSamplesNeverLowerTheDelay(t *testing.T) {
	latency := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(math.Pow(10, rapid.Float64Range(3, 10.5).Draw(t, "exponent")))
	})
	rapid.Check(t, func(t *rapid.T) {
		config := hedgedlimit.QuantileConfig{Quantile: rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.99}).Draw(t, "quantile")}
		var samples, shorter, more []sample
		for _, l := range rapid.SliceOfN(latency, 1, 200).Draw(t, "samples") {
			cut := rapid.IntRange(0, 4).Draw(t, "cut short") == 0
			samples = append(samples, sample{d: l})
			shorter = append(shorter, sample{l, cut})
		}
		more = append(more, samples...)
		for _, l := range rapid.SliceOfN(latency, 0, 200).Draw(t, "cut short besides") {
			more = append(more, sample{l, true})
		}
		full, known := hedgedlimit.Next(learn(config, samples), time.Now())
		if !known {
			t.Fatal("no delay from full samples")
		}
		for name, s := range map[string][]sample{"in their place": shorter, "besides": more} {
			if got, known := hedgedlimit.Next(learn(config, s), time.Now()); known && got < full {
				t.Fatalf("samples cut short, %s, lower the delay from %v to %v", name, full, got)
			}
		}
	})
}

// Unknown is not the same as small: if so many are cut short that the curve does not
// fall to the quantile, no hedge is sent.
func TestDelayIsUnknownWhenTheCurveDoesNotFall(t *testing.T) {
	var samples []sample
	for i := range 100 {
		s := sample{d: 10 * ms}
		if i%10 == 0 {
			s = sample{20 * ms, true}
		}
		samples = append(samples, s)
	}
	if d, known := hedgedlimit.Next(learn(hedgedlimit.QuantileConfig{Quantile: 0.89}, samples), time.Now()); !known || !near(d, 10*ms) {
		t.Errorf("nine of ten answered in 10 ms, the quantile 0.89 is %v, %v", d, known)
	}
	d := learn(hedgedlimit.QuantileConfig{Min: ms, Max: time.Second}, samples)
	if got, known := hedgedlimit.Next(d, time.Now()); known {
		t.Errorf("a tenth was cut short, the quantile 0.95 is %v", got)
	}
	if usual, known := hedgedlimit.Expected(d); !known || !near(usual, 10*ms) {
		t.Errorf("the usual latency is %v, %v", usual, known)
	}

	// In a call: every primary runs into its deadline, and none is hedged.
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{MinSamples: 10})})
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
			run(t, ctx, h, want{err: context.DeadlineExceeded, at: 100 * ms, started: []time.Duration{0}}, step{takes: time.Hour})
			cancel()
		}
		synctest.Wait()
		if s := h.Stats(); s.DelayKnown || s.Due != 0 || s.Ended[limiter.Primary][permit.Expired] != 100 {
			t.Errorf("%+v", s)
		}
		probe(t, h)
	})
}

func TestDelayIsBoundedByMinAndMax(t *testing.T) {
	samples := []sample{{d: 10 * ms}, {d: 10 * ms}}
	for want, config := range map[time.Duration]hedgedlimit.QuantileConfig{
		20 * ms: {Min: 20 * ms}, 5 * ms: {Max: 5 * ms}, 30 * ms: {Min: 30 * ms, Max: 30 * ms},
	} {
		if got, known := hedgedlimit.Next(learn(config, samples), time.Now()); !known || got != want {
			t.Errorf("%+v: %v, %v", config, got, known)
		}
	}
}

func TestDelayFollowsTheLatency(t *testing.T) {
	for name, c := range map[string]struct {
		samples int
		every   time.Duration
	}{
		"by the number of samples": {2100, 0},
		"by their age":             {250, 100 * ms}, // two windows of 10 s
	} {
		d := hedgedlimit.Quantile(hedgedlimit.QuantileConfig{})
		now := time.Now()
		for _, latency := range []time.Duration{100 * ms, 10 * ms, time.Second} {
			for range c.samples {
				hedgedlimit.Observe(d, now, latency, false)
				now = now.Add(c.every)
			}
			if got, known := hedgedlimit.Next(d, now); !known || !near(got, latency) {
				t.Errorf("%s: %v, %v after %d samples of %v", name, got, known, c.samples, latency)
			}
		}
	}
}

// A hedge is seen mostly when it is quick, so hedges are left out.
func TestHedgesDoNotTeachTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: 0.3})})
		for i := range 2000 {
			primary := step{takes: 100 * ms}
			if i%2 == 1 {
				primary.takes = time.Second // beaten by a hedge, once there are any
			}
			fn, _ := script(t, primary, step{takes: ms})
			if _, err := hedgedlimit.Do(t.Context(), h, fn); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s := h.Stats(); !near(s.Delay, 100*ms) || s.Won[limiter.Hedge] < 900 {
			t.Errorf("the delay is %v after primaries of 100 ms and more, and %d hedges of 1 ms", s.Delay, s.Won[limiter.Hedge])
		}
		probe(t, h)
	})
}

// spy is an algorithm that keeps the mean latency of the last window.
type spy struct{ mean time.Duration }

func (s *spy) Start(time.Time) gradient.Decision {
	return s.Next(time.Time{}, &gradient.Window{Latency: new(gradient.Histogram)})
}
func (s *spy) Next(_ time.Time, w *gradient.Window) gradient.Decision {
	s.mean = w.Latency.Mean()
	return gradient.Decision{Limit: 10, Reason: "spy", MinLength: time.Second}
}

// A loser that ignores its cancellation works on for nobody: what it shows of the
// service ends when it was cancelled, though its permit stays out.
func TestLatencyOfALoserEndsWithItsCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spy{}
		l, err := limiter.New(limiter.Config{Algorithm: s})
		if err != nil {
			t.Fatal(err)
		}
		h := newHedger(t, hedgedlimit.Config{Limiter: l})
		run(t, t.Context(), h, want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}},
			step{takes: 3 * time.Second, deaf: true, err: errRetryable}, step{takes: 10 * ms})
		settle(3 * time.Second) // its end closes the window
		if h.Stats().Ended[limiter.Primary][permit.Canceled] != 1 || s.mean != 60*ms {
			t.Errorf("the limit learned a latency of %v; %+v", s.mean, h.Stats())
		}
		probe(t, h)
	})
}

// The loop is closed: the hedges that the 95th percentile causes cut primaries
// short, and if those were left out, the delay would sink and cause more. It stays
// at one call in twenty.
func TestHedgesDoNotLowerTheDelayThatCausesThem(t *testing.T) {
	bothPolicies(t, func(t *testing.T, p hedgedlimit.LoserPolicy) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{}), Losers: p, Limiter: newLimiter(t, 1000, limiter.Config{})})
		random := rand.New(rand.NewPCG(1, 2))
		call := func() {
			takes := map[int]time.Duration{}
			for n := 1; n <= 2; n++ { // exponential: the tail is long
				takes[n] = time.Duration(random.ExpFloat64() * float64(20*ms))
			}
			_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
				select {
				case <-time.After(takes[a.Number()]):
					return 0, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
			if err != nil {
				t.Error(err)
			}
		}
		for range 1000 {
			call()
		}
		before := h.Stats()
		for range 4000 {
			call()
		}
		after := h.Stats()
		// −20 ms · ln 0.05 = 60 ms
		if share := float64(after.Hedged-before.Hedged) / 4000; share < 0.035 || share > 0.065 {
			t.Errorf("%.1f %% of the calls were hedged, after %v", 100*share, after.Delay)
		}
		settle(time.Hour)
		probe(t, h)
	})
}
