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
//	                                 │                        ▲
//	                                 │ Abandon                │ Release
//	                                 └────────▶ overhang ─────┘
//
// Overhang is work that goes on although nobody waits for its result. It still
// counts as in flight: the dependency is still busy with it.
//
// # What always holds
//
// Written as formulas beside the fields of [Pool], and checked after every step
// of the model test:
//
//   - Granted == InFlight + Σ Released, each side counted on its own.
//   - A grant is made only while in flight is below the limit of that instant.
//     Lowering the limit takes nothing back.
//   - Nobody waits while the head of the queue would fit, and nobody who comes
//     later is served before the head.
//   - A second Release, through the same handle or a copy, changes nothing.
//
// A pool starts no goroutine, sets no timer and calls nobody back.
package permit
