package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// The log is whole when it is read: an attempt is in it a little after its permit came back.
func TestRecorderWaitsForTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		rec.attemptEnded(hedgedlimit.AttemptEvent{Number: 1})
		time.AfterFunc(time.Second, func() { rec.attemptEnded(hedgedlimit.AttemptEvent{Number: 2}) })
		attempts, _, err := rec.wait(t.Context(), 2)
		if err != nil || len(attempts) != 2 || attempts[1].Number != 2 {
			t.Errorf("the log has %+v, %v", attempts, err)
		}
		if _, _, err := rec.wait(t.Context(), 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an attempt that never ends: %v, want context.DeadlineExceeded", err)
		}
	})
}

// The permits are held against the highest limit that was in force, the first one included.
func TestRecorderKeepsTheHighestLimit(t *testing.T) {
	rec := &recorder{}
	rec.limitWas(20)
	for _, tt := range []struct{ limit, highest int }{{10, 20}, {30, 30}, {15, 30}} {
		rec.limitChanged(limiter.Change{New: tt.limit})
		if _, highest, err := rec.wait(t.Context(), 0); err != nil || highest != tt.highest {
			t.Errorf("after a limit of %d the highest is %d, %v, want %d", tt.limit, highest, err, tt.highest)
		}
	}
}
