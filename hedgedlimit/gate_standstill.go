package hedgedlimit

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// standstillStarts is how many primaries begin without an answer before that means
	// something. Of a service that answers as many as come, the next event is one or the
	// other by turns, so 10 beginnings in a row are one in 1,000; with one of two
	// replicas at rest, one in 60. Each hedge that was sent into a standstill holds its
	// permit as long as it lasts. Measured at 30 % load, all replicas at rest for 250 ms
	// every 5 s and a limit of three times the slots that refuses: without this gate
	// 0.22 points more calls fail than without hedging, with it 0.01, at the same 99th
	// percentile. The surge gate finds out as well, but only when half of the limit is
	// in flight.
	standstillStarts = 10
	// standstillProbe is how long after a hedge another is sent all the same. Hedges may
	// go where primaries do not, and are answered then: the gate must not stand between
	// a dead primary replica and its healthy second.
	standstillProbe = time.Second
)

// quiet tells a service at rest from one that has stragglers: of the latter others are
// answered. It knows no rate, so it says nothing of a service with little traffic. All
// methods may be called from any goroutine; zero is ready. Times are those of Gates.clock.
type quiet struct {
	starts atomic.Int64 // primaries that began since the last answer
	// first is when the first of them did. It is written after starts, so for an instant
	// it may be that of the quiet before, which is older.
	first atomic.Int64
	hedge atomic.Int64 // when the last hedge was sent
	// probe is when one was last let through in spite of a standstill. It is claimed by a
	// swap, or all that are due at once would go. It has a word of its own, so that giving
	// a claim back cannot take back a hedge that another call sent in the same instant.
	probe atomic.Int64
}

func (q *quiet) started(ns int64) {
	if q.starts.Add(1) == 1 {
		q.first.Store(ns)
	}
}

func (q *quiet) answered() {
	if q.starts.Load() != 0 { // a store would take the cache line from all others
		q.starts.Store(0)
	}
}

// left takes a primary out whose caller did not wait for its answer.
func (q *quiet) left() {
	for n := q.starts.Load(); n > 0 && !q.starts.CompareAndSwap(n, n-1); n = q.starts.Load() {
	}
}

// standstill reports whether nobody is answered, a hedge of late included. Median is that
// of the latency in ns, 0 or +Inf if it is not known: calls that come in bursts need a
// time until the first of them can have been answered.
func (q *quiet) standstill(ns int64, median float64) bool {
	if q.starts.Load() < standstillStarts || !math.IsInf(median, 1) && float64(ns-q.first.Load()) < median {
		return false
	}
	last := q.probe.Load()
	return ns-max(last, q.hedge.Load()) < int64(standstillProbe) || !q.probe.CompareAndSwap(last, ns)
}

// unsent gives back what standstill has claimed at that time.
func (q *quiet) unsent(ns int64) { q.probe.CompareAndSwap(ns, ns-int64(standstillProbe)) }
