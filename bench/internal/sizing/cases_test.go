//go:build !race

// The simulations of these tests take minutes under the race detector, which sees the same
// code in the others.

package sizing

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// Of ten dependencies whose best limit is known, nine limits at least are within 15 % of it; hedging
// is recommended where slow calls come by chance, and refused where they come together. All ten
// take a minute; without HOLDFAST_LONG the first three are looked at.
func TestCases(t *testing.T) {
	most := 3
	if os.Getenv("HOLDFAST_LONG") != "" {
		most = 10
	}
	within, limits := 0, 0
	for _, c := range Cases() {
		if c.Hedging == nil && limits == most {
			continue
		}
		s := Sizing{Calls: 6000, Seeds: []uint64{1, 2}, Parallel: 2}
		if c.Hedging != nil {
			s.Seeds = s.Seeds[:1]
		}
		r, err := RunCase(t.Context(), &c, s)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d workers, %d found, best limit %d, recommended %d (%+.1f %%)", r.Name, r.Workers, r.Found, r.Best, r.Recommended, r.OffPercent)
		if c.Hedging != nil {
			if !r.HedgingMet() {
				t.Errorf("%s: hedging recommended: %t, %q", r.Name, *r.Hedging, r.Reasons)
			}
			continue
		}
		limits++
		if r.LimitMet {
			within++
		}
	}
	if limits != most || within < most-1 {
		t.Errorf("%d of %d limits are within 15 %%", within, limits)
	}
}

// Near the edge as well: hedging is recommended where a tail comes by chance, be it so rare or in so
// short spells that gates or quantiles are in the way, and refused where a hedge meets the
// same, pays nothing, or finds no room; with each of three seeds of the latencies and of the
// simulations. All of it takes minutes; without HOLDFAST_LONG it is one seed of the first
// two.
func TestAdviceNearTheEdge(t *testing.T) {
	exponentially := func(source *rand.Rand, _ time.Duration) float64 { return 30 * source.ExpFloat64() }
	modes := func(share, quick, slow float64) atATime {
		return func(source *rand.Rand, _ time.Duration) float64 {
			x := quick
			if source.Float64() < share {
				x = slow
			}
			return x * (0.9 + 0.2*source.Float64())
		}
	}
	// Ten times as slow in a spell, which 3 % of the time is.
	spells := func(length time.Duration) atATime {
		return func(source *rand.Rand, at time.Duration) float64 {
			x := 9 + 4*source.Float64()
			if at%(length*100/3) < length {
				x *= 10
			}
			return x
		}
	}
	lightly := func(source *rand.Rand, _ time.Duration) float64 { return 20 + 10*source.Float64() }
	// Load is a share of the capacity, and with no workers the capacity is not known.
	for i, tt := range []struct {
		name    string
		latency atATime
		workers int
		load    float64
		want    bool
	}{
		{"1.5 % are 31 times as slow", modes(0.015, 10, 310), 15, 0.3, true},
		{"spells of 250 ms", spells(250 * time.Millisecond), 0, 0, false},
		{"5 % are 22 times as slow", modes(0.05, 5, 110), 15, 0.4, true},
		{"light tail", lightly, 15, 0.5, false},
		{"exponential", exponentially, 70, 0.3, true},
		{"spells of 5 ms", spells(5 * time.Millisecond), 0, 0, true},
		// The delay that helps is longer than the spell.
		{"spells of 50 ms", spells(50 * time.Millisecond), 0, 0, true},
		{"spells of 2 s", spells(2 * time.Second), 0, 0, false},
		{"busy", modes(0.05, 5, 110), 15, 0.9, false},
		{"busy, 1.5 % are 31 times as slow", modes(0.015, 10, 310), 70, 0.9, false},
	} {
		seeds := uint64(3)
		if os.Getenv("HOLDFAST_LONG") == "" {
			if seeds = 1; i >= 2 {
				break
			}
		}
		for seed := uint64(1); seed <= seeds; seed++ {
			in := recorded(t, seed, tt.latency)
			s := small(in, 1000)
			s.Calls, s.Seeds = 8000, []uint64{seed * 10, seed*10 + 1}
			if tt.workers > 0 {
				in.SetWorkers(tt.workers)
				s.Rate = tt.load * in.Capacity
			}
			h := mustRecommend(t, s).Hedging
			if h.Recommended != tt.want || (h.Chosen != nil) != tt.want {
				t.Errorf("%s, seed %d: recommended %t, in Go %t: %q", tt.name, seed, h.Recommended, h.Chosen != nil, h.Reasons)
			}
		}
	}
}

