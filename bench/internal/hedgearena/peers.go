package hedgearena

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// byHand hedges as it is written in an afternoon: one hedge after a fixed delay, the
// first success wins, nothing bounds it.
type byHand struct{ delay time.Duration }

func (b byHand) do(ctx context.Context, _ int, run attempt) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, 2)
	start := func(number int) { go func() { results <- run(ctx, number) }() }
	start(1)
	timer := time.NewTimer(b.delay)
	defer timer.Stop()
	running := 1
	for {
		select {
		case err := <-results:
			if running--; err == nil || running == 0 {
				return err
			}
		case <-timer.C:
			start(2)
			running++
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (byHand) stats() (hedgedlimit.Stats, bool) { return hedgedlimit.Stats{}, false }

// peer is the hedge policy of failsafe-go. It reads the runtime's clock, so the bubble
// drives it.
type peer struct{ executor failsafe.Executor[any] }

func newFailsafe(delay time.Duration) caller {
	return peer{failsafe.With(hedgepolicy.NewWithDelay[any](delay))}
}

func (p peer) do(ctx context.Context, _ int, run attempt) error {
	return p.executor.WithContext(ctx).RunWithExecution(func(e failsafe.Execution[any]) error {
		number := 1
		if e.IsHedge() {
			number = 2
		}
		return run(e.Context(), number)
	})
}

func (peer) stats() (hedgedlimit.Stats, bool) { return hedgedlimit.Stats{}, false }
