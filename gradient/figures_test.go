package gradient_test

import (
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
)

// TestFigures prints what the scenarios come to, the worst and the median of as many
// seeds as HOLDFAST_SEEDS says. It judges nothing.
func TestFigures(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("HOLDFAST_SEEDS"))
	if err != nil {
		t.Skip("HOLDFAST_SEEDS is not set")
	}
	for _, s := range scenarios {
		columns := make([][5][]float64, len(s.phases))
		for seed := range seeds {
			for i, r := range simulate(t, newGradient(t), uint64(seed), s.phases...) {
				need := s.phases[i].rate * s.phases[i].mean
				for k, v := range []float64{100 * r.good, 100 * r.rejected, r.p50, r.p99, r.secondsTo(0.9 * math.Min(need, float64(s.phases[i].workers)))} {
					columns[i][k] = append(columns[i][k], v)
				}
			}
		}
		for i, c := range columns {
			for k := range c {
				slices.Sort(c[k])
			}
			mid, last := seeds/2, seeds-1
			t.Logf("%-4s %d  good min %6.2f med %6.2f | rejected med %6.2f max %6.2f | p50 med %6.1f max %6.1f | p99 med %6.1f max %6.1f | t90 med %5.1f max %5.1f", s.name, i,
				c[0][0], c[0][mid], c[1][mid], c[1][last], c[2][mid], c[2][last], c[3][mid], c[3][last], c[4][mid], c[4][last])
		}
	}
}
