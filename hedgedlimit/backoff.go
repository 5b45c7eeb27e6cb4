package hedgedlimit

import (
	"fmt"
	"math"
	"time"
)

const (
	// The example of gRFC A6.
	defaultInitialBackoff    = 100 * time.Millisecond
	defaultMaxBackoff        = time.Second
	defaultBackoffMultiplier = 2
	// backoffJitter is that of gRFC A6: callers that failed together do not come back
	// together.
	backoffJitter = 0.2
)

// Backoff is how long a call waits after a failure before it tries again: before the
// n-th retry, Initial·Multiplierⁿ⁻¹ but at most Max, times a random number from 0.8
// to 1.2, as in gRFC A6. After a pushback it begins again with Initial. The call holds
// no permit meanwhile, and is woken by the end of its context. The zero value is 100
// ms, doubled up to 1 s.
type Backoff struct {
	// Initial and Max are before the jitter. 0 means 100 ms and 1 s.
	Initial, Max time.Duration
	// Multiplier is above 0. 0 means 2.
	Multiplier float64

	_ struct{}
}

func (b *Backoff) validate() error {
	f := b.filled()
	switch {
	case b.Initial < 0:
		return fmt.Errorf("hedgedlimit: Retry: Initial %v is negative", b.Initial)
	case b.Max < 0:
		return fmt.Errorf("hedgedlimit: Retry: Max %v is negative", b.Max)
	case math.IsNaN(b.Multiplier) || math.IsInf(b.Multiplier, 0) || b.Multiplier < 0:
		return fmt.Errorf("hedgedlimit: Retry: Multiplier %v is not a positive number", b.Multiplier)
	case f.Max < f.Initial:
		return fmt.Errorf("hedgedlimit: Retry: Initial %v exceeds Max %v", f.Initial, f.Max)
	}
	return nil
}

// filled returns b with its defaults.
func (b *Backoff) filled() Backoff {
	f := *b
	if f.Initial == 0 {
		f.Initial = defaultInitialBackoff
	}
	if f.Max == 0 {
		f.Max = max(defaultMaxBackoff, f.Initial)
	}
	if f.Multiplier == 0 {
		f.Multiplier = defaultBackoffMultiplier
	}
	return f
}

// wait returns the back-off before retry n, the first being 1, with a random number
// of [0, 1).
func (b *Backoff) wait(n int, random float64) time.Duration {
	d := float64(b.Initial) * math.Pow(b.Multiplier, float64(n-1))
	d = min(d, float64(b.Max)) * (1 - backoffJitter + 2*backoffJitter*random)
	// A jittered Max of years is not worth an overflow.
	return time.Duration(min(d, float64(math.MaxInt64/2)))
}
