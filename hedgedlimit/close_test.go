package hedgedlimit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Close lets running calls come to their end, waits for their losers and their Holds,
// and lets none begin. The limiter is others' too.
func TestCloseWaitsForLosersAndHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{})
		start := time.Now()
		_, err := hedgedlimit.Do(t.Context(), h, func(_ context.Context, a hedgedlimit.Attempt) (int, error) {
			if a.Number() == 1 {
				time.Sleep(200 * ms) // a loser
				return 1, nil
			}
			release := a.Hold()
			time.AfterFunc(500*ms, func() { release(permit.Success) })
			return 2, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		go run(t, t.Context(), h, want{result: 1, at: 20 * ms, started: []time.Duration{0}}, step{takes: 20 * ms})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		if err := h.Close(ctx); err != context.DeadlineExceeded || time.Since(start) != 150*ms { //nolint:errorlint // bare
			t.Errorf("Close returned %v after %v", err, time.Since(start))
		}
		if _, err := hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) {
			t.Error("a call of a closed hedger ran")
			return 0, nil
		}); err != limiter.ErrClosed { //nolint:errorlint // bare
			t.Errorf("Do returned %v", err)
		}
		for range 2 {
			if err := h.Close(t.Context()); err != nil || time.Since(start) != 550*ms {
				t.Errorf("Close returned %v after %v", err, time.Since(start))
			}
		}
		if p, ok := h.Limiter().TryAcquire(limiter.Primary); !ok {
			t.Error("the limiter is closed")
		} else {
			p.Release(permit.Success)
		}
		probe(t, h)
	})
}

func TestCloseOfAnIdleHedgerReturnsAtOnce(t *testing.T) {
	h := newHedger(t, hedgedlimit.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := h.Close(ctx); err != nil {
			t.Errorf("Close returned %v", err)
		}
	}
}

// However calls and Close meet, Close returns when the last call is over, and no call
// begins after that.
func TestCloseAmongCalls(t *testing.T) {
	for range 200 {
		h := newHedger(t, hedgedlimit.Config{Limiter: newLimiter(t, 100, limiter.Config{})})
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				<-begin
				for {
					_, err := hedgedlimit.Do(context.Background(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return 0, nil })
					if err != nil {
						if err != limiter.ErrClosed { //nolint:errorlint // bare
							t.Error(err)
						}
						return
					}
				}
			})
		}
		wg.Go(func() {
			<-begin
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if n := h.Limiter().InFlight(); n != 0 {
				t.Errorf("%d in flight after Close", n)
			}
		})
		close(begin)
		wg.Wait()
		identities(t, h.Stats())
	}
}
