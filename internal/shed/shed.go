// Package shed bounds the extra attempts, hedges and retries, that a server lets in,
// as a share of the requests of the last ten seconds. It does no more than count: who is
// an extra attempt, and whether there is room for it, is for its users to say.
package shed

import (
	"math"
	"sync"
	"time"
)

const (
	// Ten seconds are what Finagle's retry budget remembers: long enough that a tenth
	// means something at a few requests a second, short enough that what calm traffic has
	// earned does not feed a storm.
	window = 10 * time.Second
	// It is made of slots and moves on by one at a time, so that it reaches back between
	// window−slot and window.
	slots = 20
	slot  = window / slots

	// million is the unit of a share. Whole numbers keep the account exact: a tenth of
	// thirty is three, and not a little less.
	million = 1_000_000
)

// A Shedder counts primaries and extra attempts, and says no to an extra that would be
// one too many: those let in are at most the floor, or at most the ratio of all that
// came in with them, whichever is more. Primaries are counted when they come, whether or
// not they are served; extras that were refused are not counted, so that a storm of them
// earns nothing.
//
// It has no clock and no goroutine, and allocates nothing. All methods may be called from
// any number of goroutines. Time should be monotonic: while it stands before the latest
// that was seen, all is counted as of the latest slot, and nothing is forgotten.
//
// A call costs one lock and two additions: BenchmarkShedder.
type Shedder struct {
	// Immutable after New.
	share int64 // in millionths
	floor int64

	mu sync.Mutex
	// Guarded by mu.
	began bool
	base  time.Time // of the first call; the number of a slot is counted from here
	at    Ticket    // the newest slot
	ring  [slots]counts
	// Invariant: total is the sum of ring, and ring[i] is of the one slot in
	// (at−slots, at] whose remainder by slots is i.
	total counts
}

type counts struct{ primaries, extras int64 }

// A Ticket is what an extra that was let in may be taken back with.
type Ticket int64

// New returns a Shedder that lets in floor extras a window in any case, and beyond that
// a share of ratio, which must lie between 0 and 1, of all requests. At 1 it says yes
// always.
func New(ratio float64, floor int) *Shedder {
	return &Shedder{share: int64(math.Round(ratio * million)), floor: int64(floor)}
}

// Primary counts a first attempt. It is never refused.
func (s *Shedder) Primary(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advanceLocked(now)
	s.ring[s.at%slots].primaries++
	s.total.primaries++
}

// Extra asks for one extra attempt, and counts it if it says yes.
func (s *Shedder) Extra(now time.Time) (Ticket, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advanceLocked(now)
	extras := s.total.extras + 1
	if extras > s.floor && extras*million > s.share*(s.total.primaries+extras) {
		return 0, false
	}
	s.ring[s.at%slots].extras++
	s.total.extras = extras
	return s.at, true
}

// Refund takes back an extra that was let in and was not served after all. It must be
// called at most once for each yes of Extra.
func (s *Shedder) Refund(t Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t <= s.at-slots {
		return // forgotten by now
	}
	s.ring[t%slots].extras--
	s.total.extras--
}

// advanceLocked forgets what the window has left behind. s.mu must be held.
func (s *Shedder) advanceLocked(now time.Time) {
	if !s.began {
		s.began, s.base = true, now
	}
	at := Ticket(now.Sub(s.base) / slot)
	if at-s.at >= slots {
		s.ring, s.total, s.at = [slots]counts{}, counts{}, at
		return
	}
	for s.at < at {
		s.at++
		old := &s.ring[s.at%slots]
		s.total.primaries -= old.primaries
		s.total.extras -= old.extras
		*old = counts{}
	}
}
