package hedgedlimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The gates without a hedger around them: time and load are arguments.

const second = time.Second

// The congestion factor raises what hedges must win by, up to what a rate can show.
func TestThresholdIsHalfTimesCongestion(t *testing.T) {
	for _, c := range []struct{ congestion, want float64 }{
		{1, 0.5}, {1.2, 0.6}, {1.9, 0.95}, {3, 0.95}, {math.Inf(1), 0.95},
	} {
		if got := threshold(c.congestion); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("threshold(%v) = %v, want %v", c.congestion, got, c.want)
		}
	}
}

// From the first step on, the rate is that of the hedges seen: it does not begin at 0
// or at a guess.
func TestWinRateHasNoBiasFromTheStart(t *testing.T) {
	var g winGate
	if _, known := g.winRate(); known {
		t.Error("a win rate without a hedge")
	}
	for i := range 20 {
		g.decided(true, 1)
		if rate, known := g.winRate(); !known || math.Abs(rate-1) > 1e-9 {
			t.Fatalf("after %d wins of %d the rate is %v", i+1, i+1, rate)
		}
	}
}

func TestShareHalvesWhenHedgesLoseAndGrowsByAnEighthWhenTheyWin(t *testing.T) {
	var g winGate
	feed := func(n int, won bool) {
		for range n {
			g.decided(won, 1)
		}
	}
	want := func(share float64) {
		t.Helper()
		if g.share() != share {
			t.Errorf("share %v, want %v", g.share(), share)
		}
	}
	want(1. / 4)
	feed(15, true)
	want(1. / 4) // a step takes 16
	feed(1, true)
	want(3. / 8)
	feed(16*5, true)
	want(1)
	feed(16, true)
	want(1)
	feed(16*20, false)
	want(1. / 32)
	g = winGate{}
	feed(16, false)
	want(1. / 8)
	feed(16, false)
	want(1. / 16)
}

// Seven of the first sixteen are half, but for chance: the share does not fall for it. Of as
// many hedges as the filter holds, it falls for less.
func TestShareDoesNotFallByChance(t *testing.T) {
	for _, c := range []struct {
		hedges, won int // in a row of sixteen, over and over
		want        float64
	}{{16, 7, 1. / 4}, {16, 5, 1. / 8}, {16 * 20, 7, shareLeast}} {
		var g winGate
		for i := range c.hedges {
			g.decided(i*c.won%16 < c.won, 1)
		}
		if rate, _ := g.winRate(); g.share() != c.want {
			t.Errorf("%d of 16 hedges won, %d in all: rate %.3f, doubt %.3f, share %v, want %v", c.won, c.hedges, rate, g.doubt(), g.share(), c.want)
		}
	}
	var g winGate
	for _, want := range []float64{0.5, 0.5 / math.Sqrt2, 0.5 / math.Sqrt(3)} {
		if g.decided(true, 1); math.Abs(g.doubt()-want) > 0.01 {
			t.Errorf("the doubt is %.3f, want about %.3f", g.doubt(), want)
		}
	}
	for range 1000 {
		g.decided(true, 1)
	}
	if want := 0.5 / math.Sqrt(127); math.Abs(g.doubt()-want) > 1e-3 { // (2−w)/w of an old filter
		t.Errorf("the doubt of a full filter is %.4f, want %.4f", g.doubt(), want)
	}
}

// Between the threshold and the margin above it, the share stays.
func TestShareStaysWithinTheMargin(t *testing.T) {
	var g winGate
	for i := range 16 * 40 {
		g.decided(i%65 < 33, 1) // 0.508, with θ = 0.5 and a margin up to 0.525
	}
	rate, _ := g.winRate()
	if g.share() > 1./4+1./8 || g.share() < 1./16 {
		t.Errorf("with a win rate of %v the share went to %v", rate, g.share())
	}
}

// The share stays within its bounds whatever comes, and reaches the probe level where
// hedging does not pay. Half the hedges win if service times have no memory.
func TestShareOfHedgesThatDoNotPayIsTheProbe(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ wins, congestion, least, most float64 }{
		{0.37, 1, 0, 0.05},   // 95 % load
		{0.65, 1.6, 0, 0.05}, // hedges win and harm
		{0.63, 1, 0.95, 1},   // 30 % load
		{0.80, 1.2, 0.95, 1}, // stalls
		{0.99, math.Inf(1), 0.9, 1},
	} {
		var g winGate
		sum, n := 0.0, 0
		for i := range 20_000 {
			g.decided(random.Float64() < c.wins, c.congestion)
			if i > 2000 {
				sum, n = sum+g.share(), n+1
			}
		}
		if mean := sum / float64(n); mean < c.least || mean > c.most {
			t.Errorf("win rate %v, congestion %v: mean share %v, want %v to %v", c.wins, c.congestion, mean, c.least, c.most)
		}
	}
}

func TestShareIsNeverOutOfBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g winGate
		for _, won := range rapid.SliceOfN(rapid.Bool(), 0, 400).Draw(t, "won") {
			g.decided(won, rapid.Float64Range(1, 10).Draw(t, "congestion"))
			rate, _ := g.winRate()
			if s := g.share(); !(s >= shareLeast && s <= 1) || !(rate >= 0 && rate <= 1) {
				t.Fatalf("share %v, rate %v", s, rate)
			}
		}
	})
}

// shows feeds a congestion n latencies, one each ms.
func shows(c *congestion, now *time.Time, n int, latency time.Duration, rise float64) {
	for range n {
		*now = now.Add(time.Millisecond)
		c.observe(*now, latency, false, rise)
	}
}

func TestCongestionIsTheMedianOverItsBaseline(t *testing.T) {
	var c congestion
	now := time.Unix(0, 0)
	if c.factor() != 1 {
		t.Errorf("without samples the factor is %v", c.factor())
	}
	shows(&c, &now, 3000, 10*time.Millisecond, baselineBusy)
	if c.factor() != 1 {
		t.Errorf("without load the factor is %v", c.factor())
	}
	shows(&c, &now, 3000, 11*time.Millisecond, 0)
	if c.factor() != 1 {
		t.Errorf("within the deadband the factor is %v", c.factor())
	}
	shows(&c, &now, 3000, 20*time.Millisecond, 0)
	if want := 2 / deadband; math.Abs(c.factor()-want) > 0.1 {
		t.Errorf("with a doubled median the factor is %v, want %v", c.factor(), want)
	}
}

// The baseline follows a fall within seconds, and a rise as slowly as it is told to.
func TestBaselineFallsFastAndRisesSlowly(t *testing.T) {
	for _, c := range []struct {
		rise  float64
		after time.Duration // the factor is 1 again, after a median three times as high
	}{{baselineRoom, 40 * second}, {baselineUnlimited, 110 * second}, {baselineBusy, 370 * second}} {
		var g congestion
		now := time.Unix(0, 0)
		shows(&g, &now, 3000, 10*time.Millisecond, c.rise)
		began := now
		for g.factor() == 1 || now.Sub(began) < 10*second {
			shows(&g, &now, 1000, 30*time.Millisecond, c.rise)
			if now.Sub(began) > time.Hour {
				t.Fatal("the factor does not rise")
			}
		}
		for g.factor() > 1 && now.Sub(began) < time.Hour {
			shows(&g, &now, 1000, 30*time.Millisecond, c.rise)
		}
		if took := now.Sub(began); took < c.after*3/4 || took > c.after*5/4 {
			t.Errorf("a rise of %v a second takes %v, want about %v", c.rise, took, c.after)
		}
		shows(&g, &now, 15_000, 10*time.Millisecond, c.rise)
		if g.baseline > float64(11*time.Millisecond) {
			t.Errorf("15 s after the fall the baseline is %v", time.Duration(g.baseline))
		}
	}
}

// Unknown is not the same as small: when most primaries are cut short, their median is
// beyond all that was seen.
func TestCongestionOfCallsThatAreCutShortIsInfinite(t *testing.T) {
	var c congestion
	now := time.Unix(0, 0)
	shows(&c, &now, 3000, 10*time.Millisecond, baselineRoom)
	for range 4000 {
		now = now.Add(time.Millisecond)
		c.observe(now, 5*time.Millisecond, true, baselineRoom)
	}
	if !math.IsInf(c.factor(), 1) {
		t.Errorf("the factor is %v", c.factor())
	}
	shows(&c, &now, 4000, 10*time.Millisecond, baselineRoom)
	if c.factor() != 1 {
		t.Errorf("when it is over the factor is %v", c.factor())
	}
}

// An hour without traffic moves the baseline no further than ten seconds of it.
func TestSilenceDoesNotMoveTheBaseline(t *testing.T) {
	var c congestion
	now := time.Unix(0, 0)
	shows(&c, &now, 3000, 10*time.Millisecond, baselineRoom)
	now = now.Add(time.Hour)
	shows(&c, &now, 1500, 40*time.Millisecond, baselineRoom)
	if c.baseline > 1.5*float64(10*time.Millisecond) {
		t.Errorf("the baseline is %v", time.Duration(c.baseline))
	}
}

// steady is a load of so much in flight for ten time constants.
func steady(inFlight int) (load, time.Time) {
	var l load
	now := time.Unix(0, 0)
	for range 20_000 {
		now = now.Add(5 * time.Millisecond)
		l.see(now, inFlight)
	}
	return l, now
}

