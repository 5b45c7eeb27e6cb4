package gradient

import (
	"testing"
	"time"
)

// left is a window of one second at a limit of 30 in which all but a few of the callers
// left after so long.
func left(after time.Duration) *Window {
	h := filled(5, 10*time.Millisecond)
	for range 600 {
		h.AddCensored(after)
	}
	return &Window{Limit: 30, Elapsed: time.Second, InFlight: 30, MaxInFlight: 30, Admitted: 605, Refused: 300, Completed: 605, Saturated: true, Latency: h}
}

// A latency that was cut short above the baseline tells of a queue, as a full one does.
func TestWhoLeavesLateCutsTheLimit(t *testing.T) {
	g := newLearned(t)
	before := g.base
	d := g.Next(unix(100), left(60*time.Millisecond))
	if d.Limit > 15 || d.Reason != ReasonQueue || !d.NewEpoch {
		t.Errorf("%+v, with a baseline of %v s", d, before.q)
	}
	if g.base != before {
		t.Errorf("a lower bound taught the baseline %+v, which was %+v", g.base, before)
	}
}

// Nobody lowers the limit for all by allowing a millisecond: that the latency is longer
// says nothing where the baseline is.
func TestWhoLeavesEarlyChangesNothing(t *testing.T) {
	g := newLearned(t)
	for i := range 100 {
		w := left(time.Millisecond)
		// A few stay for long, and are no quarter of all.
		for range 100 {
			w.Latency.AddCensored(time.Second)
		}
		if d := g.Next(unix(float64(100+i)), w); d.Limit != 30 || d.Reason != ReasonHold {
			t.Fatalf("window %d: %+v", i, d)
		}
	}
}

// With no baseline at all the limit is lowered by a probe only, for as long as everybody
// leaves, and comes back if nothing could be measured.
func TestWhoLeavesFromTheStartIsProbed(t *testing.T) {
	g := fresh(t)
	at, lowest := 100.0, 30
	for ; at < 100+maxStages; at++ {
		d := g.Next(unix(at), left(60*time.Millisecond))
		lowest = min(lowest, d.Limit)
		if d.Reason == ReasonProbeEnd {
			if d.Limit != 30 || lowest > 2 {
				t.Errorf("%+v after a probe down to %d", d, lowest)
			}
			return
		}
		if d.Reason != ReasonProbe {
			t.Fatalf("%+v", d)
		}
	}
	t.Error("the probe does not end")
}

// The throughput of calls that nobody waited for is no measure of the next step: two in
// which callers stay are compared.
func TestProbeComparesOnlyWhatWasRead(t *testing.T) {
	g := fresh(t)
	g.Next(unix(100), left(60*time.Millisecond)) // half
	stays := func(inFlight float64) *Window {
		return &Window{
			Elapsed: time.Second, InFlight: inFlight, MaxInFlight: int(inFlight), Admitted: 200, Refused: 400, Completed: 200,
			Saturated: true, Latency: filled(200, time.Duration(inFlight*float64(5*time.Millisecond))),
		}
	}
	// From 605 to 200 a second at half: it looks as if the throughput had followed.
	if d := g.Next(unix(101), stays(15)); d.Reason != ReasonProbe || g.base.trusted {
		t.Fatalf("%+v, trusted %v", d, g.base.trusted)
	}
}

func fresh(t *testing.T) *Gradient {
	t.Helper()
	g, err := New(Config{Initial: 30})
	if err != nil {
		t.Fatal(err)
	}
	g.Start(unix(99))
	return g
}
