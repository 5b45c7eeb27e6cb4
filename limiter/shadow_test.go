package limiter_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A shadow refuses nobody, counts all work as in flight, and counts as refused just those
// whom a limiter would have refused: those outside the limit take no places inside.
func TestShadowRefusesNobodyAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{first: gradient.Decision{Limit: 2, MinLength: time.Second}}
		l := limitedBy(t, s, limiter.Config{Shadow: true, MaxWaiting: 3})
		acquire := func(kind limiter.Kind) limiter.Permit {
			p, err := l.Acquire(t.Context(), kind)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		a, b := acquire(limiter.Primary), acquire(limiter.Primary)
		c, d := acquire(limiter.Primary), acquire(limiter.Hedge)
		e, ok := l.TryAcquire(limiter.Retry)
		if !ok || l.InFlight() != 5 || l.Limit() != 2 || c.Kind() != limiter.Primary || d.Kind() != limiter.Hedge || !c.Held() {
			t.Fatalf("in flight %d, limit %d", l.InFlight(), l.Limit())
		}
		st := l.Stats()
		if st.Shadowed != 3 || st.Rejected != (limiter.Rejections{}) || st.Ledger.InFlight != 5 || st.Ledger.Limit != 2 || st.Ledger.Granted != 5 || st.Ledger.Refused != 0 {
			t.Errorf("%+v", st)
		}
		time.Sleep(500 * time.Millisecond)
		a.Release(permit.Success)
		f := acquire(limiter.Primary) // inside, though c, d and e are out
		if n := l.Stats().Shadowed; n != 3 {
			t.Errorf("%d were shadowed, want 3", n)
		}
		c.Release(permit.Success)
		time.Sleep(500 * time.Millisecond)
		if !d.Release(permit.Success) || d.Release(permit.Success) {
			t.Error("a permit outside the limit is not released once")
		}
		if len(s.windows) != 1 {
			t.Fatalf("%d windows", len(s.windows))
		}
		w := s.windows[0]
		if math.Abs(w.InFlight-4.5) > 1e-9 || w.MaxInFlight != 5 || w.Admitted != 3 || w.Refused != 2 || w.Completed != 3 || !w.Saturated || s.counts[0] != 1 {
			t.Errorf("%+v, %d latencies", w, s.counts[0])
		}
		for _, p := range []limiter.Permit{b, e, f} {
			p.Release(permit.Success)
		}
		if st := l.Stats().Ledger; st.InFlight != 0 || st.Granted != 6 || st.Released[permit.Success] != 6 {
			t.Errorf("at rest: %+v", st)
		}
	})
}

func TestShadowCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, limiter.Config{Shadow: true})
		for i := range 3 {
			p, _ := l.TryAcquire(limiter.Primary)
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { p.Release(permit.Success) })
		}
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := l.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close with one permit out: %v", err)
		}
		if err := l.Close(t.Context()); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		shut(t, l)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Acquire(gone, limiter.Primary); err != context.Canceled { //nolint:errorlint // bare
			t.Errorf("a caller who has gone: %v", err)
		}
	})
}
