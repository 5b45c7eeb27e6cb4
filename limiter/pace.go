package limiter

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

// pace is what the last window tells about how long a wait will be. Both may be of
// different windows for an instant; they are estimates anyway.
type pace struct {
	// turn is how long a permit is out, on average: by Little's law, in flight over
	// throughput. While all permits are out they come back at the rate limit / turn.
	// That is the throughput of a window in which they were; from one with less to do it
	// is what the throughput would have been, and the few who came are not taken
	// for a service that is slow. 0 means unknown.
	turn atomic.Int64
	// median is of the latency.
	median atomic.Int64
}

func (p *pace) note(w *gradient.Window) {
	median, known := w.Latency.Quantile(0.5)
	if !known || w.Completed <= 0 {
		p.turn.Store(0)
		return
	}
	p.median.Store(int64(median))
	p.turn.Store(int64(w.InFlight * float64(w.Elapsed) / float64(w.Completed)))
}

// late reports whether an attempt that has to wait would not be done by the deadline.
func (l *Limiter) late(deadline time.Time) bool {
	turn := l.pace.turn.Load()
	if turn == 0 {
		return false
	}
	limit, inFlight := l.pool.Limit(), l.pool.InFlight()
	if inFlight < limit {
		return false // by and large it need not wait
	}
	waiting := l.pool.Waiting()
	if l.config.MaxWaiting != Unbounded && waiting >= l.config.MaxWaiting {
		return false // it is refused for that
	}
	position := waiting + 1 + inFlight - limit // so many must have ended before
	wait := float64(position) * float64(turn) / float64(limit)
	if after := l.config.LIFOAfter; after > 0 && wait > float64(after) {
		// The head of so long a queue has waited for about as long, and so the last comes
		// first.
		wait = float64(position-waiting) * float64(turn) / float64(limit)
	}
	return wait+float64(l.pace.median.Load()) > float64(time.Until(deadline))
}
