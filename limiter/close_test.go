package limiter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// shut checks that a limiter lets nobody in, whatever for, and is empty.
func shut(t testing.TB, l *limiter.Limiter) {
	t.Helper()
	if s := l.Stats().Ledger; !s.Closed || s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("not closed and empty: %+v", s)
	}
	for kind := range limiter.Kind(limiter.NumKinds) {
		if _, ok := l.TryAcquire(kind); ok {
			t.Errorf("TryAcquire(%v) after Close", kind)
		}
		if _, err := l.Acquire(context.Background(), kind); kind != limiter.Hedge && !errors.Is(err, limiter.ErrClosed) || err == nil {
			t.Errorf("Acquire(%v) after Close: %v", kind, err)
		}
	}
	if err := l.Do(context.Background(), func(context.Context) error { return nil }); err != limiter.ErrClosed { //nolint:errorlint // the bare sentinel is the claim
		t.Errorf("Do after Close: %v", err)
	}
}

func TestCloseWakesCallersAndDrainsWork(t *testing.T) {
	for name, config := range map[string]limiter.Config{
		"unbounded": {MaxWaiting: limiter.Unbounded}, "bounded": {MaxWaiting: 9}, "for a while": {MaxWaiting: 9, MaxWait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, config)
				start := time.Now()
				go func() { // deaf: Close does not stop it
					err := l.Do(t.Context(), func(context.Context) error { time.Sleep(time.Minute); return nil })
					if err != nil {
						t.Errorf("the work that ran: %v", err)
					}
				}()
				synctest.Wait()
				refused := make(chan error, 5)
				for range 5 {
					go func() {
						refused <- l.Do(t.Context(), func(context.Context) error { t.Error("it ran after Close"); return nil })
					}()
				}
				synctest.Wait()
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := l.Close(ended); !errors.Is(err, context.Canceled) {
					t.Errorf("Close with an ended context: %v", err)
				}
				synctest.Wait()
				if len(refused) != 5 || l.InFlight() != 1 {
					t.Errorf("%d callers were woken, in flight %d", len(refused), l.InFlight())
				}
				for range len(refused) {
					if err := <-refused; err != limiter.ErrClosed { //nolint:errorlint // the bare sentinel is the claim
						t.Errorf("a caller who waited: %v", err)
					}
				}
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := l.Close(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
					t.Errorf("Close for a second: %v after %v", err, time.Since(start))
				}
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() {
						if err := l.Close(t.Context()); err != nil || time.Since(start) != time.Minute {
							t.Errorf("Close: %v after %v", err, time.Since(start))
						}
					})
				}
				both.Wait()
				if err := l.Close(ended); err != nil {
					t.Errorf("Close of a closed limiter at rest: %v", err)
				}
				if s := l.Stats(); s.Rejected.Closed != 5 || s.Ledger.Released[permit.Success] != 1 {
					t.Errorf("%+v", s)
				}
				shut(t, l)
			})
		})
	}
}

// A permit that is released after Close teaches as ever, may move the limit, and lets
// nobody in.
func TestReleaseAfterCloseStillCounts(t *testing.T) {
	b := &between{limits: []int{1, 50}}
	l := limitedBy(t, b, limiter.Config{})
	p, _ := l.TryAcquire(limiter.Primary)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	p.Abandon()
	if !p.Release(permit.Success) || p.Release(permit.Success) || p.Held() {
		t.Error("the release after Close does not count once")
	}
	if err := l.Close(t.Context()); err != nil || l.Limit() != 50 {
		t.Errorf("Close: %v, limit %d", err, l.Limit())
	}
	shut(t, l)
}

// Close races with calls of every kind, with changes of the limit and with itself:
// nothing is lost, nobody hangs, and nothing runs when it has returned.
func TestCloseRacesWithCallsAndWithTheLimit(t *testing.T) {
	for round := range 100 {
		l := limitedBy(t, &between{limits: []int{3, 1, 5}}, limiter.Config{
			MaxWaiting: []int{0, 5, limiter.Unbounded}[round%3], Reserve: limiter.NoReserve,
		})
		start := make(chan struct{})
		var calls, closers sync.WaitGroup
		var running atomic.Int64
		for i := range 24 {
			calls.Go(func() {
				<-start
				for {
					p, err := l.Acquire(context.Background(), limiter.Kind(i%limiter.NumKinds))
					switch {
					case err == nil:
						running.Add(1)
						running.Add(-1)
						if !p.Release(permit.Success) {
							t.Error("a permit was lost")
						}
					case errors.Is(err, limiter.ErrClosed), l.Stats().Ledger.Closed:
						return
					case err != limiter.ErrLimitExceeded: //nolint:errorlint // the bare sentinel is the claim
						t.Errorf("Acquire: %v", err)
						return
					}
				}
			})
		}
		for range 3 {
			closers.Go(func() {
				<-start
				if err := l.Close(context.Background()); err != nil {
					t.Errorf("Close: %v", err)
				}
				if n := running.Load(); n != 0 {
					t.Errorf("Close returned while %d ran", n)
				}
			})
		}
		close(start)
		closers.Wait()
		calls.Wait()
		shut(t, l)
	}
}