func TestSurgeIsFarAboveTheUsual(t *testing.T) {
	for _, c := range []struct {
		mean, inFlight, limit int
		want                  bool
	}{
		{1, 9, 1 << 20, false}, {1, 10, 1 << 20, true}, // a small service may have 10
		{20, 59, 1 << 20, false}, {20, 60, 1 << 20, true}, // three times the mean
		{20, 60, 200, false}, {20, 99, 200, false}, {20, 100, 200, true}, // half the limit
		{20, 60, 401, true}, // a limit that means nothing
	} {
		l, _ := steady(c.mean)
		if got := l.surge(c.inFlight, c.limit); got != c.want {
			t.Errorf("%d in flight, usually %d, limit %d: surge %v", c.inFlight, c.mean, c.limit, got)
		}
	}
}

// The mean follows within its ten seconds, so a lasting rise is no surge for ever.
func TestSurgeBecomesUsual(t *testing.T) {
	l, now := steady(10)
	began := now
	for l.surge(50, 1<<20) {
		now = now.Add(5 * time.Millisecond)
		l.see(now, 50)
		if now.Sub(began) > time.Minute {
			t.Fatal("after a minute it is still a surge")
		}
	}
	if took := now.Sub(began); took < second || took > 6*second {
		t.Errorf("it was a surge for %v", took)
	}
}

func TestBaselineMayRiseFasterWhereThereIsRoom(t *testing.T) {
	l, _ := steady(20)
	for limit, want := range map[int]float64{40: baselineRoom, 39: baselineBusy, 1 << 20: baselineUnlimited} {
		if got := l.rise(limit); got != want {
			t.Errorf("20 in flight, limit %d: %v a second, want %v", limit, got, want)
		}
	}
}

// A standstill is that ten have begun since the last answer, and the first of them so long
// ago that half of the answers come sooner.
func TestStandstillIsThatManyBeginAndNobodyIsAnswered(t *testing.T) {
	var q quiet
	median := float64(10 * time.Millisecond)
	begin := func(n int, ns int64) {
		for range n {
			q.started(ns)
		}
	}
	check := func(ns int64, median float64, want bool) {
		t.Helper()
		if got := q.standstill(ns, median); got != want {
			t.Errorf("%d began, %v after the first, median %v: standstill %v", q.starts.Load(), time.Duration(ns-q.first.Load()), median, got)
		}
	}
	const began = 5e9
	q.hedge.Store(began)
	check(began+20e6, median, false)
	begin(9, began)
	check(began+20e6, median, false)
	begin(1, began+9e6)
	check(began+10e6-1, median, false) // a burst of which none can have been answered
	check(began+10e6, median, true)
	check(began, 0, true)
	check(began, math.Inf(1), true)
	check(began+1e9-1, median, true)
	check(began+1e9, median, false) // a hedge once a second
	q.left()
	check(began+20e6, median, false)
	begin(1, began)
	check(began+20e6, median, true)
	q.answered()
	q.left()
	if n := q.starts.Load(); n != 0 {
		t.Errorf("%d have begun without an answer", n)
	}
	q.hedge.Store(began + 1e9)
	begin(10, began+1e9)
	check(began+1e9+5e6, median, false) // the first of these, not of those
	check(began+1e9+10e6, median, true)
	check(began-3600e9, median, false) // the wall clock was set back
}

// Where as many are answered as come, in random order, a standstill is one look in a
// thousand; where one of two replicas is at rest, one in fifty.
func TestStandstillIsRareWhereSomebodyIsAnswered(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ answers, most float64 }{{1. / 2, 0.002}, {1. / 3, 0.02}} {
		var q quiet
		seen, n := 0, 200_000
		for range n {
			if random.Float64() < c.answers {
				q.answered()
			} else {
				q.started(0)
			}
			if q.standstill(0, 0) {
				seen++
			}
		}
		if share := float64(seen) / float64(n); share > c.most || seen == 0 {
			t.Errorf("with %.2f answers an event: %.4f of the looks", c.answers, share)
		}
	}
}

// Of all hedges that are due at once in a standstill one goes, and if it is not sent after
// all the next may.
func TestOneHedgeASecondProbesAStandstill(t *testing.T) {
	var q quiet
	start := int64(10 * time.Second)
	for range standstillStarts {
		q.started(start)
	}
	now := start + int64(time.Second)
	sent := 0
	for range 100 {
		if !q.standstill(now, 0) {
			sent++
		}
	}
	if sent != 1 {
		t.Errorf("%d hedges at once", sent)
	}
	q.unsent(now)
	if q.standstill(now+1, 0) {
		t.Error("the one was not sent, and no other may")
	}
	q.hedge.Store(now + 1)
	if q.unsent(now + 1); !q.standstill(now+2, 0) {
		t.Error("no probe was claimed in that instant, and what another call sent is forgotten")
	}
	if !q.standstill(now+int64(time.Second), 0) || q.standstill(now+2*int64(time.Second), 0) {
		t.Error("the next probe is not a second later")
	}
}

