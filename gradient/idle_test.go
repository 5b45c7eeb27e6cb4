package gradient

import (
	"testing"
)

func TestIdleLimitFallsToTwiceThePeakAndNotBelowTheFirst(t *testing.T) {
	for peak, want := range map[int]float64{5: 20, 40: 80, 300: 500} {
		var i idleness
		limit, first := 500.0, 0.0
		for at := 1000.0; at < 1000+600; at += 0.5 {
			l, ok := i.limit(at, sample{peak: peak}, limit, 20)
			if ok && first == 0 {
				first = at - 1000
			}
			if ok && l < 0.9*limit-1e-9 {
				t.Fatalf("from %v to %v at once", limit, l)
			}
			if ok {
				limit = l
			}
		}
		if limit != want {
			t.Errorf("peak %d: limit %v after ten minutes, want %v", peak, limit, want)
		}
		if first > 0 && first != 60 { // a minute, whatever the constant says
			t.Errorf("peak %d: the first cut after %v s", peak, first)
		}
	}
}
