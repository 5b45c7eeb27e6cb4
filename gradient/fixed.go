package gradient

import (
	"fmt"
	"time"
)

// Fixed is the limit that never changes.
type Fixed struct {
	limit int
}

// NewFixed returns a Fixed. It fails, and returns nil, if limit is below 1, or above what
// Config.Max may be.
func NewFixed(limit int) (*Fixed, error) {
	if limit < 1 || limit > maxMax {
		return nil, fmt.Errorf("gradient: Fixed limit %d is not between 1 and %d", limit, maxMax)
	}
	return &Fixed{limit: limit}, nil
}

// Start returns the limit.
func (f *Fixed) Start(time.Time) Decision { return f.decision() }

// Next returns the limit.
func (f *Fixed) Next(time.Time, *Window) Decision { return f.decision() }

func (f *Fixed) decision() Decision {
	return Decision{Limit: f.limit, Reason: ReasonHold, MinLength: maxWindow, MinSamples: minSamples}
}