// A step of the wall clock moves no gate: what has a reading of the monotonic clock is
// told by that.
func TestGatesGoByTheMonotonicClock(t *testing.T) {
	var g Gates
	now := time.Now()
	before := g.clock(now)
	if d := g.clock(now.Add(time.Second)) - before; d != int64(time.Second) {
		t.Errorf("a second is %v", time.Duration(d))
	}
	if g.clock(now) < int64(standstillProbe) {
		t.Error("the first second has no probe")
	}
}

// The order of the gates: pressure, standstill, surge, win.
func TestGatesAreAskedInOrder(t *testing.T) {
	var g Gates
	now := time.Unix(1000, 0)
	if reason, ok := g.room(now, time.Time{}, 1, 20); !ok {
		t.Errorf("an idle service: %v", reason)
	}
	for _, c := range []struct {
		pressed  time.Duration // ago
		inFlight int
		want     Skip
		ok       bool
	}{
		{999 * time.Millisecond, 1000, SkipPressure, false},
		{999 * time.Millisecond, 1, SkipPressure, false},
		{second, 1000, SkipSurge, false},
		{second, 1, 0, true},
	} {
		reason, ok := g.room(now, now.Add(-c.pressed), c.inFlight, 20)
		if reason != c.want || ok != c.ok {
			t.Errorf("pressure %v ago, %d in flight: %v, %v", c.pressed, c.inFlight, reason, ok)
		}
	}
	g.sent(now)
	for range 10 {
		g.started(now, 1)
	}
	for pressed, want := range map[time.Duration]Skip{0: SkipPressure, second: SkipStandstill} {
		if reason, ok := g.room(now, now.Add(-pressed), 1000, 20); ok || reason != want {
			t.Errorf("pressure %v ago in a standstill: %v", pressed, reason)
		}
	}
	number := func(u float64) func() float64 { return func() float64 { return u } }
	if !g.pays(number(0.2499)) || g.pays(number(0.25)) {
		t.Error("at first a quarter of the hedges is sent")
	}
}

// Congestion cuts the share of hedges at once, down to the probe level, but where hedges win
// as often as they must under it.
func TestCongestionCutsAShareThatWasEarnedWithoutIt(t *testing.T) {
	for _, c := range []struct{ won, congestion, share, want float64 }{
		{0.7, 1, 1, 1}, {0.7, 1.4, 1, 1}, // 0.7 is enough
		{0.7, 1.6, 1, 1 / 1.6}, {0.7, 2, 0.5, 0.25},
		{0.7, 100, 1, shareLeast}, {0.7, math.Inf(1), 1, shareLeast},
		{1, math.Inf(1), 1, 1}, // only hedges are answered
	} {
		g := winGate{rate: c.won, weight: 1, grown: c.share - shareStart}
		if got := g.present(c.congestion); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("win rate %v, congestion %v: %v of the hedges are sent, want %v", c.won, c.congestion, got, c.want)
		}
	}
	if got := new(winGate).present(2); got != shareStart {
		t.Errorf("at first %v of the hedges are sent", got)
	}
}

func TestNoGatesLetEverythingThrough(t *testing.T) {
	now := time.Unix(1000, 0)
	NoGates.decided(false)
	NoGates.started(now, 1<<20)
	NoGates.observe(now, time.Hour, true, 1)
	if _, ok := NoGates.room(now, now, 1<<20, 1); !ok || !NoGates.pays(nil) {
		t.Error("NoGates says no")
	}
	if s := NoGates.Stats(); s != (GateStats{Share: 1, Congestion: 1}) {
		t.Errorf("%+v", s)
	}
}

// The load is looked at once in 5 ms, whatever the traffic, and seen again after the
// wall clock was set back.
func TestLoadIsLookedAtNowAndThen(t *testing.T) {
	var g Gates
	now := time.Unix(1000, 0)
	g.started(now, 10)
	g.started(now.Add(4*time.Millisecond), 1000)
	if g.load.mean != 10 {
		t.Errorf("mean %v", g.load.mean)
	}
	g.started(now.Add(5*time.Millisecond), 1000)
	if !(g.load.mean > 10) {
		t.Errorf("mean %v", g.load.mean)
	}
	g.started(now.Add(-time.Hour), 1000)
	if m := g.load.mean; math.IsNaN(m) || m > 1000 {
		t.Errorf("mean %v", m)
	}
}
