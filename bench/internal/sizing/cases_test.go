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
