package hedgedlimit_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// Calls of different keys wait for what is slow for each, and one key that is not known
// yet is not hedged.
func TestEachKeyHasADelayOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Delay: hedgedlimit.PerKey(hedgedlimit.QuantileConfig{MinSamples: 20}, 2)})
		call := func(key string, takes time.Duration) time.Duration {
			start := time.Now()
			fn, _ := script(t, step{takes: takes}, step{})
			if _, err := hedgedlimit.Do(t.Context(), h, fn, hedgedlimit.Key[int](key)); err != nil {
				t.Error(err)
			}
			return time.Since(start)
		}
		learn := func(key string, takes time.Duration) {
			for range 20 {
				call(key, takes)
			}
		}
		learn("quick", 10*ms)
		learn("slow", time.Second)
		for key, want := range map[string]time.Duration{"quick": 10 * ms, "slow": time.Second} {
			if got := call(key, time.Hour); !near(got, want) {
				t.Errorf("a hedge of %q was sent after %v, want %v", key, got, want)
			}
		}
		call("quick", 10*ms)
		if got := call("new", time.Minute); got != time.Minute { // and "slow" is forgotten
			t.Errorf("a key that is not known was hedged after %v", got)
		}
		if got := call("quick", time.Hour); !near(got, 10*ms) {
			t.Errorf("the key that was used last was hedged after %v", got)
		}
		if got := call("slow", time.Minute); got != time.Minute {
			t.Errorf("a key that is forgotten was hedged after %v", got)
		}
		if s := h.Stats(); s.DelayKnown {
			t.Errorf("there is no delay of all keys: %+v", s)
		}
		settle(time.Hour)
		probe(t, h)
	})
}

// However many keys there are, memory is bounded: a key costs two histograms.
func TestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := hedgedlimit.PerKey(hedgedlimit.QuantileConfig{}, 3)
		h := newHedger(t, hedgedlimit.Config{Delay: d})
		for i := range 1000 {
			_, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return 0, nil },
				hedgedlimit.Key[int](fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			if n := hedgedlimit.Keys(d); n > 3 {
				t.Fatalf("%d keys are kept", n)
			}
		}
		if h.Stats().Started[limiter.Primary] != 1000 {
			t.Error("calls are missing")
		}
	})
}
