package limiter

// Kind says what an attempt is to the call that it belongs to.
type Kind uint8

const (
	// Primary is the first attempt of a call. It is the zero value.
	Primary Kind = iota
	// Hedge is a further attempt, started while an earlier one still runs. It
	// takes a permit only if one is free beyond the reserve, and teaches nothing.
	Hedge
	// Retry is an attempt started after one failed, with none running. To the
	// limiter it is a primary: somebody waits for it and has nothing else.
	Retry
	// Bypass is work whose latency says nothing about the other side, such as a
	// cache hit. It holds a permit like a primary and teaches nothing.
	Bypass

	// NumKinds is the number of kinds, for arrays indexed by Kind.
	NumKinds = 4
)

var kindNames = [NumKinds]string{"primary", "hedge", "retry", "bypass"}

// String returns the lower-case name of k, fit for a metric label. A value that
// is no kind is "invalid".
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return "invalid"
	}
	return kindNames[k]
}

// teaches reports whether attempts of this kind move the limit.
func (k Kind) teaches() bool { return k == Primary || k == Retry }
