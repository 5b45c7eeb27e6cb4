package limiter

import "time"

// GrantedAt returns the time of Grant().At, without reading the clock. It is the zero
// Time for the zero Permit.
func (p Permit) GrantedAt() time.Time {
	if p.limiter == nil {
		return time.Time{}
	}
	return p.limiter.base.Add(p.permit.Grant().At)
}
