package bubble

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestEachCallsForEachOnce(t *testing.T) {
	for _, parallel := range []int{0, 1, 3, 200} {
		var calls [100]atomic.Int32
		err := Each(t.Context(), parallel, len(calls), func(i int, _ *atomic.Bool) error {
			calls[i].Add(1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			if n := calls[i].Load(); n != 1 {
				t.Errorf("%d at a time: %d was called %d times", parallel, i, n)
			}
		}
	}
}

// The first error ends it, and calls that run are told so.
func TestEachStops(t *testing.T) {
	want := errors.New("no")
	var calls atomic.Int32
	err := Each(t.Context(), 2, 1000, func(i int, stop *atomic.Bool) error {
		calls.Add(1)
		if i == 1 {
			return want
		}
		for !stop.Load() {
		}
		return errors.New("stopped")
	})
	if !errors.Is(err, want) || calls.Load() != 2 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = Each(ctx, 2, 2, func(_ int, stop *atomic.Bool) error {
		cancel()
		for !stop.Load() {
		}
		return errors.New("stopped")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended came out as %v", err)
	}
}
