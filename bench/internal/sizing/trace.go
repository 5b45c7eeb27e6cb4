package sizing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// minSamples is how many answers say something of the slowest in a hundred.
	minSamples = 100
	// nearby is how many calls before and after an instant stand for it.
	nearby = 8
	// stretches is in how many stretches a simulation takes a long file.
	stretches = 20
	// golden spreads points evenly over [0, 1), however many they are: the fractions of its
	// multiples.
	golden = math.Phi - 1
)

// Sample is one call.
type Sample struct {
	// Start is since some instant, if it is known.
	Start   time.Duration
	Latency time.Duration
	// Failed calls say nothing of the latency. Cause is what went wrong in a few words, empty if
	// that is not known.
	Failed bool
	Cause  string
}

// Order is what is known of when samples were taken.
type Order uint8

const (
	// Unordered samples are in an order that says nothing.
	Unordered Order = iota
	// Ordered ones are in the order in which they began.
	Ordered
	// Timed ones have a Start each.
	Timed
)

// Trace is a latency by samples. Where they have an order, primaries take as long as the samples
// do, one after the other, and a hedge as long as one that began at about the same time: if calls
// are slow together, so is the hedge.
type Trace struct {
	latency []float64 // in seconds, in the order that they have
	sorted  []float64
	samples []Sample
	order   Order   // as far as it tells when hedges would begin
	rate    float64 // calls a second, 0 if it is not known
	mean    float64

	// Of the latencies a simulation takes stretches of this length, at places that are spread
	// over all of them from the shift on, a share. The zero values are all of them, from the
	// first on.
	stretch int
	shift   float64
}

// newTrace returns the latency of the samples that did not fail, in order of time if they
// have one. Rate is what is known of the calls a second, or 0.
func newTrace(samples []Sample, order Order, rate float64) (*Trace, error) {
	t := &Trace{samples: samples, order: known(order, rate), rate: rate}
	sum := 0.0
	for _, s := range samples {
		x := s.Latency.Seconds()
		t.latency = append(t.latency, x)
		sum += x
	}
	if len(t.latency) < minSamples {
		return nil, fmt.Errorf("too few answers to tell a 99th percentile from: %d, and %d are needed", len(t.latency), minSamples)
	}
	t.mean = sum / float64(len(t.latency))
	t.sorted = slices.Sorted(slices.Values(t.latency))
	return t, nil
}

// Quantile is the latency in seconds that a share u of the samples does not exceed.
func (t *Trace) Quantile(u float64) float64 {
	return t.sorted[min(max(int(math.Ceil(u*float64(len(t.sorted))))-1, 0), len(t.sorted)-1)]
}

// Mean is in seconds.
func (t *Trace) Mean() float64 { return t.mean }

// drawn is the trace as a simulation of so many calls has it: every seed begins elsewhere, and a
// file that is longer is taken in stretches from all over it.
func (t *Trace) drawn(seed uint64, calls int) *Trace {
	x := *t
	_, x.shift = math.Modf(float64((seed+7*(seed>>40))%(1<<20)) * math.Sqrt2)
	if calls < len(t.latency) {
		x.stretch = max(1, calls/stretches)
	}
	return &x
}

// Drawn says what of the samples a simulation of so many calls takes, empty if it is all of them.
func (t *Trace) Drawn(calls int) string {
	if n := len(t.latency); t.order != Unordered && calls < n {
		return fmt.Sprintf("of the %d latencies a simulation takes about %d, in stretches of %d from all over the file, every seed others: -calls %d takes all", n, calls, t.drawn(0, calls).stretch, n)
	}
	return ""
}

// place is which sample a call is.
func (t *Trace) place(call int) int {
	n := len(t.latency)
	if t.stretch == 0 {
		return (int(t.shift*float64(n)) + call) % n
	}
	_, at := math.Modf(t.shift + golden*float64(call/t.stretch))
	return (int(at*float64(n)) + call%t.stretch) % n
}

// begun is the first sample that began some time after another did.
func (t *Trace) begun(place int, after time.Duration) int {
	if t.order == Timed {
		return firstFrom(t.samples, t.samples[place].Start+after)
	}
	return place + int(math.Round(after.Seconds()*t.rate))
}

// Service is the latency of an attempt.
func (t *Trace) Service(call, attempt int, after time.Duration, u float64) float64 {
	if t.order == Unordered {
		return t.Quantile(u)
	}
	n, primary := len(t.latency), t.place(call)
	if attempt == 1 {
		return t.latency[primary]
	}
	// One of those around the instant, the call itself left out: a call is slow together
	// with itself always.
	i := t.begun(primary, after) - nearby + int(u*(2*nearby+1))
	if i == primary {
		i = primary + nearby + 1
	}
	return t.latency[((i%n)+n)%n]
}

// Tail says what is beyond the slowest sample.
func (t *Trace) Tail() string {
	slowest := seconds(t.sorted[len(t.sorted)-1])
	return fmt.Sprintf("nothing is slower than the slowest of %d answers, %v", len(t.sorted), roundLatency(slowest))
}

// rateOf returns the calls a second of samples in order of time.
func rateOf(samples []Sample) float64 {
	if len(samples) < 2 {
		return 0
	}
	length := (samples[len(samples)-1].Start - samples[0].Start).Seconds()
	if length <= 0 {
		return 0
	}
	return float64(len(samples)-1) / length
}

// firstFrom is the first of samples in order of time that began at an instant or after it, and
// their number if there is none.
func firstFrom(samples []Sample, at time.Duration) int {
	i, _ := slices.BinarySearchFunc(samples, at, func(s Sample, at time.Duration) int { return cmp.Compare(s.Start, at) })
	return i
}

func sortByStart(samples []Sample) {
	slices.SortStableFunc(samples, func(a, b Sample) int { return cmp.Compare(a.Start, b.Start) })
}
