package sizing

import (
	"math"
	"slices"
	"testing"
)

// The limit that is found gets 99 % of the answers that limits far too high get at 1.5 × the
// capacity, and one less does not.
func TestLimitIsTheSmallestThatIsGoodEnough(t *testing.T) {
	for _, workers := range []int{1, 5, 12} {
		in := fromTable(t, "p50=10ms p99=40ms", workers)
		s := small(in, 0.3*in.Capacity)
		s.Calls = 2000
		found, err := s.findLimit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(found.Rows, func(r LimitRow) bool { return r.Limit == found.Limit })
		if i < 0 || !found.Found {
			t.Fatalf("%d workers: the limit %d is not among %+v", workers, found.Limit, found.Rows)
		}
		at := found.Rows[i]
		enough := 0.99 * 100 * at.AnsweredRate / at.GoodPercent
		below := 0.0 // a limit of 0 lets nobody pass
		if found.Limit > 1 {
			// What differs behind a fixed limit is not by chance, so it can be run again.
			below = answeredRate(t, s, found.Limit-1, 1.5*in.Capacity)
		}
		if at.AnsweredRate < enough || below >= enough {
			t.Errorf("%d workers: limit %d gets %.1f answers a second and one less %.1f, where %.1f are enough", workers, found.Limit, at.AnsweredRate, below, enough)
		}
		near(t, "answers of all", enough/0.99, in.Capacity, 0.05)
	}
}

// answeredRate runs a fixed limit as the search for the limit does.
func answeredRate(t *testing.T, s *Sizing, limit int, rate float64) float64 {
	t.Helper()
	effects, err := s.run(t.Context(), "", []job{{setup: setup{fixed(limit, false, s), unhedged()}, rate: rate, times: limitTimes}})
	if err != nil {
		t.Fatal(err)
	}
	return effects[0].AnsweredRate
}

// Each load has the effects of its own: the answers are as many a second as the calls, the
// heavier load is 1.5 × the present one, and its queue is longer.
func TestEffectsAreThoseOfTheirLoad(t *testing.T) {
	in := fromTable(t, "p50=10ms p99=40ms", 4)
	s := small(in, 0.6*in.Capacity)
	both, err := s.runBoth(t.Context(), "", []setup{{fixed(1000, false, s), unhedged()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	present, heavier := both[0].Present, both[0].Heavier
	near(t, "answers", present.AnsweredRate, s.Rate, 0.05)
	near(t, "answers at the heavier load", heavier.AnsweredRate, 1.5*s.Rate, 0.05)
	if heavier.P99 < 1.2*present.P99 {
		t.Errorf("p99 %.1f ms, and %.1f ms at the heavier load", present.P99, heavier.P99)
	}
}

// The effects of some seeds are the means of those of each, which differ.
func TestEffectsAreMeansOverTheSeeds(t *testing.T) {
	in := fromTable(t, heavyTable, 4)
	effect := func(seeds ...uint64) Effect {
		s := small(in, 0.8*in.Capacity)
		s.Calls, s.Seeds = 2000, seeds
		effects, err := s.run(t.Context(), "", []job{{setup: setup{fixed(6, false, s), unhedged()}, rate: s.Rate}})
		if err != nil {
			t.Fatal(err)
		}
		return effects[0]
	}
	a, b, both := effect(1), effect(2), effect(1, 2)
	if a.P99 == b.P99 {
		t.Errorf("two seeds give the same: %+v", a)
	}
	for _, x := range []struct {
		what           string
		a, b, together float64
	}{
		{"p50", a.P50, b.P50, both.P50},
		{"p99", a.P99, b.P99, both.P99},
		{"failures", a.FailedPercent, b.FailedPercent, both.FailedPercent},
		{"answers", a.AnsweredRate, b.AnsweredRate, both.AnsweredRate},
	} {
		if math.Abs(x.together-(x.a+x.b)/2) > 1e-9*x.together {
			t.Errorf("%s of both is %v, and of each %v and %v", x.what, x.together, x.a, x.b)
		}
	}
}
