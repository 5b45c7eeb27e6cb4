package gradient

// idleness lowers a limit that has long been more than twice what is needed, so
// that a spike does not meet what another day had left.
type idleness struct {
	since float64 // when the limit was last needed; 0 = it is not known
	peak  int     // in flight since
}

const (
	idleSeconds  = 60 // without need until the first cut
	idleInterval = 6  // between cuts
)

// limit returns a lower limit if one is due.
func (i *idleness) limit(at float64, s sample, limit, initial float64) (float64, bool) {
	if i.since == 0 {
		i.since = at
	}
	i.peak = max(i.peak, s.peak)
	if at-i.since < idleSeconds {
		return limit, false
	}
	needed := max(initial, 2*float64(i.peak), 0.9*limit)
	i.peak = 0
	i.since = at - idleSeconds + idleInterval
	return min(limit, needed), needed < limit
}
