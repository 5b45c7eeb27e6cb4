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
	ordered bool
	rate    float64 // calls a second, 0 if it is not known
	mean    float64
}

// newTrace returns the latency of the samples that did not fail, in order of time if they
// have one. Rate is what is known of the calls a second, or 0.
func newTrace(samples []Sample, order Order, rate float64) (*Trace, error) {
	t := &Trace{ordered: order != Unordered, rate: rate}
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

// Service is the latency of an attempt.
func (t *Trace) Service(call, attempt int, after time.Duration, u float64) float64 {
	if !t.ordered {
		return t.Quantile(u)
	}
	n := len(t.latency)
	if attempt == 1 {
		return t.latency[call%n]
	}
	// One of those around the instant, the call itself left out: a call is slow together
	// with itself always.
	i := call + int(math.Round(after.Seconds()*t.rate)) - nearby + int(u*(2*nearby+1))
	if i == call {
		i = call + nearby + 1
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

func sortByStart(samples []Sample) {
	slices.SortStableFunc(samples, func(a, b Sample) int { return cmp.Compare(a.Start, b.Start) })
}
