package permit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/permit"
)

// oddContext is a context whose methods are the user's own code.
type oddContext struct {
	context.Context
	err  func() error
	done func() <-chan struct{}
}

func (c oddContext) Err() error {
	if c.err != nil {
		return c.err()
	}
	return c.Context.Err()
}

func (c oddContext) Done() <-chan struct{} {
	if c.done != nil {
		return c.done()
	}
	return c.Context.Done()
}

// A context may call back into the pool: it is never asked under the lock.
func TestContextMayAskThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		held, _ := pool.TryAcquire()
		ctx := oddContext{Context: t.Context(), err: func() error { pool.Stats(); return nil }}
		done := make(chan struct{})
		go func() {
			defer close(done)
			p, err := pool.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			p.Release(permit.Success)
		}()
		synctest.Wait()
		held.Release(permit.Success)
		<-done
		probe(t, pool)
	})
}

// A context that is done and has no error breaks its contract; it must not break the
// queue.
func TestContextThatIsDoneWithoutAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		held, _ := pool.TryAcquire()
		done := make(chan struct{})
		ctx := oddContext{Context: t.Context(), err: func() error { return nil }, done: func() <-chan struct{} { return done }}
		errs := make(chan error, 1)
		go func() {
			_, err := pool.Acquire(ctx)
			errs <- err
		}()
		synctest.Wait()
		close(done)
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire: %v", err)
		}
		held.Release(permit.Success)
		probe(t, pool)
	})
}

// L10: a context that panics, wherever it is asked, loses no permit and leaves
// nobody in the queue.
func TestContextThatPanicsLosesNothing(t *testing.T) {
	calls := 0
	for name, ctx := range map[string]oddContext{
		"Done": {done: func() <-chan struct{} { panic("done") }},
		"Err after the grant": {err: func() error {
			if calls++; calls > 1 {
				panic("err")
			}
			return nil
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			pool := newPool(t, 1)
			held, _ := pool.TryAcquire()
			ctx.Context = t.Context()
			panicked := make(chan any, 1)
			go func() {
				defer func() { panicked <- recover() }()
				_, _ = pool.Acquire(ctx)
			}()
			synctest.Wait()
			held.Release(permit.Success)
			if v := <-panicked; v == nil {
				t.Errorf("%s: the panic did not reach the caller", name)
			}
			probe(t, pool)
		})
	}
}
