package limiter

import (
	"math"
	"sync"
	"sync/atomic"
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
//
// # Cells
//
// What happens is entered in cells (cell.go), and collected under mu now and then. An event
// is entered in one critical section of one cell, and collect moves what it finds in
// another, so that each event is in one window: the one that is collecting when its cell
// is collected next. The cells are not collected in the same instant, so a window has
// no sharp edge where much happens at once; but nothing falls between two.
//
// # In flight
//
// The mean in flight needs no ticking integral. With F(t) the time that all attempts
// have spent in flight until t,
//
//	F(t) = Σ ended (end − grant) + Σ in flight (t − grant)
//	     = Σ times + t · Σ out
//
// and a window from s to e has the mean (F(e) − F(s)) / (e − s), whatever began before s or
// goes on after e. An event that is entered late is missing from one F and is in the
// next, and F adds up again.
//
// The sum of the grants could be had from the ledger when a window is closed, and a grant
// would enter nothing: some 14 ns less of 130. But the ledger knows the time of a grant
// to a millisecond only, a service of less would be measured wrongly, and the books would
// have to stand still to be read. Two atomic additions in place of a cell's lock cost as
// much as the lock, and a reader might find one without the other.
type meter struct {
	// closing is held from take to put, so that windows are decided one after
	// the other. It is taken before mu and before the lock of the pool. Only
	// TryLock is used: nobody ever waits for a decision.
	closing sync.Mutex
	// asked tells that somebody wants the window closed who may have found closing
	// taken. It is set before TryLock and cleared by the holder before it collects:
	// either the holder collects what the other had entered, or finds asked set again
	// once it has let go.
	asked atomic.Bool

	// Immutable after init.
	cells     []cell
	cellShift uint

	_ [64]byte // what follows is read at every step and seldom written

	// Atomic; written under mu.

	// epoch is that of the attempts that begin. It is raised before the cells are
	// emptied for the new epoch, and read under the mu of a cell: whoever still finds the
	// old one there has entered before that cell is emptied.
	epoch atomic.Uint32
	// opens is when settling ends, and never if it has.
	opens atomic.Int64
	// The window cannot be due, but for drops, before the time looks, unless some cell
	// has taught it quota latencies since the last collect. See planLocked.
	looks, quota atomic.Int64

	_ [64]byte

	mu sync.Mutex // taken before that of a cell; no foreign code runs under it but Due
	// Guarded by mu.

	decision gradient.Decision // in force
	settling bool
	start    time.Duration // of the window; it never falls

	// Of all attempts ever, as far as collected; see cell.
	out   int
	times int64
	area  int64 // F(start)

	// Of this window, as far as collected.
	maxInFlight       int
	admitted, refused int // primaries and retries
	waited            int // of the admitted, who had to
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
	m.cells, m.cellShift = newCells()
	m.latency, m.spare = &m.histograms[0], &m.histograms[1]
	m.enterLocked(0, first)
}

// begin counts an attempt that has been granted a permit, when so many were in flight in
// all, and returns its epoch.
func (m *meter) begin(kind Kind, grant permit.Grant, inFlight int) uint32 {
	m.open(grant.At)
	c := m.cell()
	c.mu.Lock()
	c.begin(kind, grant, inFlight)
	epoch := m.epoch.Load()
	c.mu.Unlock()
	c.readAgain()
	return epoch
}

// end counts an attempt whose permit has been released. It reports whether the window
// may be due.
func (m *meter) end(now time.Duration, of mark, o permit.Outcome, latency time.Duration) bool {
	m.open(now)
	c := m.cell()
	c.mu.Lock()
	for c.n == pending {
		c.mu.Unlock()
		m.mu.Lock()
		m.flushLocked(c)
		m.mu.Unlock()
		c.mu.Lock()
	}
	c.leave(now, 1)
	if o != permit.Overload {
		c.completed++
	}
	drops := c.drops
	if of.teaches() && of.epoch() == m.epoch.Load() {
		c.teach(o, latency)
	}
	look := c.drops != drops || int64(c.taught) >= m.quota.Load()
	half := c.n == pending/2
	c.mu.Unlock()
	c.readAgain()
	if half && m.mu.TryLock() { // so that hardly anybody has to wait for room
		m.flushLocked(c)
		m.mu.Unlock()
	}
	return look || m.mayBeDue(now)
}

// forget takes n attempts out whose permits were lost and given back.
func (m *meter) forget(now time.Duration, n int) {
	m.open(now)
	c := m.cell()
	c.mu.Lock()
	c.leave(now, n)
	c.mu.Unlock()
}

// mayBeDue reports whether the window may be due at a time when nothing new has been
// learnt.
func (m *meter) mayBeDue(now time.Duration) bool { return int64(now) >= m.looks.Load() }

// open begins the window if settling has ended. Who enters an event calls it first.
func (m *meter) open(now time.Duration) {
	if int64(now) < m.opens.Load() {
		return
	}
	m.mu.Lock()
	m.openLocked(now)
	m.mu.Unlock()
}

// openLocked is open. mu must be held, as for all that follow.
func (m *meter) openLocked(now time.Duration) {
	at := m.opens.Load()
	if !m.settling || int64(now) < at {
		return
	}
	// Whoever enters what happened later comes through here first, so the window can
	// begin in the past.
	m.settling = false
	m.opens.Store(never)
	m.resetLocked(time.Duration(at))
	m.planLocked(now)
}

// collectLocked empties all cells into the window.
func (m *meter) collectLocked() {
	for i := range m.cells {
		c := &m.cells[i]
		c.mu.Lock()
		m.out += c.out
		m.times += c.times
		m.admitted += c.admitted
		m.waited += c.waited
		m.completed += c.completed
		m.drops += c.drops
		m.maxInFlight = max(m.maxInFlight, c.maxInFlight)
		m.saturated = m.saturated || c.saturated
		c.out, c.times, c.admitted, c.waited, c.completed, c.drops, c.maxInFlight, c.saturated = 0, 0, 0, 0, 0, 0, 0, false
		c.taught = 0
		m.emptyLocked(c)
		c.mu.Unlock()
		refused := c.refused() // they know no lock
		m.refused += int(refused - c.collected)
		c.collected = refused
	}
	m.saturated = m.saturated || m.refused > 0
}

// flushLocked makes room for latencies in a cell.
func (m *meter) flushLocked(c *cell) {
	c.mu.Lock()
	m.emptyLocked(c)
	c.mu.Unlock()
}

// emptyLocked puts the latencies of a cell into the histogram. The mu of the cell must
// be held too.
func (m *meter) emptyLocked(c *cell) {
	for _, l := range c.latencies[:c.n] {
		if l < 0 {
			m.latency.AddCensored(time.Duration(^l))
		} else {
			m.latency.Add(time.Duration(l))
		}
	}
	c.n = 0
}

// areaLocked is F(at), as far as collected. It wraps, and differences of it do not.
func (m *meter) areaLocked(at time.Duration) int64 { return m.times + int64(at)*int64(m.out) }

// resetLocked begins a window, and throws away what was entered until now.
func (m *meter) resetLocked(at time.Duration) {
	m.collectLocked()
	m.beginLocked(at)
}

// beginLocked begins a window behind what has been collected.
func (m *meter) beginLocked(at time.Duration) {
	m.start = max(m.start, at)
	m.area = m.areaLocked(m.start)
	m.maxInFlight = max(m.out, 0)
	m.admitted, m.waited, m.refused, m.completed, m.drops = 0, 0, 0, 0, 0
	m.saturated = false
	m.latency.Reset()
}

// enterLocked puts a decision in force.
func (m *meter) enterLocked(now time.Duration, d gradient.Decision) {
	m.decision = d
	m.decisions++
	m.settling = false
	m.opens.Store(never)
	if d.NewEpoch {
		m.epoch.Add(1)
	}
	if d.NewEpoch || d.Settle > 0 {
		m.resetLocked(now)
	}
	if d.Settle > 0 {
		m.settling = true
		m.opens.Store(int64(after(m.start, d.Settle)))
	}
	m.planLocked(now)
}

func (m *meter) dueLocked(elapsed time.Duration) bool {
	// A window that still settles is closed only by a burst of drops.
	if m.settling && m.drops < earlyDrops {
		return false
	}
	return m.decision.Due(elapsed, m.latency.Count(), m.drops)
}

// earlyDrops is how many drops end even a window that settles: an outage must
// not hide behind the settling time.
const earlyDrops = 5

// planLocked works out when it is worth looking whether the window is due, from what has
// been collected: nobody else adds up the cells. Each drop has a look taken. Without
// drops, Due asks for a number of latencies, and for the fewer the older the window
// is; drops may spare it them, and no more. So it is enough to look
//
//   - when the window is old enough for one latency fewer than it asks for now, and
//   - when as many latencies as are missing now may have come in. They have not before
//     some cell has its share of them.
func (m *meter) planLocked(now time.Duration) {
	elapsed := max(now-m.start, 0)
	n := int64(m.latency.Count())
	due := func(elapsed, samples int64) bool {
		return m.decision.Due(time.Duration(elapsed), int(min(samples, math.MaxInt)), 0)
	}
	looks, quota := int64(never), int64(never)
	switch {
	case m.settling && m.drops < earlyDrops:
		// Only drops end it.
	case m.dueLocked(elapsed):
		looks = 0
	case !due(int64(elapsed), never):
		// Too young, whatever comes in.
		looks = least(int64(elapsed), func(e int64) bool { return due(e, never) })
	default:
		need := least(n, func(n int64) bool { return due(int64(elapsed), n) })
		cells := int64(len(m.cells))
		quota = (need - n + cells - 1) / cells
		looks = least(int64(elapsed), func(e int64) bool { return due(e, need-1) })
	}
	if looks != 0 {
		looks = int64(after(m.start, time.Duration(looks)))
	}
	m.looks.Store(looks)
	m.quota.Store(quota)
}

// take closes the window if it is due and begins the next one. The result is valid
// until the holder of closing lets go.
func (m *meter) take(now time.Duration, limit int) (*gradient.Window, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.openLocked(now)
	m.asked.Store(false)
	m.collectLocked()
	now = max(now, m.start) // readings of several goroutines may come in out of order
	elapsed := now - m.start
	if !m.dueLocked(elapsed) {
		m.planLocked(now)
		return nil, false
	}
	mean := float64(max(m.out, 0))
	if elapsed > 0 {
		mean = float64(m.areaLocked(now)-m.area) / float64(elapsed)
		// One that was entered late may weigh more than a window that is very short.
		mean = min(max(mean, 0), float64(m.maxInFlight))
	}
	m.decided = gradient.Window{
		Limit:       limit,
		Elapsed:     elapsed,
		InFlight:    mean,
		MaxInFlight: m.maxInFlight,
		Admitted:    m.admitted,
		Refused:     m.refused,
		Waited:      m.waited,
		Completed:   m.completed,
		Drops:       m.drops,
		Saturated:   m.saturated,
		Latency:     m.latency,
	}
	m.latency, m.spare = m.spare, m.latency
	m.beginLocked(now)
	m.planLocked(now)
	return &m.decided, true
}

// put ends the state that take began, with the decision that came of it.
func (m *meter) put(now time.Duration, d gradient.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.openLocked(now)
	m.enterLocked(max(now, m.start), d)
}

// reason returns why the limit is what it is, and how many decisions were made.
func (m *meter) reason() (gradient.Reason, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.decision.Reason, m.decisions
}

// rejections adds up the refusals of all cells.
func (m *meter) rejections() (sum [numRejections]uint64) {
	for i := range m.cells {
		for _, of := range [2]*[numRejections]atomic.Uint64{&m.cells[i].rejected[0], &m.cells[i].rejected[1]} {
			for reason := range of {
				sum[reason] += of[reason].Load()
			}
		}
	}
	return sum
}
