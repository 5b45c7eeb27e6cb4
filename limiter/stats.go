package limiter

import (
	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/permit"
)

// rejection is why an attempt got no permit.
type rejection uint8

const (
	rejectedLimit rejection = iota
	rejectedQueueFull
	rejectedMaxWait
	rejectedDeadline
	rejectedClosed
	rejectedCanceled
	rejectedNot // under Config.Shadow: it got a permit all the same
	numRejections
)

// Rejections counts the attempts that got no permit, by reason.
type Rejections struct {
	// Limit: no permit was free, and the attempt could not wait.
	Limit uint64
	// QueueFull: as many as MaxWaiting were waiting.
	QueueFull uint64
	// MaxWait: the wait took too long.
	MaxWait uint64
	// Deadline: the attempt would have had to wait for so long that its deadline could
	// not be met; see Acquire.
	Deadline uint64
	// Closed: the limiter had been closed.
	Closed uint64
	// Canceled: the context ended before a permit was to be had. This is the
	// caller's doing, not the limiter's.
	Canceled uint64
}

// Stats is a snapshot of a limiter. The part that comes from the ledger is of one
// instant and obeys its identities; the rest is read beside it.
type Stats struct {
	// Name is the configured name.
	Name string
	// Ledger is the state of the permits.
	Ledger permit.Stats
	// Rejected counts the attempts that got no permit.
	Rejected Rejections
	// Shadowed counts the attempts that got a permit outside the limit, under
	// Config.Shadow. Ledger counts them with the others, so that InFlight may exceed Limit,
	// and is then of two instants, one of either sort.
	Shadowed uint64
	// Reason is why the limit is what it is, in the algorithm's own word.
	Reason gradient.Reason
	// Decisions counts the windows that have been decided, the first included.
	Decisions uint64
}

// Stats returns a snapshot. It never fails and may be called at any time, also
// after Close.
func (l *Limiter) Stats() Stats {
	reason, decisions := l.meter.reason()
	rejected := l.meter.rejections()
	return Stats{
		Name:   l.config.Name,
		Ledger: l.ledger(),
		Rejected: Rejections{
			Limit:     rejected[rejectedLimit],
			QueueFull: rejected[rejectedQueueFull],
			MaxWait:   rejected[rejectedMaxWait],
			Deadline:  rejected[rejectedDeadline],
			Closed:    rejected[rejectedClosed],
			Canceled:  rejected[rejectedCanceled],
		},
		Shadowed:  rejected[rejectedNot],
		Reason:    reason,
		Decisions: decisions,
	}
}
