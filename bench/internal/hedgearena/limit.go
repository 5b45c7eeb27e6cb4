package hedgearena

import (
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
)

// Limit is what stands in front of the replicas, shared by all of them.
type Limit struct {
	Name string `json:"name"`
	// Times is a fixed limit in multiples of the slots. 0 is none, or Gradient.
	Times    float64 `json:"times"`
	Gradient bool    `json:"gradient"`
}

// Limits returns the limits, in order.
func Limits() []Limit {
	return []Limit{{Name: "none"}, {Name: "1.5x", Times: 1.5}, {Name: "3x", Times: 3}, {Name: "gradient", Gradient: true}}
}

// None tells that nothing limits the calls.
func (l Limit) None() bool { return l.Times == 0 && !l.Gradient }

// Mode is what becomes of a call without a free permit.
type Mode string

// The modes: refused at once, or after it has waited for maxWaitDelays fixed hedge
// delays.
const (
	Refuse Mode = "refuse"
	Queue  Mode = "queue"
	NoMode Mode = "–" // there is no limit
)

// maxWaitDelays is the bound of a wait in hedge delays: with 2 to 4 the wait adds little
// to the 99th percentile of those who got through.
const maxWaitDelays = 3

// unlimited is more than is ever in flight.
const unlimited = 1 << 20

// newLimiter makes the limiter for a scenario. Without a limit it is one that never says no:
// a hedger needs one.
func (l Limit) newLimiter(s *Scenario, m Mode) (*limiter.Limiter, error) {
	c := limiter.Config{OnPanic: func(v any, _ []byte) { panic(v) }}
	if !l.Gradient {
		places := unlimited
		if l.Times > 0 {
			places = int(l.Times * float64(s.Places()))
		}
		fixed, err := gradient.NewFixed(places)
		if err != nil {
			return nil, err
		}
		c.Algorithm = fixed
	}
	if m == Queue {
		c.MaxWaiting, c.MaxWait = limiter.Unbounded, maxWaitDelays*s.Delay().Round(time.Millisecond)
	}
	return limiter.New(c)
}
