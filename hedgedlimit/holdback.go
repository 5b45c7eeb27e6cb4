package hedgedlimit

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

const (
	// armSamples is how many calls each of the two windows of an arm keeps: enough for
	// ten beyond the 99.9th percentile.
	armSamples = 10_000
	// armEnough is what an arm needs before an old window may be put aside.
	armEnough = 1000
)

// Arm is one side of the comparison that Config.Holdback makes. Its quantiles are of
// the recent calls, from the grant of the primary's permit to the answer, a call that
// failed or whose context ended being only a lower bound. One that is not known is 0.
type Arm struct {
	// Calls counts those that were decided, Failed those that returned no result or one
	// that was marked as failed.
	Calls, Failed       uint64
	P50, P95, P99, P999 time.Duration
}

// holdback compares the calls that are held back with the others.
type holdback struct {
	mu sync.Mutex // a leaf
	// Guarded by mu.

	held, others arm
}

type arm struct {
	window        window
	calls, failed uint64
}

// observe takes a call that was decided at now. A call that its caller cancelled says
// nothing about either side, but that it took as long as it did.
func (b *holdback) observe(held bool, now, granted time.Time, d decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &b.others
	if held {
		a = &b.held
	}
	a.calls++
	failed := d.winner == nil || d.winner.marked
	if failed {
		a.failed++
	}
	a.window.add(now, now.Sub(granted), failed, armSamples, armEnough)
}

func (b *holdback) stats() (held, others Arm) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held.stats(), b.others.stats()
}

func (a *arm) stats() Arm {
	var all gradient.Histogram
	a.window.merge(&all)
	quantile := func(q float64) time.Duration {
		d, _ := all.Quantile(q)
		return d
	}
	return Arm{
		Calls: a.calls, Failed: a.failed,
		P50: quantile(0.5), P95: quantile(0.95), P99: quantile(0.99), P999: quantile(0.999),
	}
}
