package sweep

import (
	"math/rand/v2"
	"testing"
)

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name         string
		held, inside []Interval
		excess       int
		at           int64
		violations   int
	}{
		{name: "nothing"},
		{name: "permits without visits", held: []Interval{{1, 5}, {2, 3}}},
		{name: "visit within its permit", held: []Interval{{1, 9}}, inside: []Interval{{2, 8}}},
		{name: "same stamps at both ends", held: []Interval{{1, 9}}, inside: []Interval{{1, 9}}},
		{name: "one visit hands over to the next in one instant",
			held: []Interval{{1, 5}, {5, 9}}, inside: []Interval{{1, 5}, {5, 9}}},
		{name: "visit without a permit", inside: []Interval{{2, 8}}, excess: 1, at: 2, violations: 1},
		{name: "permit released too early", held: []Interval{{1, 7}}, inside: []Interval{{2, 8}},
			excess: 1, at: 7, violations: 1},
		{name: "permit granted too late", held: []Interval{{3, 9}}, inside: []Interval{{2, 8}},
			excess: 1, at: 2, violations: 1},
		{name: "two visits under one permit", held: []Interval{{1, 9}}, inside: []Interval{{2, 8}, {3, 4}, {5, 6}},
			excess: 1, at: 3, violations: 2},
		{name: "three losers whose permits came back at once",
			held: []Interval{{1, 4}, {1, 4}, {1, 4}}, inside: []Interval{{2, 6}, {2, 7}, {2, 8}},
			excess: 3, at: 4, violations: 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := Finding{
				Events: 2 * (len(tt.held) + len(tt.inside)),
				Excess: tt.excess, At: tt.at, Violations: tt.violations,
			}
			if got := Compare(tt.held, tt.inside); got != want {
				t.Errorf("Compare(%v, %v) = %+v, want %+v", tt.held, tt.inside, got, want)
			}
		})
	}
}

// A log of sound visits is green however they overlap, and red once a single one
// of them is made to outlive its permit while all other permits are in use.
func TestComparePlanted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var held, inside []Interval
		for range 1 + r.IntN(200) {
			start := r.Int64N(1000)
			stay := Interval{start + 1 + r.Int64N(5), start + 10 + r.Int64N(300)}
			held = append(held, Interval{start, stay.End + 1 + r.Int64N(5)})
			inside = append(inside, stay)
		}
		if f := Compare(held, inside); f.Excess != 0 || f.Violations != 0 {
			t.Fatalf("sound visits were accused: %+v", f)
		}
		// The last of all to leave stays beyond every permit.
		last := 0
		for i := range held {
			if held[i].End > held[last].End {
				last = i
			}
		}
		inside[last].End = held[last].End + 1
		if f := Compare(held, inside); f.Excess != 1 || f.At != held[last].End {
			t.Fatalf("the planted violation at %d was not found: %+v", held[last].End, f)
		}
	}
}

func TestPeak(t *testing.T) {
	for _, tt := range []struct {
		name string
		list []Interval
		want int
	}{
		{"nothing", nil, 0},
		{"one", []Interval{{1, 2}}, 1},
		{"one after the other", []Interval{{1, 2}, {2, 3}, {3, 4}}, 1},
		{"nested", []Interval{{1, 9}, {2, 8}, {3, 4}, {5, 6}}, 3},
		{"unsorted", []Interval{{5, 9}, {1, 6}, {2, 3}}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Peak(tt.list); got != tt.want {
				t.Errorf("Peak(%v) = %d, want %d", tt.list, got, tt.want)
			}
		})
	}
}
