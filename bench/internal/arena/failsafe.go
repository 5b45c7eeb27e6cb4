package arena

import (
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/holdfast-go/holdfast/permit"
)

// failsafe is the adaptive limiter of failsafe-go. It reads time.Now, so the bubble
// drives it as it drives ours.
//
// Aegis, the other well-known one, has no place here: it lets everything in while the
// CPU of its own process is below 80 %, which in a client it is.
type failsafe struct {
	limiter adaptivelimiter.AdaptiveLimiter[any]
	permits []adaptivelimiter.Permit // by call
}

func newFailsafe() Contender {
	return &failsafe{limiter: adaptivelimiter.NewWithDefaults[any]()}
}

func (f *failsafe) Acquire(_ time.Duration, call int) bool {
	p, ok := f.limiter.TryAcquirePermit()
	if ok {
		f.permits = grown(f.permits, call)
		f.permits[call] = p
	}
	return ok
}

func (f *failsafe) Release(_ time.Duration, call int, o permit.Outcome) {
	if o == permit.Success {
		f.permits[call].Record()
	} else {
		f.permits[call].Drop()
	}
	f.permits[call] = nil
}

func (f *failsafe) Limit() int { return f.limiter.Limit() }
