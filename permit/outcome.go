package permit

// Outcome is what a finished piece of work teaches whoever sets the limit. The
// ledger only counts outcomes; package limiter gives them their meaning.
type Outcome uint8

const (
	// Ignored teaches nothing. It is the zero value, so that work whose end is
	// not understood never moves a limit.
	Ignored Outcome = iota
	// Success: the work ended by itself and its latency is a full sample.
	Success
	// Overload: the other side refused the work, usually at once. It counts as
	// a drop; its latency says nothing about the service.
	Overload
	// Expired: the deadline passed while the permit was held. It counts as a
	// drop, and its latency is a lower bound.
	Expired
	// Canceled: somebody stopped the work before its end. Its latency is a
	// lower bound; it is no drop, since the other side is not to blame.
	Canceled

	// NumOutcomes is the number of outcomes, for arrays indexed by Outcome.
	NumOutcomes = 5
)

var outcomeNames = [NumOutcomes]string{"ignored", "success", "overload", "expired", "canceled"}

// String returns the lower-case name of o, fit for a metric label. A value that
// is no outcome is "invalid".
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return "invalid"
	}
	return outcomeNames[o]
}
