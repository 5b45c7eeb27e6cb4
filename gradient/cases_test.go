// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package gradient_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

// Field case B63: each bound, each float and each duration that makes no sense is
// refused by name and value, and the zero value has the documented defaults.
func TestNonsenseIsRefusedByName(t *testing.T) {
	for want, config := range map[string]gradient.Config{
		"Min -1": {Min: -1}, "Min -": {Min: math.MinInt}, "Max -1": {Max: -1},
		"Min 30 exceeds Max 20": {Min: 30, Max: 20}, "Initial 5": {Initial: 5, Min: 10, Max: 20}, "Initial 21": {Initial: 21, Min: 10, Max: 20},
		"Initial -1": {Initial: -1},
	} {
		if g, err := gradient.New(config); g != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("gradient, %s: %v, %v", want, g, err)
		}
		a, err := gradient.NewAIMD(gradient.AIMDConfig{Initial: config.Initial, Min: config.Min, Max: config.Max})
		if a != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("AIMD, %s: %v, %v", want, a, err)
		}
	}
	for want, config := range map[string]gradient.AIMDConfig{
		"Backoff NaN": {Backoff: math.NaN()}, "Backoff +Inf": {Backoff: math.Inf(1)}, "Backoff -Inf": {Backoff: math.Inf(-1)},
		"Backoff 1 ": {Backoff: 1}, "Backoff 1.5": {Backoff: 1.5}, "Backoff -0.1": {Backoff: -0.1},
		"Target -1ns": {Target: -1}, "Target -2562047h": {Target: math.MinInt64},
	} {
		if a, err := gradient.NewAIMD(config); a != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, a, err)
		}
	}
	for _, n := range []int{0, -1, math.MinInt} {
		if f, err := gradient.NewFixed(n); f != nil || err == nil || !strings.Contains(err.Error(), "Fixed") {
			t.Errorf("Fixed %d: %v, %v", n, f, err)
		}
	}
	g, err := gradient.New(gradient.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if d := g.Start(time.Now()); d.Limit != 20 || d.MinLength <= 0 || d.MinSamples < 1 {
		t.Errorf("the zero Config starts with %+v", d)
	}
	a, err := gradient.NewAIMD(gradient.AIMDConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if d := a.Start(time.Now()); d.Limit != 20 || d.MinLength <= 0 || d.MinSamples < 1 {
		t.Errorf("the zero AIMDConfig starts with %+v", d)
	}
}
