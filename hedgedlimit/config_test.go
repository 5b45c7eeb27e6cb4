package hedgedlimit_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// Field case B63: nonsense is refused at construction, and the error names the field
// and the value.
func TestBadConfigNamesFieldAndValue(t *testing.T) {
	quantile := func(c hedgedlimit.QuantileConfig) hedgedlimit.Config {
		return hedgedlimit.Config{Delay: hedgedlimit.Quantile(c)}
	}
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		config       hedgedlimit.Config
		field, value string
	}{
		{hedgedlimit.Config{MaxAttempts: -1}, "MaxAttempts", "-1"},
		{hedgedlimit.Config{MaxAttempts: 6}, "MaxAttempts", "6"},
		{hedgedlimit.Config{MaxAttempts: math.MaxInt}, "MaxAttempts", "9"},
		{hedgedlimit.Config{Delay: hedgedlimit.Fixed(-1)}, "Fixed", "-1ns"},
		{hedgedlimit.Config{Delay: hedgedlimit.Fixed(math.MinInt64)}, "Fixed", "-2562047h"},
		{hedgedlimit.Config{Delay: hedgedlimit.DelayFunc(nil)}, "DelayFunc", "nil"},
		{quantile(hedgedlimit.QuantileConfig{Quantile: nan}), "Quantile", "NaN"},
		{quantile(hedgedlimit.QuantileConfig{Quantile: inf}), "Quantile", "+Inf"},
		{quantile(hedgedlimit.QuantileConfig{Quantile: -inf}), "Quantile", "-Inf"},
		{quantile(hedgedlimit.QuantileConfig{Quantile: -0.1}), "Quantile", "-0.1"},
		{quantile(hedgedlimit.QuantileConfig{Quantile: 1}), "Quantile", "1"},
		{quantile(hedgedlimit.QuantileConfig{Quantile: 95}), "Quantile", "95"},
		{quantile(hedgedlimit.QuantileConfig{Min: -1}), "Min", "-1ns"},
		{quantile(hedgedlimit.QuantileConfig{Max: -1}), "Max", "-1ns"},
		{quantile(hedgedlimit.QuantileConfig{Min: 2 * ms, Max: ms}), "Min", "2ms"},
		{quantile(hedgedlimit.QuantileConfig{Min: 2 * ms, Max: ms}), "Max", "1ms"},
		{quantile(hedgedlimit.QuantileConfig{MinSamples: -1}), "MinSamples", "-1"},
		{hedgedlimit.Config{Losers: hedgedlimit.Drain(0)}, "Drain", "0s"},
		{hedgedlimit.Config{Losers: hedgedlimit.Drain(-time.Second)}, "Drain", "-1s"},
		{hedgedlimit.Config{Losers: hedgedlimit.Linger(0)}, "Linger", "0s"},
		{hedgedlimit.Config{Losers: hedgedlimit.ChooseLosers(nil)}, "ChooseLosers", "nil"},
		{hedgedlimit.Config{Holdback: -0.1}, "Holdback", "-0.1"},
		{hedgedlimit.Config{Holdback: 1.1}, "Holdback", "1.1"},
		{hedgedlimit.Config{Holdback: nan}, "Holdback", "NaN"},
		{hedgedlimit.Config{Delay: hedgedlimit.PerKey(hedgedlimit.QuantileConfig{}, 0)}, "PerKey", "0"},
		{hedgedlimit.Config{Delay: hedgedlimit.PerKey(hedgedlimit.QuantileConfig{Quantile: 2}, 1)}, "Quantile", "2"},
		{hedgedlimit.Config{Delay: hedgedlimit.Fixed(0), Retry: &hedgedlimit.Backoff{}}, "Retry", "Delay"},
		{hedgedlimit.Config{Retry: &hedgedlimit.Backoff{Initial: -1}}, "Initial", "-1ns"},
		{hedgedlimit.Config{Retry: &hedgedlimit.Backoff{Max: -1}}, "Max", "-1ns"},
		{hedgedlimit.Config{Retry: &hedgedlimit.Backoff{Initial: time.Second, Max: ms}}, "Initial", "1s"},
		{hedgedlimit.Config{Retry: &hedgedlimit.Backoff{Multiplier: nan}}, "Multiplier", "NaN"},
		{hedgedlimit.Config{Retry: &hedgedlimit.Backoff{Multiplier: inf}}, "Multiplier", "+Inf"},
		{hedgedlimit.Config{Retry: &hedgedlimit.Backoff{Multiplier: -2}}, "Multiplier", "-2"},
		{hedgedlimit.Config{Budget: hedgedlimit.AllOf(hedgedlimit.Unlimited, nil)}, "AllOf", "2"},
		{hedgedlimit.Config{Budget: hedgedlimit.AllOf((*hedgedlimit.Throttle)(nil))}, "AllOf", "1"},
	} {
		h, err := hedgedlimit.New(c.config)
		if h != nil || err == nil || !strings.HasPrefix(err.Error(), "hedgedlimit: ") ||
			!strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), c.value) {
			t.Errorf("%s %s: %v, %v", c.field, c.value, h, err)
		}
	}
	for _, c := range []struct {
		config       hedgedlimit.RatioConfig
		field, value string
	}{
		{hedgedlimit.RatioConfig{Ratio: -0.1}, "Ratio", "-0.1"},
		{hedgedlimit.RatioConfig{Ratio: 1.5}, "Ratio", "1.5"},
		{hedgedlimit.RatioConfig{Ratio: nan}, "Ratio", "NaN"},
		{hedgedlimit.RatioConfig{Ratio: inf}, "Ratio", "+Inf"},
		{hedgedlimit.RatioConfig{PerSecond: nan}, "PerSecond", "NaN"},
		{hedgedlimit.RatioConfig{PerSecond: inf}, "PerSecond", "+Inf"},
		{hedgedlimit.RatioConfig{PerSecond: 1001}, "PerSecond", "1001"},
		{hedgedlimit.RatioConfig{Burst: -1}, "Burst", "-1"},
		{hedgedlimit.RatioConfig{Burst: math.MaxInt}, "Burst", "9"},
	} {
		b, err := hedgedlimit.NewRatioBudget(c.config)
		if b != nil || err == nil || !strings.HasPrefix(err.Error(), "hedgedlimit: ") ||
			!strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), c.value) {
			t.Errorf("%s %s: %v, %v", c.field, c.value, b, err)
		}
	}
}

