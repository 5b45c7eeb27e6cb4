package gradient

import (
	"math"
	"testing"
)

func TestClampTakesAnyNumber(t *testing.T) {
	b := bounds{initial: 20, min: 5, max: 50}
	for l, want := range map[float64]float64{4: 5, 5: 5, 7.5: 7.5, 50: 50, 51: 50, math.Inf(1): 50, math.Inf(-1): 5, -1: 5} {
		if got := b.clamp(l); got != want {
			t.Errorf("%v: %v, want %v", l, got, want)
		}
	}
	if got := b.clamp(math.NaN()); got != 5 {
		t.Errorf("NaN: %v, want the least", got)
	}
}
