package sweep

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Each step has what Peak finds in the pieces of the intervals that lie within it.
func TestPeaksArePeakOfEachStep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		list := make([]Interval, r.IntN(12))
		for i := range list {
			start := r.Int64N(70) - 10
			list[i] = Interval{start, start + 1 + r.Int64N(30)}
		}
		start, step, n := r.Int64N(25)-5, 1+r.Int64N(15), r.IntN(9)
		want := make([]int, n)
		for k := range want {
			from := start + int64(k)*step
			var pieces []Interval
			for _, i := range list {
				if p := (Interval{max(i.Start, from), min(i.End, from+step)}); p.Start < p.End {
					pieces = append(pieces, p)
				}
			}
			want[k] = Peak(pieces)
		}
		if got := Peaks(list, start, step, n); !slices.Equal(got, want) {
			t.Fatalf("%v from %d in %d steps of %d: %v, want %v", list, start, n, step, got, want)
		}
	}
}
