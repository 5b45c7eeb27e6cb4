package gradient_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/proptest"
)

var origin = time.Unix(1_700_000_000, 0)

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// L14: the limit stays within its bounds whatever it is shown, and the algorithms
// are pure.
func TestAlgorithmsKeepTheirPromises(t *testing.T) {
	for name, bounds := range map[string][2]int{"wide": {1, 1000}, "narrow": {7, 9}, "one": {1, 1}} {
		lowest, highest := bounds[0], bounds[1]
		t.Run("gradient/"+name, func(t *testing.T) {
			proptest.TestAlgorithm(t, lowest, highest, func() gradient.Algorithm {
				return must[*gradient.Gradient](t)(gradient.New(gradient.Config{Min: lowest, Max: highest}))
			})
		})
		t.Run("ceiling/"+name, func(t *testing.T) {
			proptest.TestAlgorithm(t, lowest, highest, func() gradient.Algorithm {
				return must[*gradient.Gradient](t)(gradient.New(gradient.Config{Min: lowest, Max: highest, MaxLatency: time.Second}))
			})
		})
		t.Run("aimd/"+name, func(t *testing.T) {
			proptest.TestAlgorithm(t, lowest, highest, func() gradient.Algorithm {
				return must[*gradient.AIMD](t)(gradient.NewAIMD(gradient.AIMDConfig{Min: lowest, Max: highest, Target: time.Second}))
			})
		})
	}
	t.Run("fixed", func(t *testing.T) {
		proptest.TestAlgorithm(t, 5, 5, func() gradient.Algorithm {
			return must[*gradient.Fixed](t)(gradient.NewFixed(5))
		})
	})
}

