package hedgearena

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// steps is a law that tells attempts apart: 10 ms, every tenth primary 5 s, and a hedge as long
// as its call has waited.
type steps struct{}

func (steps) Service(call, attempt int, after time.Duration, _ float64) float64 {
	switch {
	case attempt > 1:
		return after.Seconds()
	case call%10 == 0:
		return 5
	}
	return 0.010
}

func (steps) Mean() float64            { return 0.509 }
func (steps) Quantile(float64) float64 { return 0.030 }

// A law is asked instead of the log-normal one, and told how long the call has waited; and
// clients wait as long as the scenario says.
func TestLawAndTimeout(t *testing.T) {
	s := find(t, "H1", 5*time.Second)
	s.Law, s.Timeout, s.Slots = steps{}, 20*time.Second, 100
	if got := s.Capacity(); got != 400/0.509 || s.Delay() != 30*time.Millisecond {
		t.Errorf("capacity %v and delay %v are not those of the law", got, s.Delay())
	}
	none := mustSimulate(t, newCase(t, s, 0.3, "none", "", NoneName), 1)
	if none.Total.P50 > 11 || none.Total.P99 < 4990 || none.Total.TimedOut > 0 {
		t.Errorf("without hedging %+v", none.Total)
	}
	hand := mustSimulate(t, newCase(t, s, 0.3, "none", "", "hand"), 1)
	if hand.Total.P99 < 59 || hand.Total.P99 > 61 {
		t.Errorf("with hedges of 30 ms after 30 ms p99 is %v ms", hand.Total.P99)
	}
	s.Timeout = 0
	if f := mustSimulate(t, newCase(t, s, 0.3, "none", "", NoneName), 1); f.Total.P99 != 1000 || f.Total.TimedOut == 0 {
		t.Errorf("with a time-out of a second %+v", f.Total)
	}
}

// A case may bring a limiter and a way to hedge of its own; what they say against is returned.
func TestOwnLimiterAndLibrary(t *testing.T) {
	s := find(t, "H1", 2*time.Second)
	c := Case{Scenario: s, Load: 0.5, NewLimiter: func() (*limiter.Limiter, error) {
		one, err := gradient.NewFixed(1)
		if err != nil {
			return nil, err
		}
		return limiter.New(limiter.Config{Algorithm: one})
	}}
	p := Library("eager", "", func(c *hedgedlimit.Config) error {
		c.Delay = hedgedlimit.Fixed(time.Millisecond)
		return nil
	})
	c.Policy = &p
	if f := mustSimulate(t, c, 1); f.Total.Refused < f.Total.Calls/2 || f.Total.Extra > 0 || f.Total.Due == 0 {
		t.Errorf("behind a limit of 1: %+v", f.Total)
	}
	ouch := errors.New("ouch")
	p = Library("broken", "", func(*hedgedlimit.Config) error { return ouch })
	if _, err := Simulate(c, 1, Options{}); !errors.Is(err, ouch) {
		t.Errorf("error %v", err)
	}
	c.NewLimiter = func() (*limiter.Limiter, error) { return nil, ouch }
	if _, err := Simulate(c, 1, Options{}); !errors.Is(err, ouch) {
		t.Errorf("error %v", err)
	}
}
