package gradient

import (
	"testing"
	"time"
)

// probing is in the first step of a probe that began at x and n with a limit of 30,
// of which 10 are a queue.
func probing() *Gradient {
	g := learner(30, settled())
	g.schedule.backoff = minBackoff
	g.epochLimit = 30
	g.startProbe(100, sample{x: 2000, n: 30, q: 0.013, t: 0.015, samples: 200, completed: 200, elapsed: 0.1, saturated: true})
	return g
}

func step(x, n, q float64) sample {
	return sample{x: x, n: n, q: q, t: n / x, samples: 200, completed: 200, elapsed: 0.1, spread: 4e-6, cv2: 0.1, saturated: true}
}

func TestProbeGoesDownWhileThroughputStays(t *testing.T) {
	g := probing()
	if g.limit != 21 {
		t.Fatalf("limit %v, want 0.7 of 30", g.limit)
	}
	d := g.probed(101, step(2000, 21, 0.0085))
	if !d.Probe || d.Reason != ReasonProbe || d.Limit != 14 {
		t.Fatalf("the queue is gone, the throughput stayed, and it says %+v", d)
	}
	d = g.probed(102, step(1400, 14, 0.0082))
	if d.Probe || d.Reason != ReasonProbeEnd {
		t.Fatalf("the throughput followed, and it says %+v", d)
	}
	if d.Limit < 20 || d.Limit > 30 {
		t.Errorf("limit %d after the probe", d.Limit)
	}
}

func TestProbeGivesTheLimitBack(t *testing.T) {
	for name, c := range map[string]struct {
		s    sample
		want int
	}{
		// 10 queued, where 4 are to.
		"less the queue":       {step(1200, 12, 0.008), 24},
		"unread":               {sample{}, 30},
		"the service is alone": {step(1200, 12, 0.0131), 30},
	} {
		g := probing()
		g.ref.rejected = 1
		if name == "the service is alone" {
			g.ref.best = 4000 // half of the throughput was lost, so a higher baseline is believed
		}
		var d Decision
		if c.s.x == 0 {
			d = g.giveUp(101)
		} else {
			d = g.probed(101, c.s)
		}
		if d.Probe || !d.NewEpoch || d.Limit < c.want-1 || d.Limit > c.want+1 {
			t.Errorf("%s: %+v, want about %d", name, d, c.want)
		}
		if g.schedule.next <= 101 {
			t.Errorf("%s: no next probe is planned", name)
		}
	}
}

// A longer latency in a probe is a queue of others, unless throughput was lost.
func TestProbeBelievesASlowerServiceByItsThroughput(t *testing.T) {
	// Half of it is evidence for a service twice as slow, and not for more.
	for best, want := range map[float64]float64{2000: 0.0082, 4000: 0.0155} {
		g := probing()
		g.ref.best, g.ref.smooth = best, 2000
		g.probed(101, step(1200, 12, 0.016))
		if g.base.q > want*1.02 || g.base.q < want*0.97 {
			t.Errorf("best throughput %v, now 2000: baseline %v, want %v", best, g.base.q, want)
		}
	}
}

func TestProbeEndsInTime(t *testing.T) {
	g := probing()
	steps := 0
	for g.probe.running {
		if steps++; steps > maxStages {
			t.Fatal("still down after the last step")
		}
		g.probed(100+float64(steps), step(2000, 30, 0.013))
	}
	if g.limit < 20 {
		t.Errorf("limit %v after a probe that nothing followed", g.limit)
	}
}

// In a fleet the throughput of one client is noise, and its first probe must not stop half
// way down a queue, since it believes what it finds there.
func TestFirstProbeStopsOnlyBeyondDoubt(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		g := probing()
		g.base.trusted = trusted
		few := func(x, n float64) sample { s := step(x, n, 0.013); s.completed = 20; return s }
		g.probe.last = few(2000, 30)
		d := g.probed(101, few(1650, 21)) // followed by 0.54 of what was taken, give or take 0.4
		if d.Probe == trusted {
			t.Errorf("trusted %v: %+v", trusted, d)
		}
	}
}

// The cuts before a probe were for a queue that was none: the service has become slower.
func TestProbeGivesBackWhatCutsTookForADrift(t *testing.T) {
	g := probing()
	g.ref.best, g.ref.smooth = 4000, 2000 // throughput was lost
	g.congested, g.before = congestedProbe, 50
	if d := g.probed(101, step(1200, 12, 0.016)); d.Limit != 50 {
		t.Errorf("%+v, and it was at 50 before the cuts", d)
	}
}

// A probe that the traffic leaves alone says nothing, and its length even less.
func TestProbeInAPauseIsGivenUp(t *testing.T) {
	g := newLearned(t)
	for _, seconds := range []float64{60, 8 * 3600} {
		g.startProbe(100, step(2000, 30, 0.013))
		before := g.probe.original
		w := pause(seconds)
		d := g.Next(unix(100+seconds), w)
		if d.Probe || g.limit != before {
			t.Errorf("after %v s without traffic: %+v", seconds, d)
		}
		if gap := g.schedule.next - (100 + seconds); gap > 2*maxBackoff*maxStages*mostSeconds {
			t.Errorf("after %v s without traffic the next probe is %v s away", seconds, gap)
		}
		if g.schedule.duration > maxStages*mostSeconds {
			t.Errorf("it is said to have taken %v s", g.schedule.duration)
		}
	}
}

func unix(s float64) time.Time { return time.UnixMicro(int64(s * 1e6)) }

// newLearned is a Gradient that has settled at 30.
func newLearned(t *testing.T) *Gradient {
	g, err := New(Config{Initial: 30})
	if err != nil {
		t.Fatal(err)
	}
	g.first, g.base, g.slowStart = false, settled(), false
	g.ref = reference{best: 1000, smooth: 1000}
	return g
}

// pause is a window in which three calls came.
func pause(seconds float64) *Window {
	h := new(Histogram)
	for range 3 {
		h.Add(10 * time.Millisecond)
	}
	return &Window{
		Limit: 20, Elapsed: time.Duration(seconds * float64(time.Second)), InFlight: 0.03 / seconds, MaxInFlight: 1,
		Admitted: 3, Completed: 3, Latency: h,
	}
}

func TestProbeReleasesTheMean(t *testing.T) {
	g := probing()
	g.mean.binding = true
	if g.probed(101, step(1300, 20, 0.0082)); g.mean.binding {
		t.Error("a third less in flight brought a third less, and the mean's queue is believed")
	}
}

func TestProbeTrustsItsLastStepWhereNothingWasTrusted(t *testing.T) {
	g := probing()
	g.base = baseline{q: 0.013, m: 0.015, weight: 30}
	g.probed(101, step(1000, 10, 0.008))
	if !g.base.trusted || g.base.q != 0.008 {
		t.Errorf("%+v", g.base)
	}
}
