//go:build !race

// See cases_test.go.

package sizing

import (
	"math"
	"testing"
)

// A large dependency is sized by a smaller model: its cost does not grow with it, and its limit is that
// of the dependency.
func TestLargeDependenciesAreScaledDown(t *testing.T) {
	for _, tt := range []struct {
		workers int
		scale   float64
	}{{50, 1}, {1000, 3}, {100000, 300}} {
		in := fromTable(t, "p50=5ms p99=5.1ms", tt.workers)
		s := small(in, 0.5*in.Capacity)
		if got := s.scale(); math.Abs(got/tt.scale-1) > 0.02 {
			t.Errorf("%d workers: the model is %.1f times smaller, want %v", tt.workers, got, tt.scale)
		}
		if (s.scaled() == "") != (tt.scale == 1) {
			t.Errorf("%d workers: %q", tt.workers, s.scaled())
		}
	}
	in := fromTable(t, "p50=5ms p99=20ms", 3000)
	s := small(in, 0.5*in.Capacity)
	s.Idempotent, s.Calls = false, 1000
	r := mustRecommend(t, s)
	// With so many workers chance has no say, and 99 % of them give 99 % of the answers.
	near(t, "limit", float64(r.Limit.Limit), 3000, 0.03)
	near(t, "answers", r.Unhedged.Present.AnsweredRate, s.Rate, 0.05)
	if r.Waiting.MaxWaiting != r.Limit.Limit {
		t.Errorf("%d may wait at a limit of %d", r.Waiting.MaxWaiting, r.Limit.Limit)
	}
}
