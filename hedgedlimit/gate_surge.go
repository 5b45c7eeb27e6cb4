package hedgedlimit

import (
	"math"
	"time"
)

const (
	// surgeMemory is the time constant of the mean that a surge is measured by.
	surgeMemory = 10 * time.Second
	// surgeFactor: one stalled replica of four triples the work in flight at 30 to
	// 60 % load, which hedges are for; an overload passes it in less than 0.4 s.
	surgeFactor = 3
	// surgeLeast lets a service with little traffic hedge at all.
	surgeLeast = 10
	// recentMemory is the time constant of the mean that tells whether there is room.
	recentMemory = 500 * time.Millisecond
	// loadEvery is how often the work in flight is looked at: a hundred times in the
	// shorter time constant. More often it would only cost.
	loadEvery = 5 * time.Millisecond
	// meaningfulLimit: a limit of more than so many times the traffic is no estimate
	// of what the service can take, but a way of saying that there is none. The
	// margins that were measured lie between 3 and 10.
	meaningfulLimit = 20
)

// load smooths the work in flight. It has no lock and no clock; zero is ready.
type load struct {
	last         time.Time
	mean, recent float64 // with the two time constants
}

// see takes the work in flight at the start of a primary. Starts see time averages
// if calls do not come in step with each other.
func (l *load) see(now time.Time, inFlight int) {
	x := float64(inFlight)
	if l.last.IsZero() {
		l.last, l.mean, l.recent = now, x, x
		return
	}
	passed := now.Sub(l.last)
	if passed < loadEvery {
		return
	}
	l.last = now
	l.mean += (x - l.mean) * -math.Expm1(-passed.Seconds()/surgeMemory.Seconds())
	l.recent += (x - l.recent) * -math.Expm1(-passed.Seconds()/recentMemory.Seconds())
}

// limited reports whether a limit means anything for traffic such as this.
func (l *load) limited(limit int) bool {
	return float64(limit) <= meaningfulLimit*max(surgeLeast, l.mean)
}

// surge reports whether one more in flight would be far above what is usual. Below
// half of a limit there is room by definition. It acts within tens of ms of an
// overload, when all that learns from answers is blind.
func (l *load) surge(inFlight, limit int) bool {
	ceiling := max(surgeLeast, surgeFactor*l.mean)
	if l.limited(limit) {
		ceiling = max(ceiling, float64(limit)/2)
	}
	return float64(inFlight+1) > ceiling
}

// rise is how fast the baseline of the congestion may rise, a second.
func (l *load) rise(limit int) float64 {
	switch {
	case !l.limited(limit):
		return baselineUnlimited
	case l.recent <= float64(limit)/2:
		return baselineRoom
	}
	return baselineBusy
}