// atATime draws a latency in milliseconds, of a call at a time.
type atATime func(source *rand.Rand, at time.Duration) float64

// recorded are latencies of calls at a thousand calls a second for a minute.
func recorded(t *testing.T, seed uint64, latency atATime) *Input {
	t.Helper()
	source := rand.New(rand.NewPCG(seed, 5))
	samples := make([]Sample, 60000)
	at := 0.0
	for i := range samples {
		at += source.ExpFloat64() / 1000
		samples[i].Start = seconds(at)
		samples[i].Latency = max(seconds(latency(source, samples[i].Start)/1000), time.Microsecond)
	}
	in, err := newInput("drawn", samples, Timed, 0)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Where it does not help it is refused, with the reason.
func TestHedgingIsRefusedWhereItDoesNotHelp(t *testing.T) {
	together, err := newInput("trace", drawn(20000, 200, lightTail, inSpells), Timed, 0)
	if err != nil {
		t.Fatal(err)
	}
	light, heavy := fromTable(t, "p50=10ms p99=13ms", 40), fromTable(t, heavyTable, 40)
	for _, tt := range []struct {
		name   string
		s      *Sizing
		posts  bool
		reason string
	}{
		{"slow together", small(together, 200), false, "calls are slow together: of those that begin when a hedge would, "},
		{"light tail", small(light, 0.3*light.Capacity), false, "no delay and budget cut the 99th percentile by 10 % without harm at either load; without a queue it is 1.3 × the median"},
		{"no capacity to spare", small(heavy, 0.95*heavy.Capacity), false, "there is no capacity to spare: the calls alone take 95 % of it"},
		{"not idempotent", small(heavy, 0.3*heavy.Capacity), true, "a call may not be carried out twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Idempotent = !tt.posts
			r := mustRecommend(t, tt.s)
			h := r.Hedging
			if h.Recommended || h.Chosen != nil || h.GRPC != nil || (len(h.Rows) == 0) != tt.posts || len(h.Reasons) == 0 || !strings.HasPrefix(h.Reasons[0], tt.reason) {
				t.Errorf("recommended %t, %d rows, reasons %q", h.Recommended, len(h.Rows), h.Reasons)
			}
			if r.AsRecommended != r.Unhedged || r.ServiceConfig != r.Unhedged {
				t.Errorf("as recommended %+v, without hedging %+v", r.AsRecommended, r.Unhedged)
			}
		})
	}
}

// The simulation of calls that are slow together agrees with the statistics: where a hedge would
// be slow too it brings less than is worth it, or the statistics rule it out.
func TestHedgesOfSlowSpellsBringNothing(t *testing.T) {
	together, err := newInput("trace", drawn(20000, 200, lightTail, inSpells), Timed, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := small(together, 200)
	none, err := s.compare(t.Context(), "", fixed(100, false, s), []hedgearena.Policy{unhedged()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.compareHedging(t.Context(), &Limit{Limit: 100, Found: true}, &Waiting{Refused: none[0]})
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.Rows {
		if r := &h.Rows[i]; r.GainPercent >= 100*worthIt && !r.Correlated {
			t.Errorf("%s: p99 is %.0f %% lower", r.Name(), r.GainPercent)
		}
	}
}

// Without the capacity the limit is what Little's law says of the higher load, nothing queues, and
// the reader is told.
func TestUnknownCapacity(t *testing.T) {
	s := small(fromTable(t, heavyTable, 0), 3000)
	r := mustRecommend(t, s)
	mean := 1.5 * 3000 * s.Input.Latency.Mean()
	if l := r.Limit; l.Found || math.Abs(float64(l.Limit)-mean-3*math.Sqrt(mean)) > 1 {
		t.Errorf("limit %+v, with a mean of %.0f in flight", l, mean)
	}
	if r.Waiting.Wait || r.Waiting.Refused.Heavier.FailedPercent > 0.1 {
		t.Errorf("waiting %+v", r.Waiting)
	}
	if h := r.Hedging; !h.Recommended || !strings.Contains(strings.Join(h.Reasons, "\n"), "the capacity is not known") || !strings.Contains(strings.Join(h.Reasons, "\n"), "it is not known whether calls are slow together") {
		t.Errorf("reasons %q", h.Reasons)
	}
}
