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
