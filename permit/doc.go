// Package permit is the ledger of a concurrency limit: it knows who holds a
// permit, who waits for one, and when each permit came back.
//
// A [Pool] has a limit that may change at any time. A [Permit] is the right of
// one piece of work to run. It is held from before the work starts until the
// work has ended, and it is released exactly once. Nothing else ends it: not a
// cancelled context, not a time-out, not a caller who stopped waiting.
//
//	pool, err := permit.NewPool(permit.Config{Limit: 8})
//	…
//	p, err := pool.Acquire(ctx)
//	if err != nil {
//		return err // no permit is held
//	}
//	defer p.Release(permit.Success)
//
// # The life of a permit
//
//	         Acquire, TryAcquire …              Release
//	(free) ───────────────────────▶ held ─────────────────▶ (free)
//	                                 │ │                      ▲
//	                                 │ │ Abandon              │ Release
//	                                 │ └────────▶ overhang ───┤
//	                                 │                        ┆ only with ReclaimLeaks
//	                                 └────────▶ leaked ┄┄┄┄┄┄┄┘
//	                                the handle is lost
//
// Overhang is work that goes on although nobody waits for its result. It still
// counts as in flight: the dependency is still busy with it. A permit whose handle
// is lost stays in flight as well, since nobody can say that its work has ended; it is
// counted and reported.
//
// # What always holds
//
// It is written as formulas beside the fields of [Pool], the gate and the records, and
// checked after every step of the model test:
//
//   - Granted == InFlight + Σ Released in every [Stats], each side counted on its own.
//   - A grant is made only while in flight is below the limit of that instant.
//     Lowering the limit takes nothing back.
//   - Nobody waits while the next in the queue would fit, once every Release has
//     returned, and nobody who comes later is served before the head, unless
//     Config.LIFOAfter says that the head has waited for too long.
//   - A second Release, through the same handle or a copy, changes nothing.
//
// # How it is built
//
// Three things, and each decides one question:
//
//   - The gate (gate.go) is one word with the limit, the number in flight, and whether
//     anyone waits. Whether there is room is decided by a compare-and-swap of this word,
//     and by nothing else.
//   - The books (record.go) are records that are used again and again, in cells so that
//     goroutines need not meet there. Whether a Release is the first is decided by a
//     compare-and-swap of the record's tag, from the generation in the handle.
//   - The queue (queue.go) and its mutex are for those who find no room. Whether a waiter
//     was granted a permit or left is decided under the mutex; whether it may sleep, by a
//     swap of the very word in which there was no room. A release in a crowd hands its
//     permit to the next in the queue under the same mutex.
//
// What holds a handle is watched by the garbage collector (leak.go): the pool itself
// keeps nothing of a held permit alive but its record.
//
// A pool sets no timer, and starts no goroutine but to report a leak to Config.OnLeak,
// its one callback.
package permit
