package sizing

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// What is chosen of rows: the cheapest of those that are about as good as the best, harmless, and
// worth it with every seed.
func TestPick(t *testing.T) {
	row := func(gain, extra float64, change func(*HedgeRow)) HedgeRow {
		r := HedgeRow{GainPercent: gain, WorstGainPercent: gain, Harmless: true, Gates: true}
		r.Present.ExtraPercent = extra
		if change != nil {
			change(&r)
		}
		return r
	}
	for _, tt := range []struct {
		name string
		rows []HedgeRow
		want int // −1 is none
	}{
		{"none", nil, -1},
		{"the best", []HedgeRow{row(20, 5, nil), row(40, 10, nil)}, 1},
		{"a cheaper one as good", []HedgeRow{row(36, 5, nil), row(40, 10, nil)}, 0},
		{"harm is left out", []HedgeRow{row(20, 5, nil), row(40, 1, func(r *HedgeRow) { r.Harmless = false })}, 0},
		{"slow together is left out", []HedgeRow{row(20, 5, nil), row(40, 1, func(r *HedgeRow) { r.Correlated = true })}, 0},
		{"dropped is left out", []HedgeRow{row(20, 5, nil), row(40, 1, func(r *HedgeRow) { r.Dropped = true })}, 0},
		{"a seed disagrees", []HedgeRow{row(20, 5, nil), row(40, 1, func(r *HedgeRow) { r.WorstGainPercent = 9.9 })}, 0},
		{"no room is left out", []HedgeRow{row(20, 5, nil), row(40, 1, func(r *HedgeRow) { r.NoRoom = true })}, 0},
		{"gRPC is apart", []HedgeRow{row(20, 5, nil), row(40, 1, func(r *HedgeRow) { r.GRPC, r.Gates = true, false })}, 0},
		{"no gates are apart", []HedgeRow{row(20, 5, nil), row(40, 1, func(r *HedgeRow) { r.Gates = false })}, 0},
		{"too little", []HedgeRow{row(9.9, 1, nil)}, -1},
		{"near the best is not enough", []HedgeRow{row(12, 5, nil), row(9, 1, nil)}, 0},
	} {
		got := pick(tt.rows, withGates)
		if tt.want < 0 && got != nil || tt.want >= 0 && got != &tt.rows[tt.want] {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// Go keeps its gates unless they cost more than 20 points of p99.
func TestGatesAreLeftOutOnlyWhereTheyCostMuch(t *testing.T) {
	for _, tt := range []struct {
		gated, free float64
		gates       bool
	}{{50, 69, true}, {50, 71, false}, {5, 11, false}} {
		h := &Hedging{Rows: []HedgeRow{
			{Gates: true, Harmless: true, GainPercent: tt.gated, WorstGainPercent: tt.gated},
			{Harmless: true, GainPercent: tt.free, WorstGainPercent: tt.free},
		}}
		if got := h.best(); got == nil || got.Gates != tt.gates {
			t.Errorf("%v and %v: %+v", tt.gated, tt.free, got)
		}
	}
}

// What does harm as it will be is dropped, and with it what hedges as soon and as much; what brings
// too little is dropped alone; what does neither stays.
func TestJudgeLowersTheRecommendation(t *testing.T) {
	effects := func(p99, failed float64) *Effects {
		e := Effect{EqualP99: p99, FailedPercent: failed}
		return &Effects{Present: e, Heavier: e}
	}
	for _, tt := range []struct {
		name    string
		pasted  *Effects
		dropped []bool
	}{
		{"good", effects(50, 0.1), []bool{false, false, false, false, false}},
		{"failures", effects(50, 0.21), []bool{false, true, true, false, false}},
		{"too little", effects(95, 0.1), []bool{false, true, false, false, false}},
	} {
		h := &Hedging{Rows: []HedgeRow{
			{DelayMS: 20, Ratio: 0.1},
			{DelayMS: 10, Ratio: 0.1},
			{DelayMS: 5, Ratio: 0.1},
			{DelayMS: 10, Ratio: 0.05},
			{DelayMS: 10, Ratio: 0.1, GRPC: true},
		}}
		h.Rows[1].AsPasted = tt.pasted
		h.judge(&h.Rows[1], effects(100, 0.1))
		for i := range h.Rows {
			if h.Rows[i].Dropped != tt.dropped[i] {
				t.Errorf("%s: row %d dropped: %t", tt.name, i, h.Rows[i].Dropped)
			}
		}
	}
}

func TestHarmless(t *testing.T) {
	none := Effect{EqualP99: 100, P99: 100, FailedPercent: 1}
	for _, tt := range []struct {
		p99, failed float64
		want        bool
	}{{100, 1, true}, {102, 1.1, true}, {102.1, 1, false}, {50, 1.11, false}} {
		// Refusals make P99 lower, and do not count.
		e := Effect{EqualP99: tt.p99, P99: 50, FailedPercent: tt.failed}
		for _, both := range []Effects{{Present: e, Heavier: none}, {Present: none, Heavier: e}} {
			if got := harmless(&both, &Effects{Present: none, Heavier: none}); got != tt.want {
				t.Errorf("p99 %v and %v %% failed: %t", tt.p99, tt.failed, got)
			}
		}
	}
}

// A few more failures with one seed than with another are no harm. As many with each are, and so are
// many.
func TestHarmIsBeyondChance(t *testing.T) {
	effects := func(failed ...float64) *Effects {
		e := Effect{}
		for _, f := range failed {
			e.seeds = append(e.seeds, seedEffect{p99: 100, failed: f})
		}
		e.sum()
		return &Effects{Present: e, Heavier: e}
	}
	none := effects(0.3, 0.3)
	for _, tt := range []struct {
		failed [2]float64
		want   bool
	}{{[2]float64{0.3, 0.6}, true}, {[2]float64{0.44, 0.46}, false}, {[2]float64{0.1, 1.1}, false}} {
		if got := harmless(effects(tt.failed[:]...), none); got != tt.want {
			t.Errorf("%v %% failed, 0.3 %% without: harmless %t", tt.failed, got)
		}
	}
}

// The gain is that of the means, and the worst is that of a seed against the same one.
func TestGainOfTheWorstSeed(t *testing.T) {
	none := Effect{seeds: []seedEffect{{p99: 100}, {p99: 200}}}
	e := Effect{seeds: []seedEffect{{p99: 90}, {p99: 20}}}
	none.sum()
	e.sum()
	mean, worst := gain(&e, &none)
	near(t, "mean gain", mean, 100*(1-110.0/300), 1e-9)
	near(t, "worst gain", worst, 10, 1e-9)
	if e.LowP99 != 20 || e.HighP99 != 90 {
		t.Errorf("p99 from %v to %v", e.LowP99, e.HighP99)
	}
}

// A larger budget that made no difference is no row of its own.
func TestLikeRowsAreLeftOut(t *testing.T) {
	row := func(ratio, p99, extra float64) HedgeRow {
		r := HedgeRow{Gates: true, DelayMS: 10, Ratio: ratio}
		r.Present.EqualP99, r.Present.ExtraPercent = p99, extra
		return r
	}
	if got := unlikeRows([]HedgeRow{row(0.2, 100, 1), row(0.1, 100, 1), row(0.05, 120, 0.5)}); len(got) != 2 || got[0].Ratio != 0.1 || got[1].Ratio != 0.05 {
		t.Errorf("%+v", got)
	}
}

// Delays within a gap are tried where there is one, and there is none in a tail that goes on.
func TestDelaysWithinAGap(t *testing.T) {
	s := small(twoModes(t, 3, 0.05, 5, 110, 15), 100)
	u, delays := s.gap()
	if u < 0.945 || u > 0.955 || len(delays) != 3 {
		t.Fatalf("at %v: %v", u, delays)
	}
	last := 6 * time.Millisecond
	for _, d := range delays {
		if d <= last || d >= 95*time.Millisecond {
			t.Errorf("%v", delays)
		}
		last = d
	}
	if _, delays := small(fromTable(t, heavyTable, 40), 100).gap(); delays != nil {
		t.Errorf("%v in a log-normal latency", delays)
	}
}

// twoModes is a service of which a share of the calls, by chance, takes so many milliseconds, give
// or take a tenth, and the others so many.
func twoModes(t *testing.T, seed uint64, share, quick, slow float64, workers int) *Input {
	t.Helper()
	source := rand.New(rand.NewPCG(seed, 0))
	samples := make([]Sample, 20000)
	for i := range samples {
		x := quick
		if source.Float64() < share {
			x = slow
		}
		samples[i] = Sample{Start: time.Duration(i) * time.Millisecond, Latency: seconds(x / 1000 * (0.9 + 0.2*source.Float64()))}
	}
	in, err := newInput("two modes", samples, Timed, 0)
	if err != nil {
		t.Fatal(err)
	}
	in.SetWorkers(workers)
	return in
}

// The reason why not is the one that is so.
func TestReasonsWhyNot(t *testing.T) {
	row := func(change func(*HedgeRow)) HedgeRow {
		r := HedgeRow{Gates: true, Quantile: 0.95, Ratio: 0.1, GainPercent: 50, WorstGainPercent: 50, Harmless: true}
		change(&r)
		return r
	}
	nothing := func(r *HedgeRow) { r.GainPercent, r.WorstGainPercent = 1, 1 }
	for _, tt := range []struct {
		name   string
		row    func(*HedgeRow)
		calls  int
		load   float64
		few    bool
		reason string
	}{
		{"nothing", nothing, 5000, 0.3, false, "no delay and budget cut"},
		{"few calls", nothing, 4000, 0.3, true, "too few calls to tell: 40 are beyond the 99th percentile in all simulations of a row, and 50 are needed; -calls 5000 tells"},
		{"a slow service", nothing, 10_000_000, 0.0002, true, "too few calls to tell: "},
		{"seeds", func(r *HedgeRow) { r.WorstGainPercent = 2 }, 5000, 0.3, false, "seeds disagree: with p95, budget 10 % p99 is 50 % lower on average, and 2 % with the worst seed"},
		{"harm", func(r *HedgeRow) { r.Harmless = false }, 5000, 0.3, false, "each delay and budget that cuts the 99th percentile by 10 % does harm"},
		{"harm when the limit moves", func(r *HedgeRow) { r.Dropped, r.AsPasted = true, &Effects{} }, 5000, 0.3, false, "behind the limit that moves, all of the 1"},
		{"no room", nothing, 5000, 0.8, false, "there is no capacity to spare: the calls alone take 80 %"},
	} {
		s := small(fromTable(t, heavyTable, 40), 0)
		s.Calls, s.Rate = tt.calls, tt.load*s.Input.Capacity
		h := &Hedging{Rows: []HedgeRow{row(tt.row)}}
		s.choose(h)
		if h.Recommended || h.Chosen != nil || h.TooFew != tt.few || len(h.Reasons) != 1 || !strings.HasPrefix(h.Reasons[0], tt.reason) {
			t.Errorf("%s: recommended %t, too few %t, %q", tt.name, h.Recommended, h.TooFew, h.Reasons)
		}
	}
}

// Go and gRPC are chosen each for itself.
func TestGoAndGRPCAreChosenApart(t *testing.T) {
	good := HedgeRow{GainPercent: 50, WorstGainPercent: 50, Harmless: true}
	gated, policy := good, good
	gated.Gates, policy.GRPC = true, true
	for _, tt := range []struct {
		rows     []HedgeRow
		inGo, gr bool
		reason   string
	}{
		{[]HedgeRow{gated, policy}, true, true, ""},
		{[]HedgeRow{gated}, true, false, "the service config has none"},
		{[]HedgeRow{policy}, false, true, "only the service config hedges"},
		{[]HedgeRow{good, policy}, true, true, "in Go the gates are left out"},
	} {
		s := small(fromTable(t, heavyTable, 40), 0)
		s.Rate = 0.3 * s.Input.Capacity
		h := &Hedging{Rows: tt.rows}
		s.choose(h)
		if !h.Recommended || (h.Chosen != nil) != tt.inGo || (h.GRPC != nil) != tt.gr || !strings.Contains(strings.Join(h.Reasons, "\n"), tt.reason) {
			t.Errorf("%+v: Go %v, gRPC %v, %q", tt.rows, h.Chosen, h.GRPC, h.Reasons)
		}
	}
}

// What is recommended comes with what to beware of, and with nothing where there is none of it.
func TestWhatToBewareOf(t *testing.T) {
	good := HedgeRow{GainPercent: 50, WorstGainPercent: 50, Harmless: true}
	gated, policy, dropped := good, good, good
	gated.Gates, policy.GRPC = true, true
	dropped.Gates, dropped.Dropped, dropped.AsPasted = true, true, &Effects{}
	for _, tt := range []struct {
		name    string
		change  func(*Sizing, *Hedging)
		reasons []string
	}{
		{"nothing", func(*Sizing, *Hedging) {}, nil},
		{"no capacity", func(s *Sizing, _ *Hedging) { s.Input.Capacity = 0 }, []string{"the capacity is not known"}},
		{"a high load", func(s *Sizing, _ *Hedging) { s.Rate *= 2 }, []string{"at 1.5 × the load the calls alone take 90 % of the capacity"}},
		{"no order", func(s *Sizing, _ *Hedging) { s.Input.Correlation.Known = false }, []string{"it is not known whether calls are slow together"}},
		{"few calls", func(s *Sizing, _ *Hedging) { s.Calls = 4000 }, []string{"it rests on few calls: 40 are beyond"}},
		{"few calls for Go", func(s *Sizing, h *Hedging) { s.Calls, h.Rows = 4000, h.Rows[1:] }, []string{"too few calls to tell for Go", "it rests on few calls: "}},
		{"dropped", func(_ *Sizing, h *Hedging) { h.Rows = append(h.Rows, dropped) }, []string{"1 that did better behind a fixed limit did harm"}},
	} {
		s := small(fromTable(t, heavyTable, 40), 0)
		s.Rate, s.Input.Correlation.Known = 0.3*s.Input.Capacity, true
		h := &Hedging{Rows: []HedgeRow{gated, policy}}
		tt.change(s, h)
		s.choose(h)
		if !h.Recommended || !slices.EqualFunc(h.Reasons, tt.reasons, strings.HasPrefix) {
			t.Errorf("%s: recommended %t, %q", tt.name, h.Recommended, h.Reasons)
		}
	}
}

// Who refuses calls has no lower p99 by it: what it does not answer counts as slower than any.
func TestRefusalsDoNotLowerThePercentile(t *testing.T) {
	s := small(fromTable(t, heavyTable, 40), 0)
	s.Rate = 0.5 * s.Input.Capacity
	policies := []hedgearena.Policy{unhedged()}
	none, err := s.compare(t.Context(), "", fixed(100, false, s), policies, nil)
	if err != nil {
		t.Fatal(err)
	}
	tight, err := s.compare(t.Context(), "", fixed(15, false, s), policies, &none[0])
	if err != nil {
		t.Fatal(err)
	}
	e, than := &tight[0].Present, &none[0].Present
	if than.FailedPercent != 0 || than.EqualP99 != than.P99 || e.FailedPercent < 2 {
		t.Fatalf("none %+v, refusing %+v", than, e)
	}
	if e.P99 > 1.05*than.P99 || e.EqualP99 != 1000*s.Timeout.Seconds() {
		t.Errorf("none %+v, refusing %+v", than, e)
	}
}

// Calls that take longer than the time-out by themselves are noted.
func TestNotesOfTheTimeout(t *testing.T) {
	s := small(fromTable(t, heavyTable, 40), 100)
	if notes := s.Notes(); len(notes) != 0 {
		t.Errorf("with a long time-out: %q", notes)
	}
	s.Timeout = 100 * time.Millisecond
	if notes := s.Notes(); len(notes) != 1 || !strings.HasPrefix(notes[0], "1 % of the calls take longer than -timeout 100ms") {
		t.Errorf("%q", notes)
	}
}
