package hedgearena

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// inServer runs f with a server of one replica with one slot.
func inServer(t *testing.T, drops bool, f func(*server)) {
	t.Helper()
	err := bubble.Run(func() error {
		s := newServer(&Scenario{Replicas: 1, Slots: 1, Drops: drops})
		f(s)
		s.close()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// serving has an attempt served in a goroutine of its own, and returns when it ended.
func serving(ctx context.Context, s *server, service time.Duration) func() (time.Duration, error) {
	began := time.Now()
	var took time.Duration
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.serve(ctx, 0, service)
		took = time.Since(began)
	}()
	bubble.Settle()
	return func() (time.Duration, error) { <-done; return took, err }
}

func wantTook(t *testing.T, what string, end func() (time.Duration, error), want time.Duration) {
	t.Helper()
	if took, err := end(); took != want || err != nil {
		t.Errorf("%s took %v, %v; want %v", what, took, err, want)
	}
}

func TestServerIsFirstComeFirstServed(t *testing.T) {
	inServer(t, false, func(s *server) {
		a := serving(context.Background(), s, 3*time.Second)
		b := serving(context.Background(), s, 2*time.Second)
		c := serving(context.Background(), s, time.Second)
		wantTook(t, "the first", a, 3*time.Second)
		wantTook(t, "the second", b, 5*time.Second)
		wantTook(t, "the third", c, 6*time.Second)
	})
}

// Work that is cancelled in the queue is served anyway, or is dropped; in a slot it is served.
// Either way its caller is told at once.
func TestServerAndCancelledWork(t *testing.T) {
	for _, tt := range []struct {
		drops  bool
		third  time.Duration // what comes after the cancelled two is served after
		served int
	}{{false, 6 * time.Second, 3}, {true, 4 * time.Second, 2}} {
		inServer(t, tt.drops, func(s *server) {
			ctx, cancel := context.WithCancel(context.Background())
			inSlot := serving(ctx, s, 3*time.Second)
			queued := serving(ctx, s, 2*time.Second)
			third := serving(context.Background(), s, time.Second)
			time.Sleep(time.Second)
			cancel()
			for _, end := range []func() (time.Duration, error){inSlot, queued} {
				if took, err := end(); took != time.Second || !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled attempt ended after %v with %v", took, err)
				}
			}
			wantTook(t, "what came after", third, tt.third)
			bubble.Settle()
			if s.came != 3 || s.served != tt.served || s.dropped != 3-tt.served {
				t.Errorf("of %d attempts %d were served and %d dropped", s.came, s.served, s.dropped)
			}
		})
	}
}

// A replica that freezes makes everything in it as much later.
func TestServerFreezes(t *testing.T) {
	inServer(t, false, func(s *server) {
		a := serving(context.Background(), s, 2*time.Second)
		b := serving(context.Background(), s, time.Second)
		time.Sleep(time.Second)
		s.freeze(0)
		c := serving(context.Background(), s, time.Second)
		time.Sleep(5 * time.Second)
		s.thaw(0)
		wantTook(t, "what was in the slot", a, 7*time.Second)
		wantTook(t, "what was queued", b, 8*time.Second)
		wantTook(t, "what came while it was frozen", c, 8*time.Second)
	})
	// A freeze in the instant of an end, whichever comes first, loses nothing.
	inServer(t, false, func(s *server) {
		a := serving(context.Background(), s, time.Second)
		time.Sleep(time.Second)
		s.freeze(0)
		time.Sleep(time.Second)
		s.thaw(0)
		if took, err := a(); err != nil || took != time.Second && took != 2*time.Second {
			t.Errorf("it took %v, %v", took, err)
		}
	})
}

func TestServerWithFewerSlots(t *testing.T) {
	err := bubble.Run(func() error {
		s := newServer(&Scenario{Replicas: 1, Slots: 2})
		defer s.close()
		a := serving(context.Background(), s, 3*time.Second)
		b := serving(context.Background(), s, time.Second)
		c := serving(context.Background(), s, time.Second)
		s.setOpen(1)
		wantTook(t, "the second", b, time.Second)
		wantTook(t, "the first", a, 3*time.Second)
		wantTook(t, "the third, with one slot", c, 4*time.Second)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
