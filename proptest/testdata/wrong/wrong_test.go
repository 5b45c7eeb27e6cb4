// Package wrong holds middleware and algorithms that are wrong on purpose. All of
// its tests must fail; a test of package proptest sees to that.
package wrong

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
	"github.com/holdfast-go/holdfast/proptest"
)

// runner is a middleware that takes its permit like any other, and then does what
// the test says.
func runner(t *testing.T, do func(ctx context.Context, p limiter.Permit, work func(context.Context) error) error) {
	proptest.TestPermitLifetime(t, func(l *limiter.Limiter) (proptest.Runner, error) {
		return func(ctx context.Context, work func(context.Context) error) error {
			p, err := l.Acquire(ctx, limiter.Primary)
			if err != nil {
				return err
			}
			return do(ctx, p, work)
		}, nil
	})
}

// guarded runs work in a goroutine of its own.
func guarded(work func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		work()
	}()
	return done
}

// Cancellation is taken for the end of the work.
func TestReleaseOnCancel(t *testing.T) {
	runner(t, func(ctx context.Context, p limiter.Permit, work func(context.Context) error) error {
		defer p.Release(permit.Success)
		stop := context.AfterFunc(ctx, func() { p.Release(permit.Canceled) })
		defer stop()
		return work(ctx)
	})
}

// The caller gives the permit back when it leaves.
func TestReleaseByTheCaller(t *testing.T) {
	runner(t, func(ctx context.Context, p limiter.Permit, work func(context.Context) error) error {
		defer p.Release(permit.Success)
		select {
		case <-guarded(func() { _ = work(ctx) }):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// The work is forgotten.
func TestNeverRuns(t *testing.T) {
	runner(t, func(_ context.Context, p limiter.Permit, _ func(context.Context) error) error {
		p.Release(permit.Success)
		return nil
	})
}

// A goroutine is left behind that nobody ends.
func TestLeavesAGoroutine(t *testing.T) {
	runner(t, func(ctx context.Context, p limiter.Permit, work func(context.Context) error) error {
		defer p.Release(permit.Success)
		go func() { <-make(chan struct{}) }()
		return work(ctx)
	})
}

// Nobody gives it back if the work panics.
func TestLeakOnPanic(t *testing.T) {
	runner(t, func(ctx context.Context, p limiter.Permit, work func(context.Context) error) error {
		err := work(ctx)
		p.Release(permit.Success)
		return err
	})
}

// A second run of the work has no permit.
func TestTwoRunsOnePermit(t *testing.T) {
	runner(t, func(ctx context.Context, p limiter.Permit, work func(context.Context) error) error {
		defer p.Release(permit.Success)
		first := guarded(func() { _ = work(ctx) })
		second := guarded(func() { _ = work(ctx) })
		<-first
		<-second
		return nil
	})
}

// The work runs although it was refused.
func TestRunsWithoutAPermit(t *testing.T) {
	proptest.TestPermitLifetime(t, func(l *limiter.Limiter) (proptest.Runner, error) {
		return func(ctx context.Context, work func(context.Context) error) error {
			if p, err := l.Acquire(ctx, limiter.Primary); err == nil {
				defer p.Release(permit.Success)
			}
			return work(ctx)
		}, nil
	})
}

// runaway grows without end.
type runaway struct{ limit int }

func (r *runaway) Start(time.Time) gradient.Decision {
	return gradient.Decision{Limit: 1, Reason: "start"}
}

func (r *runaway) Next(time.Time, *gradient.Window) gradient.Decision {
	r.limit += 10
	return gradient.Decision{Limit: r.limit, Reason: "grow"}
}

func TestAlgorithmOutOfRange(t *testing.T) {
	proptest.TestAlgorithm(t, 1, 100, func() gradient.Algorithm { return new(runaway) })
}
