package limiter_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Field case B31: latencies read from a clock that ticks every 15 ms, of a service of
// 3 ms, are zero four times of five. The limit settles within 30 % of that of a clock
// that is exact.
func TestLatenciesOfACoarseClock(t *testing.T) {
	settled := func(tick time.Duration) (mean float64) {
		synctest.Test(t, func(t *testing.T) {
			l := limitedBy(t, algorithms(t)["gradient"], limiter.Config{OnPanic: func(v any, _ []byte) { t.Error(v) }})
			origin := time.Now()
			read := func() time.Duration { return time.Since(origin) / tick * tick }
			servers := make(chan struct{}, 40) // of the other side
			ctx, stop := context.WithCancel(t.Context())
			for i := range 100 {
				go func() {
					r := rand.New(rand.NewPCG(1, uint64(i)))
					for ctx.Err() == nil {
						p, ok := l.TryAcquire(limiter.Primary)
						if !ok {
							time.Sleep(time.Millisecond + time.Duration(r.IntN(1000))*time.Microsecond)
							continue
						}
						start := read()
						servers <- struct{}{}
						time.Sleep(2700*time.Microsecond + time.Duration(r.IntN(600))*time.Microsecond)
						<-servers
						p.ReleaseAfter(permit.Success, read()-start)
					}
				}()
			}
			time.Sleep(10 * time.Second)
			const readings = 100
			for range readings {
				time.Sleep(100 * time.Millisecond)
				if n := l.Limit(); n < 1 || n > 1000 {
					t.Errorf("limit %d", n)
				}
				mean += float64(l.Limit()) / readings
			}
			stop()
			time.Sleep(time.Second)
			if l.InFlight() != 0 {
				t.Errorf("in flight %d", l.InFlight())
			}
		})
		return mean
	}
	fine, coarse := settled(time.Nanosecond), settled(15*time.Millisecond)
	t.Logf("the limit settles at %.1f, and at %.1f with a coarse clock", fine, coarse)
	if coarse < 0.7*fine || coarse > 1.3*fine {
		t.Errorf("the limit settles at %.1f, and at %.1f with a coarse clock", fine, coarse)
	}
}
