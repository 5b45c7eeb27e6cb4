package permit

import (
	"fmt"
	"time"
)

// Config describes a pool.
type Config struct {
	// Limit is how many permits may be out at first, from 1 to MaxLimit; there is no
	// default. Resize changes it later.
	Limit int

	// Base, if set, has every grant note the time since Base, for Grant.At,
	// Stats.Oldest and Leak.Held. It is one reading of the monotonic clock each, which
	// whoever measures latency needs anyway; take Base from time.Now. The zero value
	// reads no clock.
	Base time.Time

	// LIFOAfter, if above 0, turns the queue round under pressure: once the one who has
	// waited longest has waited for longer than this, the one who came last is served
	// first, until nobody has waited so long any more. While the limit cannot keep up,
	// first in first out has everybody wait as long as the one before, and so most of
	// them until they give up; last in first out has a part of them not wait at all, at the
	// cost of those who would be too late in any case. While nobody has waited so long
	// the order is that of their coming, which is fair.
	//
	// It is about single permits: while anyone waits for more than one (AcquireN), the
	// order is first in first out. A heavy caller who came last would hold up all
	// others, and one who came before would be overtaken for ever.
	//
	// Each wait and each hand-over read the monotonic clock once then. 0 means first in
	// first out always, and reads none.
	LIFOAfter time.Duration

	// OnLeak, if set, is called once for each permit that can never be released any
	// more, because every handle to it has become garbage. That is a bug of the
	// holder: a Release is missing. It is found at some garbage collection afterwards,
	// and reported on a goroutine of its own, one leak after the other; the runtime's
	// cleanups wait for it, so it should be quick. It is called without locks; a panic in
	// it is logged and ends there, and so does runtime.Goexit. It is not called for
	// the permits of a pool that is garbage itself, and cannot be while a handle of an
	// earlier, released permit of the same record is kept.
	OnLeak func(Leak)

	// StackEvery has one grant of StackEvery, by lot, note where it was acquired, for
	// Leak.Stack. It costs about a microsecond and an allocation for each that is sampled.
	// 1 samples all, 0 none.
	StackEvery int

	// ReclaimLeaks gives the place of a leaked permit back, as Ignored. Without it a
	// leaked permit stays in flight for ever: the pool cannot know that its work has
	// ended, only that nobody can say so. A place given back may go to a waiter; in a
	// test under testing/synctest that ends the process, since the runtime's goroutine
	// is not of the bubble.
	ReclaimLeaks bool

	_ struct{}
}

func (c Config) validate() error {
	if err := checkLimit("Limit", c.Limit); err != nil {
		return err
	}
	if c.LIFOAfter < 0 {
		return fmt.Errorf("permit: LIFOAfter %v is negative", c.LIFOAfter)
	}
	if c.StackEvery < 0 {
		return fmt.Errorf("permit: StackEvery %d is below 0", c.StackEvery)
	}
	return nil
}
