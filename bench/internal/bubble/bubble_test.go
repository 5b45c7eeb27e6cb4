package bubble

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The canary: what a simulation relies on, under each version of Go.
func TestRun(t *testing.T) {
	wall := time.Now()
	err := Run(func() error {
		base := time.Now()
		if want := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); !base.Equal(want) {
			t.Errorf("the clock begins at %v, want %v", base, want)
		}
		for _, d := range []time.Duration{1, time.Microsecond, 7 * time.Hour} {
			before := time.Now()
			time.Sleep(d)
			if got := time.Since(before); got != d {
				t.Errorf("a sleep of %v took %v", d, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if d := time.Since(wall); d > time.Hour {
		t.Errorf("seven hours took %v", d)
	}
}

func TestRunReturnsErrors(t *testing.T) {
	want := errors.New("no")
	if err := Run(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	err := Run(func() error { panic("ouch") })
	if err == nil || !strings.Contains(err.Error(), "ouch") {
		t.Errorf("a panic came out as %v", err)
	}
}
