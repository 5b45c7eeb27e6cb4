package httpmw

import (
	"strconv"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/limiter"
)

// Groups enter without a lock where they can. One that a call is in stays in the map all
// the same, whoever else looks for room.
func TestGroupThatACallIsInStays(t *testing.T) {
	o, err := newOptions([]Option{MaxHosts(1)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGroups(&o)
	if err != nil {
		t.Fatal(err)
	}
	// As long as it takes until a group was idle in the instant in which another came.
	for round := 0; g.dropped == 0 && round < 100; round++ {
		var wg sync.WaitGroup
		for i := range 4 {
			name := strconv.Itoa(i % 2) // two callers of one name: the second may enter by the fast path
			wg.Go(func() { enterAndLeave(t, g, name) })
		}
		wg.Wait()
	}
	if g.dropped == 0 || len(g.byName) != 1 {
		t.Errorf("%d groups were dropped, and %d are left", g.dropped, len(g.byName))
	}
	for _, x := range g.byName {
		if x.calls.Load() != 0 {
			t.Errorf("%d calls are left", x.calls.Load())
		}
	}
	g.close()
	if _, err := g.enter("0"); err != limiter.ErrClosed { //nolint:errorlint // bare is what is asked
		t.Errorf("after close: %v", err)
	}
	if _, err := g.enter("1"); err != limiter.ErrClosed { //nolint:errorlint // as above
		t.Errorf("after close: %v", err)
	}
}

func enterAndLeave(t *testing.T, g *groups, name string) {
	for range 2000 {
		x, err := g.enter(name)
		if err != nil {
			t.Error(err)
			return
		}
		g.mu.Lock()
		if x != g.overflow && (g.byName[name] != x || x.name != name) {
			t.Error("a call is in a group that was dropped, or is another's")
		}
		g.mu.Unlock()
		x.leave()
	}
}

// Who has found a group, and comes to enter it when it has been dropped, is turned away.
func TestGroupThatWasDroppedLetsNoCallIn(t *testing.T) {
	o, err := newOptions([]Option{MaxHosts(1)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGroups(&o)
	if err != nil {
		t.Fatal(err)
	}
	var dropped *group
	for _, name := range []string{"first", "second"} {
		x, err := g.enter(name)
		if err != nil {
			t.Fatal(err)
		}
		x.leave()
		if dropped == nil {
			dropped = x
		}
	}
	if dropped.enter() || g.dropped != 1 {
		t.Errorf("a call has entered a group that was dropped; %d were", g.dropped)
	}
}
