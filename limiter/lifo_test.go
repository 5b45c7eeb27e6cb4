package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Who waits is served in the order of coming, or the newest first once the oldest has
// waited for longer than LIFOAfter, which may be half of MaxWait.
func TestOrderOfTheQueue(t *testing.T) {
	for _, c := range []struct {
		name   string
		config limiter.Config
		held   time.Duration // how long the only permit is out before it goes round
		want   string
	}{
		{"first in first out", limiter.Config{MaxWait: time.Hour}, 59 * time.Minute, "0123"},
		{"half, and the oldest is young", limiter.Config{MaxWait: time.Hour, LIFOAfter: limiter.HalfMaxWait}, 30 * time.Minute, "0123"},
		{"half, and the oldest is old", limiter.Config{MaxWait: time.Hour, LIFOAfter: limiter.HalfMaxWait}, 30*time.Minute + 1, "3210"},
		{"a time of its own", limiter.Config{MaxWait: time.Hour, LIFOAfter: time.Minute}, 2 * time.Minute, "3210"},
		{"no end of waiting", limiter.Config{LIFOAfter: time.Minute}, 2 * time.Minute, "3210"},
		{"half of nothing much", limiter.Config{MaxWait: 1, LIFOAfter: limiter.HalfMaxWait}, 0, "0123"},
	} {
		for _, most := range []int{limiter.Unbounded, 4} {
			synctest.Test(t, func(t *testing.T) {
				c.config.MaxWaiting = most
				l := fixed(t, 1, c.config)
				p, _ := l.TryAcquire(limiter.Primary)
				got := make(chan string, 4)
				for i := range 4 {
					go func() {
						p, err := l.Acquire(t.Context(), limiter.Primary)
						if err != nil {
							t.Errorf("%s: %v", c.name, err)
						}
						got <- fmt.Sprint(i)
						p.Release(permit.Success)
					}()
					synctest.Wait()
				}
				time.Sleep(c.held)
				p.Release(permit.Success)
				order := ""
				for range 4 {
					order += <-got
				}
				synctest.Wait()
				if order != c.want {
					t.Errorf("%s: served %s, want %s", c.name, order, c.want)
				}
				if n := l.Stats().Ledger.Refused; n != 0 {
					t.Errorf("%s: %d who waited were counted as refused", c.name, n)
				}
				probe(t, l)
			})
		}
	}
}

// Under twice the load that can be served, with callers who wait 100 ms at most, first in
// first out serves those who have waited almost as long. Last in first out serves as many,
// and most of them at once.
func TestLastInFirstOutKeepsWaitsShortUnderOverload(t *testing.T) {
	waits := func(after time.Duration) (median time.Duration, served int) {
		synctest.Test(t, func(t *testing.T) {
			l := fixed(t, 1, limiter.Config{MaxWaiting: limiter.Unbounded, MaxWait: 100 * time.Millisecond, LIFOAfter: after})
			var all []time.Duration // written under the only permit
			for range 1000 {
				go func() {
					came := time.Now()
					_ = l.Do(t.Context(), func(context.Context) error {
						all = append(all, time.Since(came))
						time.Sleep(10 * time.Millisecond)
						return nil
					})
				}()
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			slices.Sort(all)
			median, served = all[len(all)/2], len(all)
			if s := l.Stats(); s.Rejected.MaxWait != uint64(1000-served) {
				t.Errorf("%d served, %+v", served, s.Rejected)
			}
			probe(t, l)
		})
		return median, served
	}
	fifo, n := waits(0)
	lifo, m := waits(limiter.HalfMaxWait)
	if fifo < 80*time.Millisecond || lifo > 20*time.Millisecond || m < n*95/100 {
		t.Errorf("first in first out: %d waited for %v; last in first out: %d for %v", n, fifo, m, lifo)
	}
}

// A caller with a deadline is not refused for those ahead whom it will overtake.
func TestDeadlineKnowsTheOrderOfTheQueue(t *testing.T) {
	for after, want := range map[time.Duration]error{
		0: limiter.ErrLimitExceeded, time.Hour: limiter.ErrLimitExceeded, 400 * time.Millisecond: nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{first: gradient.Decision{Limit: 1, MinLength: time.Second, MinSamples: 1}}
			s.next = func(gradient.Window) gradient.Decision { return gradient.Decision{Limit: 1, MinLength: time.Hour} }
			l := limitedBy(t, s, limiter.Config{MaxWaiting: limiter.Unbounded, LIFOAfter: after})
			work := func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil }
			time.Sleep(time.Second)
			_ = l.Do(t.Context(), work) // ends a window, which tells of 100 ms
			for range 10 {
				go func() { _ = l.Do(t.Context(), work) }()
			}
			synctest.Wait()
			time.Sleep(450 * time.Millisecond) // five are left, and the next begins in 50 ms
			ctx, cancel := context.WithTimeout(t.Context(), 210*time.Millisecond)
			defer cancel()
			start := time.Now()
			if err := l.Do(ctx, work); !errors.Is(err, want) || want == nil && time.Since(start) != 150*time.Millisecond {
				t.Errorf("LIFOAfter %v: %v after %v, want %v", after, err, time.Since(start), want)
			}
			time.Sleep(2 * time.Second)
			probe(t, l)
		})
	}
}

func TestBadLIFOAfterIsRefusedByName(t *testing.T) {
	for _, config := range []limiter.Config{
		{LIFOAfter: time.Second}, {LIFOAfter: limiter.HalfMaxWait}, {MaxWaiting: 1, LIFOAfter: limiter.HalfMaxWait},
		{MaxWaiting: 1, LIFOAfter: -2},
	} {
		if l, err := limiter.New(config); l != nil || err == nil || !strings.HasPrefix(err.Error(), "limiter: LIFOAfter ") {
			t.Errorf("%v of %d, %v: %v", config.LIFOAfter, config.MaxWaiting, config.MaxWait, err)
		}
	}
}
