package limiter

import "time"

// Entered returns what the meter has taken in of attempts: how many of them are in
// flight, and the time that those which have ended were, if none is.
func (l *Limiter) Entered() (inFlight int, area time.Duration) {
	m := &l.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	out, times := m.out, m.times
	for i := range m.cells {
		c := &m.cells[i]
		c.mu.Lock()
		out += c.out
		times += c.times
		c.mu.Unlock()
	}
	return out, time.Duration(times)
}

// Cells is how many cells the meter has.
func (l *Limiter) Cells() int { return len(l.meter.cells) }
