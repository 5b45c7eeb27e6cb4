package hedgedlimit_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// long reports whether the long form of a simulation is to run: see make check-deep.
func long() bool { return os.Getenv("HOLDFAST_LONG") != "" }

// A latency law draws the time that one attempt takes.
type latencyLaw func(r *rand.Rand) time.Duration

// usualAndSlow is log-normal around 5 ms with a coefficient of variation of 0.4, of
// which one in twenty takes ten times as long.
func usualAndSlow(r *rand.Rand) time.Duration {
	sigma := math.Sqrt(math.Log(1 + 0.4*0.4))
	d := 5 * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
	if r.IntN(20) == 0 {
		d *= 10
	}
	return time.Duration(d * float64(ms))
}

// heavyTail is a Pareto law with α = 1.5 from 1 ms on, cut at a minute.
func heavyTail(r *rand.Rand) time.Duration {
	return min(time.Duration(math.Pow(1-r.Float64(), -1/1.5)*float64(ms)), time.Minute)
}

// hedgedShare does n calls, one after the other, and returns the share of those hedged.
func hedgedShare(t testing.TB, h *hedgedlimit.Hedger, law latencyLaw, r *rand.Rand, n int) float64 {
	before := h.Stats().Hedged
	for range n {
		takes := [2]time.Duration{law(r), law(r)}
		_, err := hedgedlimit.Do(context.Background(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
			timer := time.NewTimer(takes[a.Number()-1])
			defer timer.Stop()
			select {
			case <-timer.C:
				return 0, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
	return float64(h.Stats().Hedged-before) / float64(n)
}

func learner(t testing.TB, q float64) *hedgedlimit.Hedger {
	return newHedger(t, hedgedlimit.Config{
		Limiter: newLimiter(t, 1000, limiter.Config{}), Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: q}),
	})
}

// With the gates off and no budget, as many calls are hedged as the quantile says, though
// each hedge that wins cuts a primary short. If those were left out, a nominal 5 % would
// be 10 to 11 %.
func TestShareOfHedgedCallsIsNominal(t *testing.T) {
	n, within := 20_000, 0.01
	if long() {
		n, within = 200_000, 0.003
	}
	for _, c := range []struct {
		name string
		law  latencyLaw
		q    float64
	}{
		{"usual and slow", usualAndSlow, 0.95}, {"usual and slow", usualAndSlow, 0.99},
		{"usual and slow", usualAndSlow, 0.90}, {"usual and slow", usualAndSlow, 0.80},
		{"heavy tail", heavyTail, 0.95}, {"heavy tail", heavyTail, 0.80},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.q), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := learner(t, c.q)
				share := hedgedShare(t, h, c.law, rand.New(rand.NewPCG(5, 6)), n)
				if math.Abs(share-(1-c.q)) > within {
					t.Errorf("%.2f %% of %d calls were hedged, nominal are %.0f %%", 100*share, n, 100*(1-c.q))
				}
				t.Logf("%.2f %%, nominal %.0f %%", 100*share, 100*(1-c.q))
			})
		})
	}
}

// The share does not drift: it is the same in the last tenth of ten times as many calls.
func TestShareOfHedgedCallsDoesNotDrift(t *testing.T) {
	n, within := 4000, 0.015
	if long() {
		n, within = 200_000, 0.003
	}
	for name, c := range map[string]struct {
		law latencyLaw
		q   float64
	}{"usual and slow 0.95": {usualAndSlow, 0.95}, "heavy tail 0.8": {heavyTail, 0.8}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := learner(t, c.q)
				r := rand.New(rand.NewPCG(7, 8))
				for i := range 10 {
					if share := hedgedShare(t, h, c.law, r, n); math.Abs(share-(1-c.q)) > within {
						t.Errorf("tenth %d: %.2f %% were hedged, nominal are %.0f %%", i+1, 100*share, 100*(1-c.q))
					}
				}
			})
		})
	}
}

// After a change of the latency, up or down, two windows are enough.
func TestShareOfHedgedCallsRecoversFromAChange(t *testing.T) {
	n, within := 6000, 0.015
	if long() {
		n, within = 100_000, 0.004
	}
	times := func(law latencyLaw, by float64) latencyLaw {
		return func(r *rand.Rand) time.Duration { return time.Duration(by * float64(law(r))) }
	}
	synctest.Test(t, func(t *testing.T) {
		h := learner(t, 0.95)
		r := rand.New(rand.NewPCG(9, 10))
		hedgedShare(t, h, usualAndSlow, r, 3000)
		for _, by := range []float64{10, 1, 0.1, 3} {
			hedgedShare(t, h, times(usualAndSlow, by), r, 2000)
			if share := hedgedShare(t, h, times(usualAndSlow, by), r, n); math.Abs(share-0.05) > within {
				t.Errorf("latency times %v: %.2f %% were hedged after two windows", by, 100*share)
			}
		}
	})
}
