package limiter

import (
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// A Permit is the right of one attempt to run. Like permit.Permit it may be
// copied, the first release through any copy counts, and the zero value does
// nothing. All methods may be called from any goroutine.
type Permit struct {
	limiter *Limiter
	permit  permit.Permit
	mark    mark
}

// mark is the epoch and the kind of an attempt, and whether it runs outside the limit,
// in one word.
type mark uint64

const outside mark = 1 << 7

func newMark(kind Kind, epoch uint32) mark { return mark(epoch)<<8 | mark(kind) }

func (m mark) kind() Kind { return Kind(m &^ outside) }

func (m mark) teaches() bool { return m&outside == 0 && m.kind().teaches() }

func (m mark) epoch() uint32 { return uint32(m >> 8) }

// Release ends the permit with the outcome o and reports whether this call did
// so. The time since the grant is the attempt's latency. It must be called when
// the work has ended, and not before.
func (p Permit) Release(o permit.Outcome) bool {
	if p.limiter == nil {
		return false
	}
	now := p.limiter.since()
	return p.release(now, o, now-p.permit.Grant().At)
}

// ReleaseAfter is Release for work that answered before it ended, such as a
// response whose body was still being read: the limit learns from latency, which
// is measured from the grant, while the permit was held until now. A negative
// latency counts as 0.
func (p Permit) ReleaseAfter(o permit.Outcome, latency time.Duration) bool {
	if p.limiter == nil {
		return false
	}
	return p.release(p.limiter.since(), o, latency)
}

// release takes the time from before the release, so that one reading of the clock does
// for the latency and for the end.
func (p Permit) release(now time.Duration, o permit.Outcome, latency time.Duration) bool {
	l := p.limiter
	// The ledger decides whether this release is the one that counts; only then
	// does it teach. The window sees the attempt for an instant longer than the
	// ledger, which is the harmless direction.
	if !p.permit.Release(o) {
		return false
	}
	due := l.meter.end(now, p.mark, o, latency)
	if l.sampler != nil {
		l.sample(p, o, latency) // before the window that the call is in may be closed
	}
	if due {
		l.closeWindow(now)
	}
	return true
}

// Abandon notes that nobody waits for the attempt any more. It stays in flight,
// counted as overhang, until it is released.
func (p Permit) Abandon() { p.permit.Abandon() }

// Held reports whether the permit has been granted and not yet released.
func (p Permit) Held() bool { return p.permit.Held() }

// Grant tells what the ledger showed in the instant of the grant. It stays so after
// the release.
func (p Permit) Grant() permit.Grant { return p.permit.Grant() }

// Kind returns what the permit was taken for.
func (p Permit) Kind() Kind { return p.mark.kind() }
