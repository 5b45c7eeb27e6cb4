package gradient

import "fmt"

// bounds is the range of a limit.
type bounds struct {
	initial, min, max float64 // Invariant: 1 ≤ min ≤ initial ≤ max.
}

const (
	defaultInitial = 20
	defaultMax     = 1000
	// maxMax keeps every sum and product of limits far from overflow.
	maxMax = 1 << 24
)

func newBounds(initial, lowest, highest int) (bounds, error) {
	if lowest == 0 {
		lowest = 1
	}
	if highest == 0 {
		highest = max(defaultMax, lowest)
	}
	switch {
	case lowest < 1:
		return bounds{}, fmt.Errorf("gradient: Min %d is below 1", lowest)
	case highest < 1 || highest > maxMax:
		return bounds{}, fmt.Errorf("gradient: Max %d is not between 1 and %d", highest, maxMax)
	case lowest > highest:
		return bounds{}, fmt.Errorf("gradient: Min %d exceeds Max %d", lowest, highest)
	}
	if initial == 0 {
		initial = min(max(defaultInitial, lowest), highest)
	}
	if initial < lowest || initial > highest {
		return bounds{}, fmt.Errorf("gradient: Initial %d is not between Min %d and Max %d", initial, lowest, highest)
	}
	return bounds{initial: float64(initial), min: float64(lowest), max: float64(highest)}, nil
}

// clamp brings l into the range. What is no number comes out as the least.
func (b bounds) clamp(l float64) float64 {
	if !(l > b.min) {
		return b.min
	}
	return min(l, b.max)
}
