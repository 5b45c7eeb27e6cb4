// Package limiter limits how much work is in flight, with a limit that follows
// what the other side can take.
//
// A [Limiter] is a pool of permits (package permit), an algorithm that sets its
// limit (package gradient), the statistics that the algorithm learns from, and a
// rule for who may wait. The zero [Config] makes a working one:
//
//	lim, err := limiter.New(limiter.Config{})
//	…
//	err = lim.Do(ctx, func(ctx context.Context) error {
//		return fetch(ctx)
//	})
//
// [Limiter.Do] is what most callers should use. It runs the function in the
// caller's goroutine and holds one permit until the function has returned.
// Where the end of the work is not the end of a function, use [Limiter.Acquire]
// and release the permit when the work has truly ended.
//
// # Who waits
//
// With MaxWaiting 0, the default, a call that finds no free permit is refused at
// once with [ErrLimitExceeded]. A worker pool that would rather wait sets
// MaxWaiting to −1; a client that can wait a little sets a small number and
// MaxWait. A hedge never waits, never overtakes, and leaves a reserve to others.
// Whoever has a deadline that would pass in the queue, or before the work is done, is
// refused at once, as far as the last window can tell.
//
// Who waits is served first in first out. Under a load that the limit cannot keep up with
// that has everybody wait until they give up; LIFOAfter turns the order round for as long
// as the one who came first has waited for too long.
//
// Where one process talks to many others, a [Group] keeps a limiter for each.
//
// # What teaches the limit
//
// Only primaries and retries do: their latency from grant to end, the drops
// among them, and whether one of them was refused, had to wait or took the last
// permit. Every attempt that holds a permit counts as in flight and in the
// throughput. Waiting is never part of a latency. A cancelled attempt gives a
// lower bound, never a short sample. Work that says nothing about the other side, such
// as a cache hit, is marked as [Bypass]; what an error teaches is said by Classify.
//
// # How it is built
//
// Each file decides one question:
//
//   - limiter.go: who gets a permit, and what happens when a window is due.
//   - permit.go: what the end of an attempt does, and in which order.
//   - meter.go and cell.go: what a window contains, when it is worth looking whether it
//     is due, and where that is kept so that goroutines need not meet.
//   - sample.go: what an algorithm that learns from single calls is told.
//   - pace.go: whether a caller would be too late.
//   - classify.go and kind.go: what teaches.
//   - group.go: which limiter a key has, and which one has to go.
//   - shadow.go: what a limit would have refused.
//
// A limiter starts no goroutine. Statistics are closed by whichever release or
// refusal finds a window due. They are entered in cells, so that goroutines meet only
// at the gate of the pool (BenchmarkAcquireRelease, BenchmarkRefusal).
package limiter
