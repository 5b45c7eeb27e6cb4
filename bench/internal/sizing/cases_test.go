//go:build !race

// The simulations of these tests take minutes under the race detector, which sees the same
// code in the others.

package sizing

import (
	"os"
	"strings"
	"testing"
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

// What is said of a candidate is what it does. At 0.6 of the capacity there is something to gain,
// and at 1.5 × that there is nothing to spare: the gates then hold hedges back, and the policies of
// gRPC, which have none, do harm.
func TestHedgingRows(t *testing.T) {
	in := fromTable(t, heavyTable, 40)
	s := small(in, 0.6*in.Capacity)
	both, err := s.runBoth(t.Context(), "", []setup{{fixed(46, false, s), unhedged()}})
	if err != nil {
		t.Fatal(err)
	}
	none := both[0]
	h, err := s.compareHedging(t.Context(), 46, &Waiting{Refused: none})
	if err != nil {
		t.Fatal(err)
	}
	harmful := 0
	extra := map[float64]float64{} // by budget, of those that hedge at the 90th percentile
	for _, r := range h.Rows {
		near(t, "p99 after the gain", r.Present.P99, none.Present.P99*(1-r.GainPercent/100), 1e-9)
		harm := !harmless(&r.Present, &none.Present) || !harmless(&r.Heavier, &none.Heavier)
		if harm == r.Harmless || harm && !r.GRPC {
			t.Errorf("harmless: %t, but without hedging %+v, and with it %+v", r.Harmless, none, r)
		}
		if harm {
			harmful++
		}
		if r.Quantile == 0.9 && !r.GRPC {
			extra[r.Ratio] = r.Present.ExtraPercent
		}
	}
	if harmful == 0 {
		t.Error("no policy of gRPC does harm")
	}
	if extra[0.05] == 0 || extra[0.05] >= extra[0.1] {
		t.Errorf("extra calls by budget: %v", extra)
	}
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
		rows   int
	}{
		{"slow together", small(together, 200), false, "calls are slow together: of those that begin when a hedge would, ", len(candidates())},
		{"light tail", small(light, 0.3*light.Capacity), false, "no delay and budget cut the 99th percentile by 10 % without harm at either load; without a queue it is 1.3 × the median", len(candidates())},
		{"no capacity to spare", small(heavy, 0.95*heavy.Capacity), false, "there is no capacity to spare: the calls alone take 95 % of it", len(candidates())},
		{"not idempotent", small(heavy, 0.3*heavy.Capacity), true, "a call may not be carried out twice", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Idempotent = !tt.posts
			r := mustRecommend(t, tt.s)
			h := r.Hedging
			if h.Recommended || h.Chosen != nil || h.GRPC != nil || len(h.Rows) != tt.rows || len(h.Reasons) == 0 || !strings.HasPrefix(h.Reasons[0], tt.reason) {
				t.Errorf("recommended %t, %d rows, reasons %q", h.Recommended, len(h.Rows), h.Reasons)
			}
			if *r.AsRecommended != *r.Unhedged {
				t.Errorf("as recommended %+v, without hedging %+v", r.AsRecommended, r.Unhedged)
			}
		})
	}
}
