//go:build !race

package httpmw_test

import (
	"context"
	"io"
	"net/http"
	"runtime/debug"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// A call with the default options whose hedge does not fire allocates so often more than
// its base does; BENCHMARKS.md lists where. Under the race detector, where a pool forgets
// at random, this is not built.
func TestAllocationsOfACallWithoutAHedge(t *testing.T) {
	tests := map[string]struct {
		base null
		most float64
	}{
		"no body": {null{}, 15},
		"a body":  {null{body: true}, 16},
	}
	for name, test := range tests {
		tr := transport(t, test.base, httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
			c.Delay = hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: time.Hour})
			return nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := get(ctx, t)
		through := func(tr http.RoundTripper) func() {
			return func() {
				answer, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body) // it is in memory
				_ = answer.Body.Close()
			}
		}
		for range 200 { // until the delay is known
			through(tr)()
		}
		if !tr.Stats().Hosts[0].Hedging.DelayKnown {
			t.Fatal("without a delay there is no timer")
		}
		// A collection would empty the pools.
		percent := debug.SetGCPercent(-1)
		base := testing.AllocsPerRun(1000, through(test.base))
		wrapped := testing.AllocsPerRun(1000, through(tr))
		debug.SetGCPercent(percent)
		if n := wrapped - base; n > test.most {
			t.Errorf("%s: a call allocates %v times more than its base", name, n)
		}
	}
}
