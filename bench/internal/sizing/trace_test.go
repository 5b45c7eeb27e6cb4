package sizing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// drawn are n samples of a law, so many a second, slower by a factor where slow says so.
func drawn(n int, rate float64, law logNormal, slow func(at time.Duration) float64) []Sample {
	source := rand.New(rand.NewPCG(7, uint64(n)))
	samples := make([]Sample, n)
	at := 0.0
	for i := range samples {
		at += source.ExpFloat64() / rate
		samples[i].Start = seconds(at)
		samples[i].Latency = seconds(law.Quantile(source.Float64()) * slow(samples[i].Start))
	}
	return samples
}

func always(time.Duration) float64 { return 1 }

// spells are slow in 250 ms of 5 s.
func inSpells(at time.Duration) float64 {
	if at%(5*time.Second) < 250*time.Millisecond {
		return 10
	}
	return 1
}

var lightTail = logNormal{0.010, 0.020}

// Whether slow calls come together is seen in each order that tells it, and in no other.
func TestCorrelation(t *testing.T) {
	independent := drawn(20000, 200, logNormal{0.010, 0.100}, always)
	together := drawn(20000, 200, lightTail, inSpells)
	shuffled := slices.Clone(together)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, tt := range []struct {
		name              string
		samples           []Sample
		order             Order
		known, correlated bool
	}{
		{"by chance, timed", independent, Timed, true, false},
		{"by chance, ordered", independent, Ordered, true, false},
		{"in spells, timed", together, Timed, true, true},
		{"in spells, ordered", together, Ordered, true, true},
		{"in spells, unordered", together, Unordered, false, false},
		{"in spells, shuffled", shuffled, Ordered, true, false},
		{"too few slow", together[:150], Timed, false, false},
		{"in spells, ordered, at no rate", together, Ordered, false, false},
	} {
		rate := 200.0
		if strings.HasSuffix(tt.name, "at no rate") {
			rate = 0
		}
		c := correlate(tt.samples, tt.order, rate)
		if c.Known != tt.known || c.Correlated != tt.correlated {
			t.Errorf("%s: %+v", tt.name, c)
		}
		if tt.known && !tt.correlated && (c.Together > 0.05+surely*c.Error || c.Autocorrelation > surely*c.Error) {
			t.Errorf("%s: %+v is beyond chance", tt.name, c)
		}
	}
}

// Calls that are slow one after the other, but not when the hedge would begin, are not slow
// together: the calls of that time are looked at.
func TestCorrelationLooksWhereTheHedgeWouldBe(t *testing.T) {
	// In every 60 calls, which are 25 ms apart, three in a row take 100 ms, and three elsewhere
	// 99 ms, so that this is when a hedge is sent: four calls later.
	samples := make([]Sample, 6000)
	for i := range samples {
		samples[i] = Sample{Start: time.Duration(i) * 25 * time.Millisecond, Latency: 10 * time.Millisecond}
		switch {
		case i%60 < 3:
			samples[i].Latency = 100 * time.Millisecond
		case i%60 >= 57:
			samples[i].Latency = 99 * time.Millisecond
		}
	}
	for _, order := range []Order{Timed, Ordered} {
		if c := correlate(samples, order, 40); !c.Known || c.SlowMS != 99 || c.Slow != 300 || c.Together != 0 || c.Correlated {
			t.Errorf("order %d: %+v", order, c)
		}
	}
}

// A share that would be too much is none where so few calls are slow that it may be chance.
func TestCorrelationIsMoreThanChance(t *testing.T) {
	samples := make([]Sample, 200)
	for i := range samples {
		samples[i].Latency = 10 * time.Millisecond
	}
	for _, i := range []int{20, 21, 22, 23, 60, 61, 100, 101, 140, 160} {
		samples[i].Latency = 20 * time.Millisecond
	}
	if c := correlate(samples, Ordered, 10); !c.Known || c.Together < maxTogether || c.Correlated {
		t.Errorf("%+v", c)
	}
}

// Where hedges are slow twice as often as by chance, and surely so, they still help: of 100 calls
// five are slow, twice one right after the other.
func TestCorrelationIsTooMuch(t *testing.T) {
	samples := make([]Sample, 6000)
	for i := range samples {
		samples[i].Latency = 10 * time.Millisecond
		if slices.Contains([]int{0, 1, 40, 41, 70}, i%100) {
			samples[i].Latency = 20 * time.Millisecond
		}
	}
	// At so low a rate a hedge begins when the next call does.
	c := correlate(samples, Ordered, 10)
	near(t, "share of slow hedges", c.Together, 0.1, 1e-9)
	if !c.Known || c.Together <= 0.05+surely*c.Error || c.Correlated {
		t.Errorf("%+v", c)
	}
}

