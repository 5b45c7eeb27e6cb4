package sizing

import (
	"math"
	"strings"
	"testing"
	"time"
)

// What is chosen of rows: the cheapest of those that are about as good as the best and harmless.
func TestPick(t *testing.T) {
	row := func(gain, extra float64, harmless, grpc bool) HedgeRow {
		r := HedgeRow{GainPercent: gain, Harmless: harmless, GRPC: grpc}
		r.Present.ExtraPercent = extra
		return r
	}
	for _, tt := range []struct {
		name string
		rows []HedgeRow
		want int // −1 is none
	}{
		{"none", nil, -1},
		{"the best", []HedgeRow{row(20, 5, true, false), row(40, 10, true, false)}, 1},
		{"a cheaper one as good", []HedgeRow{row(36, 5, true, false), row(40, 10, true, false)}, 0},
		{"harm is left out", []HedgeRow{row(20, 5, true, false), row(40, 1, false, false)}, 0},
		{"gRPC is apart", []HedgeRow{row(20, 5, true, false), row(40, 1, true, true)}, 0},
		{"too little", []HedgeRow{row(9.9, 1, true, false)}, -1},
		{"near the best is not enough", []HedgeRow{row(12, 5, true, false), row(9, 1, true, false)}, 0},
	} {
		got := pick(tt.rows, false)
		if tt.want < 0 && got != nil || tt.want >= 0 && got != &tt.rows[tt.want] {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestHarmless(t *testing.T) {
	none := &Effect{P99: 100, FailedPercent: 1}
	for _, tt := range []struct {
		p99, failed float64
		want        bool
	}{{100, 1, true}, {102, 1.1, true}, {102.1, 1, false}, {50, 1.11, false}} {
		if got := harmless(&Effect{P99: tt.p99, FailedPercent: tt.failed}, none); got != tt.want {
			t.Errorf("p99 %v and %v %% failed: %t", tt.p99, tt.failed, got)
		}
	}
}

// What is said of rows, by the load and by what is known of the dependency: row is one that helps
// in both ways, and the first reason is what a reader sees.
func TestChoose(t *testing.T) {
	row := HedgeRow{GainPercent: 40, Harmless: true}
	policy := row
	policy.GRPC = true
	useless := HedgeRow{GainPercent: 5, Harmless: true}
	together := Correlation{Known: true, Correlated: true, Together: 0.4}
	for _, tt := range []struct {
		name        string
		rows        []HedgeRow
		load        float64 // 0 if the capacity is not known
		correlation Correlation
		recommended bool
		reason      string
	}{
		{"where it helps", []HedgeRow{row, policy}, 0.3, Correlation{Known: true}, true, ""},
		{"calls are slow together", []HedgeRow{row, policy}, 0.3, together, false, "calls are slow together: of those that begin when a hedge would, 40 %"},
		{"nothing helps", []HedgeRow{useless}, 0.3, Correlation{Known: true}, false, "no delay and budget cut the 99th percentile by 10 %"},
		{"nothing to spare", []HedgeRow{useless}, 0.8, Correlation{Known: true}, false, "there is no capacity to spare: the calls alone take 80 %"},
		{"nothing to spare at the heavier load", []HedgeRow{row, policy}, 0.6, Correlation{Known: true}, true, "at 1.5 × the load the calls alone take 90 %"},
		{"an unknown capacity", []HedgeRow{row, policy}, 0, Correlation{Known: true}, true, "the capacity is not known"},
		{"an unknown order", []HedgeRow{row, policy}, 0.3, Correlation{}, true, "it is not known whether calls are slow together"},
		{"no policy of gRPC helps", []HedgeRow{row}, 0.3, Correlation{Known: true}, true, "a gRPC hedgingPolicy has no gates"},
	} {
		workers := 40
		if tt.load == 0 {
			workers = 0
		}
		in := fromTable(t, heavyTable, workers)
		in.Correlation = tt.correlation
		h := Hedging{Rows: tt.rows}
		small(in, tt.load*in.Capacity).choose(&h)
		reason := strings.Join(h.Reasons, "\n")
		if h.Recommended != tt.recommended || (h.Chosen != nil) != tt.recommended || !strings.HasPrefix(reason, tt.reason) || (reason == "") != (tt.reason == "") {
			t.Errorf("%s: recommended %t, %q", tt.name, h.Recommended, h.Reasons)
		}
	}
}

// Hedging is held against what becomes of calls that do not fit, and what may not be carried out
// twice is not tried.
func TestHedgingIsComparedWithWhatCallsDo(t *testing.T) {
	w := Waiting{Refused: Effects{Present: Effect{P99: 1}}, Waited: Effects{Present: Effect{P99: 2}}}
	for _, w.Wait = range []bool{false, true} {
		s := small(fromTable(t, heavyTable, 40), 100)
		s.Idempotent = false
		want := w.Refused
		if w.Wait {
			want = w.Waited
		}
		if h, err := s.compareHedging(t.Context(), 46, &w); err != nil || h.None != want || len(h.Rows) > 0 || len(h.Reasons) != 1 {
			t.Errorf("calls wait: %t: %+v, %v", w.Wait, h, err)
		}
	}
}

// small is a sizing that takes little time.
func small(in *Input, rate float64) *Sizing {
	return &Sizing{Input: in, Rate: rate, Timeout: 10 * time.Second, Idempotent: true, Calls: 6000, Seeds: []uint64{1}, Parallel: 2}
}

func fromTable(t *testing.T, text string, workers int) *Input {
	t.Helper()
	in := &Input{Kind: "table", Latency: mustTable(t, text)}
	if workers > 0 {
		in.SetWorkers(workers)
	}
	return in
}

func mustRecommend(t *testing.T, s *Sizing) *Recommendation {
	t.Helper()
	r, err := s.Recommend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete() {
		t.Fatal("not complete")
	}
	return r
}

const heavyTable = "p50=10ms p99=100ms p99.9=150ms"

// Where hedging helps it is recommended, and does what it promised behind the limit that moves.
func TestHedgingIsRecommendedWhereItHelps(t *testing.T) {
	in := fromTable(t, heavyTable, 40)
	s := small(in, 0.3*in.Capacity)
	r := mustRecommend(t, s)
	h := r.Hedging
	if !h.Recommended || h.Chosen == nil || h.GRPC == nil || h.Chosen.GainPercent < 20 {
		t.Fatalf("%+v", h)
	}
	if r.AsRecommended.Present.P99 > 0.85*r.Unhedged.Present.P99 || r.AsRecommended.Present.ExtraPercent > 100*h.Chosen.Ratio {
		t.Errorf("as recommended %+v, without hedging %+v", r.AsRecommended, r.Unhedged)
	}
	if limit := r.Limit; !limit.Found || limit.Limit < 38 || limit.Limit > 55 || len(limit.Rows) != 3 {
		t.Errorf("%+v", limit)
	}
}

// The simulation of calls that are slow together agrees with the statistics: hedges bring nothing.
func TestHedgesOfSlowSpellsBringNothing(t *testing.T) {
	together, err := newInput("trace", drawn(20000, 200, lightTail, inSpells), Timed, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := small(together, 200)
	h, err := s.compareHedging(t.Context(), 100, &Waiting{Refused: Effects{Present: Effect{P99: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	none, err := s.runBoth(t.Context(), "", []setup{{fixed(100, false, s), unhedged()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range h.Rows {
		if gain := 1 - r.Present.P99/none[0].Present.P99; gain > 0.25 {
			t.Errorf("p%g, %g: p99 is %.0f %% lower", 100*r.Quantile, r.Ratio, 100*gain)
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

// A queue is recommended where it saves calls: at a load near the capacity, not at a light one, and
// not where it saves next to none; that it saves some at the heavier load is enough. A call then waits for three 95th percentiles at most.
func TestWaitingIsRecommendedWhereItSavesCalls(t *testing.T) {
	in := fromTable(t, "p50=10ms p99=20ms", 10)
	for _, tt := range []struct {
		load float64
		want bool
	}{{0.1, false}, {0.25, false}, {0.3, true}, {0.55, true}} {
		s := small(in, tt.load*in.Capacity)
		w, err := s.compareWaiting(t.Context(), 12)
		if err != nil || w.Wait != tt.want || w.MaxWaiting != 12 {
			t.Errorf("at %v: %+v, %v", tt.load, w, err)
		}
		near(t, "longest wait", w.MaxWaitMS, 3*1000*in.Latency.Quantile(0.95), 0.01)
	}
}
