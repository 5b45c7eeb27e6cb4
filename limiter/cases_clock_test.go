// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Field case B31: the first traffic ever under a clock that does not advance. In a
// bubble nothing sleeps, so all of it is in one instant and each latency is zero.
func TestClockThatStandsStill(t *testing.T) {
	for name, algorithm := range algorithms(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limitedBy(t, algorithm, limiter.Config{OnPanic: func(v any, _ []byte) { t.Error(v) }})
				start := time.Now()
				for i := range 1000 {
					p, err := l.Acquire(t.Context(), limiter.Primary)
					if err != nil {
						t.Fatal(err)
					}
					p.Release(permit.Outcome(i % permit.NumOutcomes))
					if n := l.Limit(); n < 1 || n > 1000 {
						t.Fatalf("limit %d", n)
					}
				}
				if !time.Now().Equal(start) {
					t.Fatal("the clock has moved")
				}
				// Time goes on, and so does the limiter.
				for range 1000 {
					if err := l.Do(t.Context(), func(context.Context) error { time.Sleep(time.Millisecond); return nil }); err != nil {
						t.Fatal(err)
					}
				}
				if n := l.Limit(); n < 1 || n > 1000 {
					t.Errorf("limit %d", n)
				}
				probe(t, l)
			})
		})
	}
}

func algorithms(t testing.TB) map[string]gradient.Algorithm {
	t.Helper()
	g, err := gradient.New(gradient.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := gradient.NewAIMD(gradient.AIMDConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]gradient.Algorithm{"gradient": g, "AIMD": a}
}
