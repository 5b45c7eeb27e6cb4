//go:build !race

package hedgedlimit

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
)

// dive uses up so many frames of at least a KiB.
//
//go:noinline
func dive(deep int) byte {
	var frame [1 << 10]byte
	if deep > 1 {
		frame[deep] = dive(deep - 1)
	}
	return last(frame[:])
}

// A goroutine's stack is moved by the collector too, and what a goroutine begins with
// depends on it; so there is none here. Frames are larger under the race detector, where
// this is not built.
func TestOnlyAttemptsThatCallDeepMakeTheNextStacksLarge(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, c := range []struct {
		kib  int
		deep bool
	}{{0, false}, {64, true}} {
		fixed, err := gradient.NewFixed(1)
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(limiter.Config{Algorithm: fixed})
		if err != nil {
			t.Fatal(err)
		}
		h, err := New(Config{Limiter: l})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Do(t.Context(), h, func(context.Context, Attempt) (byte, error) {
			if c.kib == 0 {
				return 0, nil
			}
			return dive(c.kib), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Close(t.Context()); err != nil { // the attempt has looked at its stack
			t.Fatal(err)
		}
		if got := h.depth.deep.Load(); got != c.deep {
			t.Errorf("after an attempt that needs %d KiB and a little: deep is %v", c.kib, got)
		}
	}
}

func TestStackThatHasGrownAtOnceNeedNotMove(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var d depth
	d.observe(0, 1)
	moved := make(chan bool)
	go func() {
		d.grow()
		var here byte
		before := address(&here)
		dive(4)
		moved <- address(&here) != before
	}()
	if <-moved {
		t.Error("a stack that was made large has moved for 4 KiB")
	}
}
