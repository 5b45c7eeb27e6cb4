package hedgedlimit_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// leaf takes 5 ms or so; one in forty is a straggler and takes a second or two.
func leaf(r *rand.Rand) time.Duration {
	if r.Float64() < 0.026 {
		return time.Duration((1 + r.Float64()) * float64(time.Second))
	}
	return time.Duration(5 * math.Exp(0.4*r.NormFloat64()) * float64(ms))
}

// The shape of "The Tail at Scale": a request that asks a hundred leaves waits for the
// slowest. Nine of ten such requests meet a straggler. With hedges at a percentile at
// which most of those that are left are stragglers, and the gates and the budget on, the
// 99.9th percentile falls to a tenth or less, at 5 % more requests or fewer.
//
// The percentile must lie clear of the share of stragglers on both sides: with fewer
// left over, the curve does not reach it in some windows, and no hedge is sent then;
// with many more, most hedges do not win, and the gate lets few through.
func TestHedgesCutTheTailOfAFanOut(t *testing.T) {
	const leaves, attempts = 100, 4
	requests := 1100 // the 99.9th percentile is not the slowest
	if long() {
		requests = 5000
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{
			Limiter: newLimiter(t, 1000, limiter.Config{}), Gates: new(hedgedlimit.Gates), MaxAttempts: attempts,
			Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: 0.955}), Budget: newBudget(t, hedgedlimit.RatioConfig{}),
		})
		r := rand.New(rand.NewPCG(11, 12))
		request := func() (hedged, without time.Duration) {
			start := time.Now()
			var wg sync.WaitGroup
			for range leaves {
				var takes [attempts]time.Duration
				for i := range takes {
					takes[i] = leaf(r)
				}
				without = max(without, takes[0])
				wg.Go(func() {
					_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
						select {
						case <-time.After(takes[a.Number()-1]):
							return 0, nil
						case <-ctx.Done():
							return 0, ctx.Err()
						}
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			hedged = time.Since(start)
			time.Sleep(time.Duration(r.ExpFloat64() * float64(20*ms)))
			return hedged, without
		}
		for range 200 { // to learn
			request()
		}
		before := h.Stats()
		var with, without []time.Duration
		for range requests {
			a, b := request()
			with, without = append(with, a), append(without, b)
		}
		after := h.Stats()
		p999 := func(d []time.Duration) time.Duration {
			slices.Sort(d)
			return d[int(0.999*float64(len(d)))]
		}
		extra := float64(after.Started[limiter.Hedge]-before.Started[limiter.Hedge]) / float64(requests*leaves)
		if a, b := p999(with), p999(without); 10*a > b || extra > 0.05 {
			t.Errorf("p99.9 is %v with hedges and %v without, at %.1f %% more requests; %+v", a, b, 100*extra, after)
		} else {
			t.Logf("p99.9 is %v with hedges and %v without, at %.1f %% more requests; gates %+v", a, b, 100*extra, after.Gates)
		}
	})
}
