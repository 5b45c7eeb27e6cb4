package sizing

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// Hedging is held against what becomes of calls that do not fit, and what may not be carried out
// twice is not tried.
func TestHedgingIsComparedWithWhatCallsDo(t *testing.T) {
	w := Waiting{Refused: Effects{Present: Effect{P99: 1}}, Waited: Effects{Present: Effect{P99: 2}}}
	for _, w.Wait = range []bool{false, true} {
		s := small(fromTable(t, heavyTable, 40), 100)
		s.Idempotent, s.Doubt = false, "one is a POST"
		want := w.Refused.Present.P99
		if w.Wait {
			want = w.Waited.Present.P99
		}
		h, err := s.compareHedging(t.Context(), &Limit{Limit: 46, Found: true}, &w)
		if err != nil || h.None.Present.P99 != want || len(h.Rows) > 0 {
			t.Errorf("calls wait: %t: %+v, %v", w.Wait, h, err)
		}
		s.choose(h)
		if len(h.Reasons) != 1 || !strings.HasSuffix(h.Reasons[0], "carried out twice: one is a POST") {
			t.Errorf("reasons %q", h.Reasons)
		}
	}
}

// A row has the gain at the present load, and its budget and its gates are those of the candidate:
// without gates nothing is held back, be it for gRPC or not.
func TestRowsDoWhatTheirCandidatesSay(t *testing.T) {
	s := small(fromTable(t, heavyTable, 40), 0)
	s.Rate = 0.5 * s.Input.Capacity
	limit := &Limit{Limit: 46, Found: true}
	none, err := s.compare(t.Context(), "", s.behind(limit, false), []hedgearena.Policy{unhedged()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &Hedging{None: none[0]}
	if err := s.try(t.Context(), h, limit, false, []candidate{
		{quantile: 0.5, ratio: 0.2, gates: true},
		{quantile: 0.5, ratio: 0.05},
		{quantile: 0.9, fixed: s.quantile(0.9), ratio: tokenRatio, grpc: true},
	}); err != nil {
		t.Fatal(err)
	}
	if len(h.Rows) != 3 {
		t.Fatalf("%+v", h.Rows)
	}
	for i := range h.Rows {
		r := &h.Rows[i]
		now, more := 100*(1-r.Present.EqualP99/h.None.Present.EqualP99), 100*(1-r.Heavier.EqualP99/h.None.Heavier.EqualP99)
		if math.Abs(r.GainPercent-now) > 1e-9 || math.Abs(now-more) < 0.01 {
			t.Errorf("%s: p99 is %v %% lower, now %v and at the heavier load %v", r.Name(), r.GainPercent, now, more)
		}
		if held := r.Present.HeldPercent + r.Heavier.HeldPercent; held > 0 != r.Gates {
			t.Errorf("%s: the gates hold back %v %%", r.Name(), held)
		}
		// A token more is there at first.
		if !r.GRPC && r.Present.ExtraPercent > 100*r.Ratio+0.5 {
			t.Errorf("%s: %v %% more calls", r.Name(), r.Present.ExtraPercent)
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

// Where hedging helps it is recommended, with any doubt about it, and does what it promised behind the
// limit that moves.
func TestHedgingIsRecommendedWhereItHelps(t *testing.T) {
	in := fromTable(t, heavyTable, 40)
	s := small(in, 0.3*in.Capacity)
	s.Doubt = "it is taken to be idempotent"
	r := mustRecommend(t, s)
	h := r.Hedging
	if n := len(h.Reasons); n == 0 || h.Reasons[n-1] != s.Doubt {
		t.Errorf("reasons %q", h.Reasons)
	}
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

// A queue is recommended where it saves calls: at a load near the capacity, not at a light one, and
// not where it saves next to none; that it saves some at the heavier load is enough. A call then waits for three 95th percentiles at most.
func TestWaitingIsRecommendedWhereItSavesCalls(t *testing.T) {
	in := fromTable(t, "p50=10ms p99=20ms", 10)
	for _, tt := range []struct {
		load float64
		want bool
	}{{0.1, false}, {0.25, false}, {0.3, true}, {0.55, true}} {
		s := small(in, tt.load*in.Capacity)
		w, err := s.compareWaiting(t.Context(), &Limit{Limit: 12, Found: true})
		if err != nil || w.Wait != tt.want || w.MaxWaiting != 12 {
			t.Errorf("at %v: %+v, %v", tt.load, w, err)
		}
		near(t, "longest wait", w.MaxWaitMS, 3*1000*in.Latency.Quantile(0.95), 0.01)
	}
}