func TestGoodConfigIsNotRefused(t *testing.T) {
	for _, config := range []hedgedlimit.Config{
		{MaxAttempts: 1}, {MaxAttempts: 5},
		{Delay: hedgedlimit.Fixed(0)}, {Delay: hedgedlimit.Fixed(math.MaxInt64)},
		{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: ms})},
		{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Max: ms})},
		{Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: ms, Max: ms, MinSamples: 1, Quantile: 0.001})},
		{Losers: hedgedlimit.Cancel()}, {Losers: hedgedlimit.Drain(1)}, {Losers: hedgedlimit.Linger(1)},
		{Delay: hedgedlimit.PerKey(hedgedlimit.QuantileConfig{}, 1)}, {Gates: hedgedlimit.NoGates}, {Holdback: 1},
		{Retry: &hedgedlimit.Backoff{}}, {Retry: &hedgedlimit.Backoff{Initial: time.Hour}},
		{Budget: hedgedlimit.AllOf(hedgedlimit.Unlimited, hedgedlimit.Unlimited)}, {Budget: hedgedlimit.AllOf()},
		{Budget: hedgedlimit.Unlimited},
	} {
		if _, err := hedgedlimit.New(config); err != nil {
			t.Errorf("%+v: %v", config, err)
		}
	}
	for _, config := range []hedgedlimit.RatioConfig{{Ratio: 1}, {Ratio: 1e-9}, {PerSecond: -1}, {PerSecond: math.Inf(-1)}, {PerSecond: 1000}, {Burst: 1 << 20}} {
		b, err := hedgedlimit.NewRatioBudget(config)
		if err != nil {
			t.Errorf("%+v: %v", config, err)
			continue
		}
		now := time.Now()
		for range 100 {
			b.Deposit(now)
			now = now.Add(time.Hour)
		}
		if n := b.Balance(now); math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
			t.Errorf("%+v: balance %v", config, n)
		}
	}
}

func TestZeroConfigHasTheDocumentedDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := hedgedlimit.New(hedgedlimit.Config{Rand: func() float64 { return 0.24 }}) // the win gate begins with 1/4
		if err != nil {
			t.Fatal(err)
		}
		s := h.Stats()
		if h.MaxAttempts() != 2 || s.BudgetBalance != 3 || s.DelayKnown || h.Limiter().Limit() != 20 {
			t.Errorf("%d attempts, limit %d, %+v", h.MaxAttempts(), h.Limiter().Limit(), s)
		}
		answer := func(takes time.Duration) {
			_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
				if a.Number() > 1 {
					return 0, nil
				}
				select {
				case <-time.After(takes):
					return 0, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
			if err != nil {
				t.Error(err)
			}
		}
		answer(time.Hour)
		if h.Stats().Hedged != 0 {
			t.Error("a hedge without a known latency")
		}
		for range 98 {
			answer(10 * ms)
		}
		if h.Stats().DelayKnown {
			t.Error("99 samples are too few")
		}
		answer(10 * ms)
		if s = h.Stats(); !s.DelayKnown || s.Delay < 9800*time.Microsecond || s.Delay > 10300*time.Microsecond {
			t.Errorf("after 100 samples the delay is %v, %v", s.Delay, s.DelayKnown)
		}
		start := time.Now()
		answer(time.Hour)
		if d := time.Since(start); d != s.Delay || h.Stats().Won[limiter.Hedge] != 1 {
			t.Errorf("a slow call took %v with a hedge after %v", d, s.Delay)
		}
		synctest.Wait()
		probe(t, h)
	})
}