// Primaries are the samples, and hedges those that began at about the same time, and never the
// call itself.
func TestTraceKeepsWhatIsClose(t *testing.T) {
	samples := make([]Sample, 1000)
	for i := range samples {
		samples[i].Latency = time.Duration(i+1) * time.Millisecond
	}
	x, err := newTrace(samples, Ordered, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []int{0, 3, 500, 999, 2500} {
		if got := x.Service(call, 1, 0, 0.3); got != samples[call%1000].Latency.Seconds() {
			t.Errorf("call %d takes %v", call, got)
		}
		seen := map[int]bool{}
		for i := range 1000 {
			u := (float64(i) + 0.5) / 1000
			got := int(x.Service(call, 2, 200*time.Millisecond, u)*1000+0.5) - 1
			seen[got] = true
			if off := ((got-call-20)%1000 + 1500) % 1000; off < 500-nearby || off > 500+nearby {
				t.Fatalf("the hedge of call %d, 20 calls later, is %d", call, got)
			}
			if now := int(x.Service(call, 2, 0, u)*1000+0.5) - 1; now == call%1000 {
				t.Fatalf("the hedge of call %d is the call", call)
			}
		}
		if len(seen) != 2*nearby+1 {
			t.Errorf("%d calls stand for the hedge of call %d", len(seen), call)
		}
	}
	x.order = Unordered
	if a, b := x.Service(7, 1, 0, 0.5), x.Service(7, 2, 0, 0.995); a != 0.5 || b != 0.995 {
		t.Errorf("without an order the quantiles are %v and %v", a, b)
	}
	near(t, "mean", x.Mean(), 0.5005, 1e-9)
	if _, err := newTrace(samples[:99], Ordered, 0); err == nil || err.Error() != "too few answers to tell a 99th percentile from: 99, and 100 are needed" {
		t.Errorf("99 answers: %v", err)
	}
}

// Latencies one a line tell what is slow together only if it is known how many there are a second:
// otherwise it is not known which begin when a hedge would.
func TestLinesTellWithARateOnly(t *testing.T) {
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, "%d\n", 10+i%13+100*(i%19/18))
	}
	for rate, known := range map[float64]bool{0: false, 100: true} {
		in, err := Read(strings.NewReader(lines.String()), rate)
		if err != nil || in.Correlation.Known != known {
			t.Errorf("at %v a second: %+v, %v", rate, in, err)
		}
	}
}

// A delay that is longer than the slow spells is not ruled out by them, and a shorter one is.
func TestCorrelationHangsOnTheDelay(t *testing.T) {
	samples := drawn(40000, 1000, lightTail, func(at time.Duration) float64 {
		if at%time.Second < 50*time.Millisecond {
			return 10
		}
		return 1
	})
	for _, tt := range []struct {
		delay      time.Duration
		correlated bool
	}{{15 * time.Millisecond, true}, {60 * time.Millisecond, false}} {
		if c := correlateAt(samples, Timed, 0, tt.delay); !c.Known || c.Correlated != tt.correlated {
			t.Errorf("after %v: %+v", tt.delay, c)
		}
	}
}

// Of a file longer than a simulation all parts count alike, whatever the seed, in stretches that
// keep their order; of a shorter one every sample does.
func TestSimulationsTakeAllOfALongFile(t *testing.T) {
	samples := make([]Sample, 90000)
	for i := range samples {
		samples[i].Latency = time.Duration(i+1) * time.Millisecond
	}
	x, err := newTrace(samples, Ordered, 1000)
	if err != nil {
		t.Fatal(err)
	}
	const calls = 10000
	for seed := uint64(1); seed <= 5; seed++ {
		d := x.drawn(seed, calls)
		var tenths [10]int
		follows := 0
		for call := range calls {
			place := int(d.Service(call, 1, 0, 0.5)*1000+0.5) - 1
			tenths[place*10/len(samples)]++
			if call > 0 && place == (int(d.Service(call-1, 1, 0, 0.5)*1000+0.5))%len(samples) {
				follows++
			}
		}
		for i, n := range tenths {
			if n < calls/20 || n > calls*3/20 {
				t.Errorf("seed %d: %d of %d calls are of tenth %d", seed, n, calls, i+1)
			}
		}
		if follows < calls-stretches-1 {
			t.Errorf("seed %d: %d of %d calls follow the one before", seed, follows, calls)
		}
	}
	if x.Drawn(calls) == "" || x.Drawn(len(samples)) != "" {
		t.Errorf("said: %q and %q", x.Drawn(calls), x.Drawn(len(samples)))
	}
	// Each once, from another place on.
	all, other := x.drawn(1, len(samples)), x.drawn(2, len(samples))
	if a, b := all.place(0), other.place(0); a == b || all.place(len(samples)) != a {
		t.Errorf("seeds begin at %d and %d", a, b)
	}
}

// A hedge is looked for by the times where there are some: the rate of the whole says little where
// calls come in bursts.
func TestHedgesFollowTheTimes(t *testing.T) {
	samples := make([]Sample, 1000)
	for i := range samples {
		// 100 at once in each second.
		samples[i].Start = time.Duration(i/100)*time.Second + time.Duration(i%100)*time.Microsecond
		samples[i].Latency = time.Duration(i/100+1) * time.Second
	}
	x, err := newTrace(samples, Timed, rateOf(samples))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []float64{0.6, 0.9} {
		if got := x.Service(210, 2, 500*time.Millisecond, u); got != 4 {
			t.Errorf("half a second later it takes %v s, want 4 s as in the next burst", got)
		}
	}
}
