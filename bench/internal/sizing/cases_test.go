//go:build !race

// The simulations of these cases take minutes under the race detector, which sees the same
// code in the other tests.

package sizing

import (
	"os"
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
