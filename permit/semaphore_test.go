package permit_test

import (
	"context"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/permit"
)

// twin is one caller who asks a pool and a semaphore for the same thing.
type twin struct {
	n         int
	cancel    context.CancelFunc
	permit    permit.Permit
	poolErr   error
	poolDone  bool
	otherErr  error
	otherDone bool
	released  bool
}

// leave ends the caller's context. There may be no such caller.
func (w *twin) leave() {
	if w != nil {
		w.cancel()
	}
}

func (w *twin) holds() bool { return w.poolDone && w.poolErr == nil && !w.released }

// A pool of fixed size is a semaphore: over any schedule of callers who ask, wait,
// leave and give back, of weight 1 or more, it grants and refuses the same calls at the
// same time as semaphore.Weighted does.
func TestFixedPoolIsASemaphore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			size := rapid.IntRange(1, 5).Draw(t, "size")
			pool, err := permit.NewPool(permit.Config{Limit: size})
			if err != nil {
				t.Fatal(err)
			}
			other := semaphore.NewWeighted(int64(size))
			var all []*twin
			// Also if a check fails: goroutines that still wait would hide why.
			defer func() {
				for _, w := range all {
					w.cancel()
				}
			}()
			among := func(t *rapid.T, which func(*twin) bool) *twin {
				var some []*twin
				for _, w := range all {
					if which(w) {
						some = append(some, w)
					}
				}
				_, w, _ := pick(t, some, "caller")
				return w
			}
			// Mostly 1. What exceeds the size is left out: the semaphore lets it wait for the
			// end of its context, and the pool sends it away.
			weight := func(t *rapid.T) int {
				return max(1, rapid.IntRange(-size, size).Draw(t, "n"))
			}
			waits := func(w *twin) bool { return !w.poolDone }
			t.Repeat(map[string]func(*rapid.T){
				"acquire": func(t *rapid.T) {
					ctx, cancel := context.WithCancel(context.Background())
					w := &twin{n: weight(t), cancel: cancel}
					all = append(all, w)
					go func() { w.permit, w.poolErr = pool.AcquireN(ctx, w.n); w.poolDone = true }()
					go func() { w.otherErr = other.Acquire(ctx, int64(w.n)); w.otherDone = true }()
				},
				"acquire with a context that has ended": func(t *rapid.T) {
					ctx, cancel := context.WithCancel(context.Background())
					cancel()
					p, err := pool.Acquire(ctx)
					otherErr := other.Acquire(ctx, 1)
					if err == nil || err != otherErr { //nolint:errorlint // both return the bare error
						t.Fatalf("the pool says %v, %v, the semaphore %v", p, err, otherErr)
					}
				},
				"try": func(t *rapid.T) {
					n := weight(t)
					p, ok := pool.TryAcquireN(n)
					if otherOK := other.TryAcquire(int64(n)); ok != otherOK {
						t.Fatalf("TryAcquireN(%d): the pool says %v, the semaphore %v", n, ok, otherOK)
					}
					if ok {
						all = append(all, &twin{n: n, cancel: func() {}, permit: p, poolDone: true, otherDone: true})
					}
				},
				"release": func(t *rapid.T) {
					w := among(t, (*twin).holds)
					if w == nil {
						return
					}
					w.released = true
					w.permit.Release(permit.Success)
					other.Release(int64(w.n))
				},
				"leave": func(t *rapid.T) { among(t, waits).leave() },
				"stay":  func(t *rapid.T) { among(t, (*twin).holds).leave() },
				"": func(t *rapid.T) {
					synctest.Wait()
					for i, w := range all {
						if w.poolDone != w.otherDone || w.poolErr != w.otherErr { //nolint:errorlint // as above
							t.Fatalf("caller %d: the pool says %v, %v, the semaphore %v, %v", i, w.poolDone, w.poolErr, w.otherDone, w.otherErr)
						}
					}
				},
			})
		})
	})
}