func TestBadConfigNamesFieldAndValue(t *testing.T) {
	g := func(c gradient.Config) error { _, err := gradient.New(c); return err }
	a := func(c gradient.AIMDConfig) error { _, err := gradient.NewAIMD(c); return err }
	f := func(n int) error { _, err := gradient.NewFixed(n); return err }
	for _, c := range []struct {
		err  error
		want []string
	}{
		{g(gradient.Config{Min: -1}), []string{"Min", "-1"}},
		{g(gradient.Config{Max: -1}), []string{"Max", "-1"}},
		{g(gradient.Config{Max: math.MaxInt}), []string{"Max"}},
		{g(gradient.Config{Min: 30, Max: 20}), []string{"Min", "30", "Max", "20"}},
		{g(gradient.Config{Initial: 50, Max: 20}), []string{"Initial", "50", "20"}},
		{g(gradient.Config{Initial: -3}), []string{"Initial", "-3"}},
		{g(gradient.Config{MaxLatency: -time.Second}), []string{"MaxLatency", "-1s"}},
		{a(gradient.AIMDConfig{Min: 30, Max: 20}), []string{"Min", "30"}},
		{a(gradient.AIMDConfig{Backoff: math.NaN()}), []string{"Backoff", "NaN"}},
		{a(gradient.AIMDConfig{Backoff: 1}), []string{"Backoff", "1"}},
		{a(gradient.AIMDConfig{Backoff: -0.5}), []string{"Backoff", "-0.5"}},
		{a(gradient.AIMDConfig{Target: -time.Second}), []string{"Target", "-1s"}},
		{f(0), []string{"Fixed", "0"}},
		{f(-7), []string{"Fixed", "-7"}},
	} {
		if c.err == nil {
			t.Errorf("no error; want one that names %v", c.want)
			continue
		}
		for _, word := range c.want {
			if !strings.Contains(c.err.Error(), word) {
				t.Errorf("%q does not name %s", c.err, word)
			}
		}
	}
	for _, c := range []gradient.Config{{}, {Min: 50}, {Max: 5}, {Min: 2000}, {Initial: 1, Min: 1, Max: 1}} {
		if err := g(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// steady makes windows of a service that takes 10 ms, with limit calls in flight.
func steady(limit int, saturated bool, refused int) *gradient.Window {
	h := new(gradient.Histogram)
	for i := range 100 {
		h.Add(9*time.Millisecond + time.Duration(i)*20*time.Microsecond)
	}
	return &gradient.Window{
		Limit: limit, Elapsed: 100 * time.Millisecond, InFlight: 10, MaxInFlight: 10,
		Admitted: 100, Refused: refused, Completed: 100, Saturated: saturated, Latency: h,
	}
}

// Field case B30: a limit that is not needed does not grow.
func TestNoGrowthWithoutNeed(t *testing.T) {
	for name, a := range map[string]gradient.Algorithm{
		"gradient": must[*gradient.Gradient](t)(gradient.New(gradient.Config{})),
		"aimd":     must[*gradient.AIMD](t)(gradient.NewAIMD(gradient.AIMDConfig{})),
	} {
		now := origin
		a.Start(now)
		for range 10_000 {
			now = now.Add(100 * time.Millisecond)
			if d := a.Next(now, steady(20, false, 0)); d.Limit > 20 {
				t.Fatalf("%s: limit %d, and at most 10 were in flight", name, d.Limit)
			}
		}
	}
}

// Field case B22: at its highest a limit stays there.
func TestSaturatedAtTheHighestStaysThere(t *testing.T) {
	a := must[*gradient.AIMD](t)(gradient.NewAIMD(gradient.AIMDConfig{Max: 50}))
	now := origin
	a.Start(now)
	for i := range 1000 {
		now = now.Add(time.Second)
		if d := a.Next(now, steady(50, true, 10)); i > 40 && d.Limit != 50 {
			t.Fatalf("window %d: limit %d", i, d.Limit)
		}
	}
}

func TestAIMD(t *testing.T) {
	a := must[*gradient.AIMD](t)(gradient.NewAIMD(gradient.AIMDConfig{Initial: 10, Backoff: 0.5, Target: 20 * time.Millisecond}))
	drops := steady(10, true, 0)
	drops.Drops = 10
	slow := steady(10, true, 0)
	for range 15 {
		slow.Latency.Add(25 * time.Millisecond)
	}
	stuck := steady(10, true, 0)
	for range 20 {
		stuck.Latency.AddCensored(time.Second)
	}
	for i, c := range []struct {
		w      *gradient.Window
		limit  int
		reason gradient.Reason
	}{
		{steady(10, true, 5), 11, gradient.ReasonGrow},
		{steady(11, false, 0), 11, gradient.ReasonHold},
		{drops, 5, gradient.ReasonDrops},
		{steady(5, true, 5), 6, gradient.ReasonGrow},
		{slow, 3, gradient.ReasonLatency},
		{stuck, 1, gradient.ReasonLatency},
		{drops, 1, gradient.ReasonDrops},
		{steady(1, true, 5), 2, gradient.ReasonGrow},
	} {
		if d := a.Next(origin.Add(time.Duration(i)*time.Second), c.w); d.Limit != c.limit || d.Reason != c.reason {
			t.Fatalf("window %d: %d, %s; want %d, %s", i, d.Limit, d.Reason, c.limit, c.reason)
		}
	}
}

// A window that cannot teach changes nothing: nothing completed, no time passed, no
// latency, too much cut short before it could tell of a queue.
func TestEmptyWindowsHold(t *testing.T) {
	cut := new(gradient.Histogram)
	for range 100 {
		cut.AddCensored(time.Millisecond)
	}
	for name, w := range map[string]*gradient.Window{
		"empty":       {Latency: new(gradient.Histogram)},
		"stand-still": {Elapsed: time.Second, InFlight: 20, MaxInFlight: 20, Refused: 1000, Saturated: true, Latency: new(gradient.Histogram)},
		"no time":     {InFlight: 20, Completed: 100, Saturated: true, Latency: steady(20, true, 0).Latency},
		"canceled":    {Elapsed: time.Second, InFlight: 20, Completed: 100, Saturated: true, Latency: cut},
	} {
		g := newGradient(t)
		g.Start(origin)
		g.Next(origin, steady(20, false, 0))
		if d := g.Next(origin.Add(time.Second), w); d.Limit != 20 || d.Reason != gradient.ReasonHold {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A steady share of failures that does not depend on the load must not close the
// way for the rest.
func TestDropsNeverCutBelowWhatGoodTrafficNeeds(t *testing.T) {
	g := newGradient(t)
	g.Start(origin)
	now := origin
	for range 2 { // the baseline: 1000/s at 10 ms, 10 in flight
		g.Next(now, steady(20, false, 0))
	}
	for i := range 200 {
		now = now.Add(100 * time.Millisecond)
		w := steady(20, true, 10)
		for range 5 {
			w.Latency.AddCensored(time.Second)
		}
		w.Drops = 5
		if d := g.Next(now, w); d.Limit < 10 {
			t.Fatalf("window %d: limit %d, and the good traffic needs 10: %+v", i, d.Limit, d)
		}
	}
}

func TestDue(t *testing.T) {
	d := gradient.Decision{MinLength: 100 * time.Millisecond, MinSamples: 30}
	probe := d
	probe.MinSamples, probe.Probe = 60, true
	for _, c := range []struct {
		d              gradient.Decision
		elapsed        time.Duration
		samples, drops int
		want           bool
	}{
		{d, 99 * time.Millisecond, 1000, 0, false},
		{d, 100 * time.Millisecond, 29, 0, false},
		{d, 100 * time.Millisecond, 30, 0, true},
		{d, 1001 * time.Millisecond, 9, 0, false},
		{d, 1001 * time.Millisecond, 10, 0, true},
		{d, 3001 * time.Millisecond, 2, 0, false},
		{d, 3001 * time.Millisecond, 3, 0, true},
		{d, 99 * time.Millisecond, 0, 100, false}, // refusals come back first
		{d, 100 * time.Millisecond, 0, 5, true},   // a burst of drops needs no samples
		{d, 100 * time.Millisecond, 25, 5, false}, // unless they are few among many
		{d, 100 * time.Millisecond, 0, 4, false},
		{probe, 1001 * time.Millisecond, 29, 0, false},
		{probe, 1001 * time.Millisecond, 30, 0, true},
		{probe, 2001 * time.Millisecond, 10, 0, true},
	} {
		if got := c.d.Due(c.elapsed, c.samples, c.drops); got != c.want {
			t.Errorf("%+v.Due(%v, %d, %d) = %v", c.d, c.elapsed, c.samples, c.drops, got)
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	g := newGradient(t)
	g.Start(origin)
	now := origin
	w := steady(20, true, 20)
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(100 * time.Millisecond)
		g.Next(now, w)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	g := newGradient(b)
	g.Start(origin)
	now := origin
	w := steady(20, true, 20)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(100 * time.Millisecond)
		g.Next(now, w)
	}
}
