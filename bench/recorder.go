package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// recorder is the client's log of one row. Its methods may be called from any
// goroutine.
type recorder struct {
	underWay underWay // has a lock of its own, and mu is never held with it

	mu sync.Mutex
	// Guarded by mu.

	attempts []hedgedlimit.AttemptEvent
	maxLimit int // the highest that was ever in force
}

func (r *recorder) attemptEnded(e hedgedlimit.AttemptEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = append(r.attempts, e)
}

func (r *recorder) limitChanged(c limiter.Change) { r.limitWas(c.New) }

func (r *recorder) limitWas(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.maxLimit = max(r.maxLimit, limit)
}

// wait waits until as many attempts as want are in the log, since an attempt is
// logged just after its permit came back. It returns the log and the highest
// limit.
func (r *recorder) wait(ctx context.Context, want int) ([]hedgedlimit.AttemptEvent, int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		r.mu.Lock()
		got, limit := slices.Clone(r.attempts), r.maxLimit
		r.mu.Unlock()
		if len(got) == want {
			return got, limit, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("%d attempts were started, and %d have ended: %w", want, len(got), ctx.Err())
		}
	}
}
