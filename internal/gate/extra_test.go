package gate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/gate"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// visit is let in and leaves again, or is refused for a reason.
func visit(ctx context.Context, g *gate.Gate, kind limiter.Kind) gate.Reason {
	p, why := g.Enter(ctx, kind)
	if why == gate.None {
		p.Release(permit.Ignored)
		g.Leave()
	}
	return why
}

// The share is asked from half of the permits on. Below that nobody is refused for it, and
// who came then is not counted: three may come in any case, and a limit of 1 is no
// exception while it is idle. A share of nothing refuses all, always.
func TestShareIsAskedWhereThereIsLittleRoom(t *testing.T) {
	for _, kind := range []limiter.Kind{limiter.Hedge, limiter.Retry} {
		for _, row := range []struct {
			limit, held int
			maxExtra    float64
			want        int // of 100
		}{
			{limit: 1, held: 0, maxExtra: 0.1, want: 100},
			{limit: 4, held: 1, maxExtra: 0.1, want: 100},
			{limit: 4, held: 2, maxExtra: 0.1, want: 3},
			{limit: 5, held: 2, maxExtra: 0.1, want: 100},
			{limit: 5, held: 3, maxExtra: 0.1, want: 3},
			{limit: 5, held: 3, maxExtra: 1e-9, want: 3},
			{limit: 5, held: 3, maxExtra: 1, want: 100},
			{limit: 1, held: 0, maxExtra: 0, want: 0},
			{limit: 5, held: 3, maxExtra: 0, want: 0},
		} {
			g, l := newGate(t, row.limit, 0, row.maxExtra)
			in := 0
			ask := func() {
				for range 100 {
					switch why := visit(t.Context(), g, kind); why {
					case gate.None:
						in++
					case gate.ExtraShare:
					default:
						t.Errorf("%v, %+v: refused for %v", kind, row, why)
					}
				}
			}
			if row.held > 0 && row.maxExtra > 0 {
				ask() // with all free
				if in != 100 {
					t.Errorf("%v, %+v: %d of 100 were let in with all permits free", kind, row, in)
				}
				in = 0
			}
			for range row.held {
				if _, ok := l.TryAcquire(limiter.Primary); !ok {
					t.Fatal("no permit")
				}
			}
			if ask(); in != row.want {
				t.Errorf("%v, %+v: %d of 100 were let in", kind, row, in)
			}
		}
	}
}

// A retry within the share waits as a first attempt does; a hedge never waits, and neither
// does a retry that is one too many.
func TestRetryWaitsAndHedgeDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(t, 1, limiter.Unbounded, 0.1)
		held, _ := l.TryAcquire(limiter.Primary)
		if why := visit(t.Context(), g, limiter.Hedge); why != gate.ExtraFull {
			t.Errorf("a hedge with nothing free: %v", why)
		}
		ends := make(chan gate.Reason, 4)
		for range 3 {
			go func() { ends <- visit(t.Context(), g, limiter.Retry) }()
		}
		synctest.Wait()
		if why := visit(t.Context(), g, limiter.Retry); why != gate.ExtraShare {
			t.Errorf("the fourth retry: %v", why)
		}
		held.Release(permit.Ignored)
		for range 3 {
			if why := <-ends; why != gate.None {
				t.Errorf("a retry that waited: %v", why)
			}
		}
		if s := g.Stats(); s.Refused != (gate.Refusals{ExtraFull: 1, ExtraShare: 1}) || s.Inside != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A retry that has waited in vain, for too long or because its client left, gives its share
// back.
func TestRetryThatIsNotServedUsesNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGate(t, 1, limiter.Unbounded, 0.1)
		held, _ := l.TryAcquire(limiter.Primary)
		defer held.Release(permit.Ignored)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if why := visit(ctx, g, limiter.Retry); why != gate.Expired {
				t.Errorf("a retry whose deadline passes: %v", why)
			}
			cancel()
			if why := visit(ctx, g, limiter.Hedge); why != gate.Expired {
				t.Errorf("a hedge whose deadline has passed: %v", why)
			}
		}
	})
}

// A hedge leaves the reserve, but to nobody: with nothing in flight it is let in at a limit
// of 1 too, and not if its time is over.
func TestHedgeAloneNeedsNoReserve(t *testing.T) {
	g, l := newGate(t, 1, 0, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if why := visit(ended, g, limiter.Hedge); why != gate.Gone {
		t.Errorf("a hedge whose client has gone: %v", why)
	}
	if why := visit(t.Context(), g, limiter.Hedge); why != gate.None {
		t.Errorf("a hedge at an idle gate: %v", why)
	}
	g, l = newGate(t, 3, 0, 1)
	for range 2 {
		if _, ok := l.TryAcquire(limiter.Primary); !ok {
			t.Fatal("no permit")
		}
	}
	if why := visit(t.Context(), g, limiter.Hedge); why != gate.ExtraFull {
		t.Errorf("a hedge with the reserve free: %v", why)
	}
	if why := visit(t.Context(), g, limiter.Retry); why != gate.None {
		t.Errorf("a retry with the reserve free: %v", why)
	}
}

// First attempts earn a share for others when they come, also those that are refused.
func TestRefusedPrimariesCountForTheShare(t *testing.T) {
	g, l := newGate(t, 2, 0, 0.1)
	one, _ := l.TryAcquire(limiter.Bypass)
	other, _ := l.TryAcquire(limiter.Bypass)
	for range 90 {
		if why := visit(t.Context(), g, limiter.Primary); why != gate.Full {
			t.Errorf("a first attempt with nothing free: %v", why)
		}
	}
	one.Release(permit.Ignored)
	in := 0
	for range 100 {
		if visit(t.Context(), g, limiter.Retry) == gate.None {
			in++
		}
	}
	if in != 10 {
		t.Errorf("%d retries were let in with 90 first attempts, want 10", in)
	}
	other.Release(permit.Ignored)
}
