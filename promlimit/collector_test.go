package promlimit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
	"github.com/holdfast-go/holdfast/promlimit"
)

func newHedger(t *testing.T, name string, limit int) *hedgedlimit.Hedger {
	t.Helper()
	fixed, err := gradient.NewFixed(limit)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Name: name, Algorithm: fixed})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hedgedlimit.New(hedgedlimit.Config{Limiter: l, Delay: hedgedlimit.Fixed(50 * time.Millisecond), Gates: hedgedlimit.NoGates})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// gather returns the value of every series, keyed by name and label values.
func gather(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var key strings.Builder
			key.WriteString(f.GetName())
			for _, l := range m.GetLabel() {
				key.WriteString(" " + l.GetValue())
			}
			got[key.String()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return got
}

// Field case B62: what is shown adds up, and agrees with what is enforced.
func TestMetricsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, "dep", 8)
		c, err := promlimit.NewCollector(promlimit.Config{Hedger: h})
		if err != nil {
			t.Fatal(err)
		}
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(c)
		for i := range 40 {
			_, _ = hedgedlimit.Do(t.Context(), h, func(ctx context.Context, a hedgedlimit.Attempt) (int, error) {
				switch {
				case i%4 == 0 && a.Number() == 1: // slow: a hedge wins
					<-ctx.Done()
					return 0, ctx.Err()
				case i%4 == 1:
					return 0, errors.New("fails")
				}
				return 0, nil
			})
			time.Sleep(time.Second)
		}
		synctest.Wait()
		m := gather(t, r)
		for key, want := range map[string]float64{
			"holdfast_limit dep":                          8,
			"holdfast_in_flight dep":                      0,
			"holdfast_overhang dep":                       0,
			"holdfast_leaked_total dep":                   0,
			"holdfast_oldest_permit_seconds dep":          0,
			"holdfast_acquired_total dep":                 m["holdfast_hedge_started_total primary dep"] + m["holdfast_hedge_started_total hedge dep"] + m["holdfast_hedge_started_total retry dep"],
			"holdfast_hedge_started_total primary dep":    40,
			"holdfast_hedge_started_total hedge dep":      10,
			"holdfast_hedge_wins_total dep":               10,
			"holdfast_hedged_requests_total dep":          10,
			"holdfast_hedge_canceled_total primary dep":   10,
			"holdfast_calls_total dep succeeded":          30,
			"holdfast_calls_total dep failed":             10,
			"holdfast_hedge_delay_seconds dep":            0.05,
			"holdfast_released_total dep canceled":        10,
			"holdfast_hedge_gate_share dep":               1,
			"holdfast_hedge_congestion dep":               1,
			"holdfast_hedge_cancel_lag_seconds_total dep": 0,
		} {
			if m[key] != want {
				t.Errorf("%s = %v, want %v", key, m[key], want)
			}
		}
		var ended float64
		for key, v := range m {
			if strings.HasPrefix(key, "holdfast_hedge_attempts_total") {
				ended += v
			}
		}
		if ended != m["holdfast_acquired_total dep"] {
			t.Errorf("%v attempts ended, %v permits were handed out", ended, m["holdfast_acquired_total dep"])
		}
		if t.Failed() {
			keys := make([]string, 0, len(m))
			for k := range m {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			t.Log(strings.Join(keys, "\n"))
		}
	})
}

func TestTwoLimitersInOneRegistry(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, name := range []string{"a", "b"} {
		c, err := promlimit.NewCollector(promlimit.Config{Limiter: newHedger(t, name, 1).Limiter()})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Register(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := gather(t, r)
	if m["holdfast_limit a"] != 1 || m["holdfast_limit b"] != 1 {
		t.Errorf("series: %v", m)
	}
	same, _ := promlimit.NewCollector(promlimit.Config{Limiter: newHedger(t, "a", 1).Limiter()})
	if err := r.Register(same); err == nil {
		t.Error("two limiters of one name were registered")
	}
}

func TestNamespaceStandsBeforeAllNames(t *testing.T) {
	c, err := promlimit.NewCollector(promlimit.Config{Namespace: "my_app", Hedger: newHedger(t, "x", 1)})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	for key := range gather(t, r) {
		if !strings.HasPrefix(key, "my_app_") {
			t.Errorf("series %s", key)
		}
	}
}

func TestBadConfigIsRefused(t *testing.T) {
	h := newHedger(t, "x", 1)
	for want, config := range map[string]promlimit.Config{
		"neither": {},
		"both":    {Hedger: h, Limiter: h.Limiter()},
		`"1st"`:   {Hedger: h, Namespace: "1st"},
		`"a-b"`:   {Hedger: h, Namespace: "a-b"},
	} {
		if c, err := promlimit.NewCollector(config); err == nil || c != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Work that is stuck shows by its age.
func TestOldestPermitShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limiter.New(limiter.Config{Name: "dep"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := promlimit.NewCollector(promlimit.Config{Limiter: l})
		if err != nil {
			t.Fatal(err)
		}
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(c)
		p, _ := l.TryAcquire(limiter.Primary)
		time.Sleep(time.Minute)
		if got := gather(t, r)["holdfast_oldest_permit_seconds dep"]; got != 60 {
			t.Errorf("the oldest permit is %v s old, want 60", got)
		}
		p.Release(permit.Success)
	})
}
