package hedgedlimit_test

import (
	"context"
	"runtime/debug"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// A call whose hedge does not fire, with a limiter, a budget, gates and a delay that was
// learnt, allocates five times: a context of the call and one of the attempt with its
// cancel function, a channel and a timer. The rest is used again.
func TestCallAllocatesFiveTimes(t *testing.T) {
	if raceEnabled() {
		t.Skip("under the race detector a pool forgets at random")
	}
	h, err := hedgedlimit.New(hedgedlimit.Config{
		Limiter: newLimiter(t, 100, limiter.Config{}), Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: time.Hour}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fn := func(context.Context, hedgedlimit.Attempt) (int, error) { return 1, nil }
	call := func() {
		if _, err := hedgedlimit.Do(ctx, h, fn); err != nil {
			t.Error(err)
		}
	}
	for range 200 { // until the delay is known
		call()
	}
	if !h.Stats().DelayKnown {
		t.Fatal("without a delay there is no timer")
	}
	// A collection would empty the pool.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if n := testing.AllocsPerRun(1000, call); n > 5 {
		t.Errorf("a call allocates %v times", n)
	}
}
