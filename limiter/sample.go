package limiter

import (
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// sample tells an algorithm that learns from single calls of one that has ended. It must
// be called without locks.
//
// A Sampler may be told of many calls at once, and sees to that itself: only it knows
// how much of its work needs a lock, and what a lock costs here every other algorithm
// would pay.
//
// A call of an earlier epoch is left out, as it is from the windows. So is one that was
// cancelled: its latency is a lower bound, and a Sampler has no way to say so.
func (l *Limiter) sample(p Permit, o permit.Outcome, latency time.Duration) {
	if !p.mark.teaches() || p.mark.epoch() != l.meter.epoch.Load() {
		return
	}
	dropped := o == permit.Overload || o == permit.Expired
	if !dropped && o != permit.Success {
		return
	}
	defer l.catch()
	grant := p.permit.Grant()
	l.sampler.Sample(grant.At, max(latency, 0), grant.InFlight, dropped)
}
