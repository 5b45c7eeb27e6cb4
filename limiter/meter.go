package limiter

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/permit"
)

// meter collects the statistics of one window after the other.
//
// A window lives through these states; all transitions are made under mu, and
// those marked * only by the holder of closing:
//
//	settling ──settleEnd reached──▶ open ──due, take*──▶ deciding ──put*──▶ settling or open
//
// While it decides, the next window is collecting already, in the other
// histogram. What came in before a new epoch is thrown away by put.
type meter struct {
	// closing is held from take to put, so that windows are decided one after
	// the other. It is taken before mu and before the lock of the pool. Only
	// TryLock is used: nobody ever waits for a decision.
	closing sync.Mutex

	mu sync.Mutex // a leaf
	// Guarded by mu.

	decision gradient.Decision // in force
	epoch    uint32            // attempts admitted in another one teach no latency
	settling bool
	settled  time.Duration // when settling ends
	start    time.Duration // of the window
	last     time.Duration // up to which integral is right; it never falls

	inFlight int     // begun and not ended; agrees with the pool when nothing moves
	integral float64 // ∫ inFlight dt since start, in permit·seconds

	maxInFlight       int
	admitted, refused int // primaries and retries
	completed         int // every kind and epoch; refusals by the other side left out
	drops             int
	saturated         bool
	latency           *gradient.Histogram // of this window
	spare             *gradient.Histogram // of the window being decided, or empty
	decided           gradient.Window     // handed to the algorithm; owned by the holder of closing
	histograms        [2]gradient.Histogram
	decisions         uint64
}

func (m *meter) init(first gradient.Decision) {
	m.latency, m.spare = &m.histograms[0], &m.histograms[1]
	m.enter(0, first)
}

// advance brings the integral up to now. Readings of several goroutines may come
// in out of order; a reading from the past adds nothing. mu must be held.
func (m *meter) advance(now time.Duration) {
	if m.settling && now >= m.settled {
		// Nothing has happened since m.last, so the window can begin in the past.
		m.settling = false
		m.last = max(m.last, m.settled)
		m.reset()
	}
	if now > m.last {
		m.integral += float64(m.inFlight) * (now - m.last).Seconds()
		m.last = now
	}
}

// reset begins a window at m.last. mu must be held.
func (m *meter) reset() {
	m.start = m.last
	m.integral = 0
	m.maxInFlight = m.inFlight
	m.admitted, m.refused, m.completed, m.drops = 0, 0, 0, 0
	m.saturated = false
	m.latency.Reset()
}

// enter puts a decision in force. mu must be held.
func (m *meter) enter(now time.Duration, d gradient.Decision) {
	m.decision = d
	m.decisions++
	m.settling = false
	if d.NewEpoch {
		m.epoch++
	}
	if d.Settle > 0 {
		m.settling = true
		m.settled = now + d.Settle
	}
	if d.NewEpoch || d.Settle > 0 {
		m.reset()
	}
}

// begin counts an attempt that has been granted a permit, and returns its epoch.
func (m *meter) begin(kind Kind, grant permit.Grant) uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(grant.At)
	m.inFlight++
	m.maxInFlight = max(m.maxInFlight, m.inFlight)
	if kind.teaches() {
		m.admitted++
		// A hedge in the last place is no sign that the limit is too small.
		m.saturated = m.saturated || grant.Waited || grant.InFlight >= grant.Limit
	}
	return m.epoch
}

// refuse counts a primary that was turned away.
func (m *meter) refuse(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.refused++
	m.saturated = true
}

// forget takes n attempts out whose permits were lost and given back.
func (m *meter) forget(now time.Duration, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.inFlight -= n
}

// end counts an attempt whose permit has been released.
func (m *meter) end(now time.Duration, epoch uint32, kind Kind, o permit.Outcome, latency time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.inFlight--
	if o != permit.Overload {
		m.completed++
	}
	if !kind.teaches() || epoch != m.epoch {
		return
	}
	switch o {
	case permit.Success:
		m.latency.Add(latency)
	case permit.Overload:
		m.drops++
	case permit.Expired:
		m.drops++
		m.latency.AddCensored(latency)
	case permit.Canceled:
		m.latency.AddCensored(latency)
	case permit.Ignored:
	}
}

// due reports whether the window may be closed.
func (m *meter) due(now time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	return m.dueLocked()
}

func (m *meter) dueLocked() bool {
	// A window that still settles is closed only by a burst of drops.
	if m.settling && m.drops < earlyDrops {
		return false
	}
	return m.decision.Due(m.last-m.start, m.latency.Count(), m.drops)
}

// earlyDrops is how many drops end even a window that settles: an outage must
// not hide behind the settling time.
const earlyDrops = 5

// take closes the window if it is still due and begins the next one. The result
// is valid until the holder of closing lets go.
func (m *meter) take(now time.Duration, limit int) (*gradient.Window, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	if !m.dueLocked() {
		return nil, false
	}
	elapsed := m.last - m.start
	mean := float64(m.inFlight)
	if elapsed > 0 {
		mean = m.integral / elapsed.Seconds()
	}
	m.decided = gradient.Window{
		Limit:       limit,
		Elapsed:     elapsed,
		InFlight:    mean,
		MaxInFlight: m.maxInFlight,
		Admitted:    m.admitted,
		Refused:     m.refused,
		Completed:   m.completed,
		Drops:       m.drops,
		Saturated:   m.saturated,
		Latency:     m.latency,
	}
	m.latency, m.spare = m.spare, m.latency
	m.reset()
	return &m.decided, true
}

// put ends the state that take began, with the decision that came of it.
func (m *meter) put(now time.Duration, d gradient.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.enter(m.last, d)
}

// reason returns why the limit is what it is, and how many decisions were made.
func (m *meter) reason() (gradient.Reason, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.decision.Reason, m.decisions
}
