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
