// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package limiter_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Field case B65: whatever panics, and with whatever value, and whatever exits, each
// permit comes back once, the value comes out unchanged, and it is no success.
func TestPanicsOfEveryKindCostNoPermit(t *testing.T) {
	failure := errors.New("failure")
	var nothing map[string]int
	for name, c := range map[string]struct {
		ends func()
		same any // nil for a runtime error, and for Goexit
	}{
		"string":        {func() { panic("text") }, "text"},
		"error":         {func() { panic(failure) }, failure},
		"abort handler": {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"runtime error": {func() { nothing["x"] = 1 }, nil}, //nolint:staticcheck // the panic is what is wanted
		"Goexit":        {runtime.Goexit, nil},
	} {
		for _, where := range []string{"function", "Classify"} {
			t.Run(name+" in "+where, func(t *testing.T) {
				config := limiter.Config{}
				if where == "Classify" {
					config.Classify = func(error) permit.Outcome { c.ends(); return permit.Success }
				}
				l := fixed(t, 1, config)
				for range 100 {
					ended := make(chan any)
					go func() {
						returned := true
						defer func() {
							v := recover()
							if returned && v == nil {
								v = "returned"
							}
							ended <- v
						}()
						returned = false
						_ = l.Do(t.Context(), func(context.Context) error {
							if where == "function" {
								c.ends()
							}
							return failure
						})
						returned = true
					}()
					v := <-ended
					_, isRuntime := v.(runtime.Error)
					if c.same != nil && v != c.same || name == "runtime error" && !isRuntime || name == "Goexit" && v != nil {
						t.Fatalf("it came out as %v, want %v", v, c.same)
					}
				}
				s := l.Stats().Ledger
				if s.Granted != 100 || s.Released[permit.Ignored] != 100 {
					t.Errorf("100 panics are %+v, want all ignored", s)
				}
				probe(t, l)
			})
		}
	}
}

// Field case B65: observers that panic are told of, cost no permit and do not reach
// the caller.
func TestPanicOfAnObserverEndsThere(t *testing.T) {
	told := 0
	b := &between{limits: []int{2, 3}}
	l := limitedBy(t, b, limiter.Config{
		OnLimitChange: func(limiter.Change) { panic("observer") },
		OnPanic: func(v any, stack []byte) {
			if told++; v != "observer" || !strings.Contains(string(stack), "cases_panic_test.go") {
				t.Errorf("OnPanic was told %v", v)
			}
		},
	})
	for range 100 {
		if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if told != 100 || l.Stats().Ledger.Released[permit.Success] != 100 {
		t.Errorf("OnPanic was told %d times; %+v", told, l.Stats().Ledger)
	}
	rest(t, l, b)
	probe(t, l)
}

// Field case B63: a bad field is refused by name, extremes work, and an algorithm that
// talks nonsense is clamped: nothing panics later and the limit is never below 1.
func TestNonsenseIsRefusedOrClamped(t *testing.T) {
	for field, config := range map[string]limiter.Config{
		"MaxWaiting -2": {MaxWaiting: -2}, "MaxWaiting -": {MaxWaiting: math.MinInt},
		"MaxWait -1ns": {MaxWaiting: 1, MaxWait: -1}, "MaxWait 1ns": {MaxWait: 1},
		"Reserve -2": {Reserve: -2},
	} {
		if l, err := limiter.New(config); l != nil || err == nil || !strings.HasPrefix(err.Error(), "limiter: ") ||
			!strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, %v", field, l, err)
		}
	}
	l := fixed(t, 2, limiter.Config{MaxWaiting: math.MaxInt, MaxWait: math.MaxInt64, Reserve: math.MaxInt})
	if _, ok := l.TryAcquire(limiter.Hedge); ok {
		t.Error("a hedge left MaxInt permits free")
	}
	probe(t, l)
	for _, d := range []gradient.Decision{
		{}, {Limit: -1}, {Limit: math.MinInt}, {Limit: 1, MinLength: -1, MinSamples: -1, Settle: -1},
		{Limit: 1, MinSamples: math.MinInt, Settle: math.MinInt64}, {Limit: 1, MinLength: math.MaxInt64, MinSamples: math.MaxInt, Settle: math.MaxInt64},
	} {
		l := limitedBy(t, &scripted{first: d}, limiter.Config{OnPanic: func(v any, _ []byte) { t.Errorf("%+v: %v", d, v) }})
		for range 100 {
			if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Errorf("%+v: %v", d, err)
			}
			if l.Limit() != 1 {
				t.Fatalf("%+v: limit %d", d, l.Limit())
			}
		}
		probe(t, l)
	}
	zero, err := limiter.New(limiter.Config{})
	if err != nil || zero.Limit() != 20 {
		t.Fatalf("the zero Config: limit %v, %v", zero.Limit(), err)
	}
	probe(t, zero)
}
