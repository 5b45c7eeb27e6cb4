package hedgedlimit

import "time"

// Observe shows a delay the latency of a primary, as the end of one does.
func Observe(d Delay, now time.Time, latency time.Duration, censored bool) {
	d.observe(now, latency, censored)
}

// Next returns the delay of the first hedge, if one is known.
func Next(d Delay, now time.Time) (time.Duration, bool) { return d.next(now, 1) }

// Expected returns the usual latency, if it is known.
func Expected(d Delay) (time.Duration, bool) { return d.expected() }

// Keys returns how many keys a delay made by PerKey keeps.
func Keys(d Delay) int {
	p := d.(*perKey)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byKey) != p.recent.Len() {
		panic("the map and the list differ")
	}
	return len(p.byKey)
}

// SameRecord reports whether two attempts were of calls that used one record, one after
// the other.
func SameRecord(a, b Attempt) bool { return a.attempt.call == b.attempt.call }
