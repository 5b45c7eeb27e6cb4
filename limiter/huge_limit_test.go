package limiter_test

import (
	"context"
	"math"
	"testing"

	"github.com/holdfast-go/holdfast/limiter"
)

// Field case B63: an algorithm that asks for more permits than a pool can have gets as
// many as it can, at the start and later; it is not a panic.
func TestHugeLimitOfAnAlgorithmIsClamped(t *testing.T) {
	for _, limits := range [][]int{{math.MaxInt}, {2, math.MaxInt}} {
		l, err := limiter.New(limiter.Config{
			Algorithm: &between{limits: limits},
			OnPanic:   func(v any, _ []byte) { t.Errorf("limits %v: %v", limits, v) },
		})
		if err != nil {
			t.Errorf("limits %v: %v", limits, err)
			continue
		}
		if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil || l.Limit() <= 2 || l.InFlight() != 0 {
			t.Errorf("limits %v: %v, limit %d, in flight %d", limits, err, l.Limit(), l.InFlight())
		}
	}
}
