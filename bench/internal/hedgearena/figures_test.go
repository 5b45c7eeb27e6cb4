package hedgearena

import "testing"

// Goodput is back with the first second in which 95 of 100 calls are good.
func TestSecondsTo(t *testing.T) {
	ticks := make([]tickCount, 30)
	for i := range ticks {
		ticks[i].calls = 10
		switch {
		case i >= 15:
			ticks[i].good = 10
		case i >= 5:
			ticks[i].good = 9
		}
	}
	// From 1.0 s on five ticks have 9 and five have 10.
	if got := secondsTo(ticks); got != 1 {
		t.Errorf("back after %v s, want 1", got)
	}
	if got := secondsTo(ticks[:19]); got != -1 {
		t.Errorf("back after %v s in a course that never is", got)
	}
}

// What is due, won and skipped in a phase is what the library counted in it, and a total leaves
// the first phase out.
func TestTotalLeavesTheWarmUpOut(t *testing.T) {
	f := mustSimulate(t, newCase(t, find(t, "H3", tick*20), 0.6, "3x", Refuse, OurName), 1)
	p := f.Phases[1]
	if f.Total.Calls != p.Calls || f.Total.P99 != p.P99 || f.Total.FailedPercent != p.FailedPercent || f.Calls != p.Calls+f.Phases[0].Calls {
		t.Errorf("total %+v, phase %+v", f.Total, p)
	}
	skipped := uint64(0)
	for _, n := range p.Skipped {
		skipped += n
	}
	// A call that comes in one phase may be hedged in the next.
	if sent := p.Due - skipped; sent == 0 || sent > 2*uint64(p.Extra)+50 || p.Won > sent+50 || skipped == 0 {
		t.Errorf("%d due, %d skipped, %d won, %d extra", p.Due, skipped, p.Won, p.Extra)
	}
}

// A refused call is slower than any other: within a time are as many of all calls as fewer of
// those that were not refused, and in the longest time are all that can be.
func TestRefusedCallsAreTheSlowest(t *testing.T) {
	c := newCase(t, find(t, "H1", tick*50), 1.3, "1.5x", Refuse, NoneName)
	f, err := Simulate(c, 1, Options{Latency: true})
	if err != nil {
		t.Fatal(err)
	}
	answered := f.Answered()
	if want := float64(f.Total.Calls-f.Total.Refused) / float64(f.Total.Calls); f.Total.Refused == 0 || answered != want {
		t.Fatalf("%v of the calls were not refused, want %v", answered, want)
	}
	if got := f.Within(0.99 * answered); got != f.Total.P99 {
		t.Errorf("p99 of the rest is %v, want %v", got, f.Total.P99)
	}
	if got := f.Within(0.5); got <= f.Total.P50 {
		t.Errorf("half of all calls are within %v, and half of those that were not refused within %v", got, f.Total.P50)
	}
	if got := f.Within(answered + 0.001); got != 1000*usualTimeout.Seconds() {
		t.Errorf("more than were answered were so within %v ms", got)
	}
}
