package httpmw_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/httpmw"
)

// Clients that leave before they are answered teach lower bounds only. At twice the
// capacity they must not hold the limit where nobody is answered in time any more: a
// server with four workers of 20 ms goes on to answer most of what it can.
func TestClientsThatLeaveAreNoCollapse(t *testing.T) {
	for name, row := range map[string]struct {
		patience time.Duration
		header   bool // the patience is told beforehand
	}{
		"60 ms":         {patience: 60 * time.Millisecond},
		"100 ms":        {patience: 100 * time.Millisecond},
		"60 ms, header": {patience: 60 * time.Millisecond, header: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			workers := make(chan struct{}, 4)
			h := limited(t, func(_ http.ResponseWriter, r *http.Request) {
				select {
				case workers <- struct{}{}:
				case <-r.Context().Done():
					return
				}
				time.Sleep(20 * time.Millisecond)
				<-workers
			}, httpmw.DeadlineFromHeader(time.Minute))
			var good atomic.Int64
			ask := func() {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r := incoming(ctx)
				if row.header {
					r.Header.Set(httpmw.TimeoutHeader, strconv.FormatInt(row.patience.Milliseconds(), 10))
				} else {
					defer time.AfterFunc(row.patience, leave).Stop()
				}
				begun := time.Now()
				if statusOf(h, r) == http.StatusOK && time.Since(begun) < row.patience {
					good.Add(1)
				}
			}
			second := func(rate int) {
				for range rate {
					go ask()
					time.Sleep(time.Second / time.Duration(rate))
				}
			}
			for range 10 {
				second(100)
			}
			for range 5 {
				second(400)
			}
			good.Store(0)
			const seconds = 10
			for range seconds {
				second(400)
			}
			if n := good.Load() / seconds; n < 120 {
				t.Errorf("%s: %d a second in time, of 200 that it can do, at a limit of %d", name, n, h.Stats().Limiter.Ledger.Limit)
			}
			time.Sleep(time.Minute)
		})
	}
}
