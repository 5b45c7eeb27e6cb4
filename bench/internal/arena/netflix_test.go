package arena

import (
	"math"
	"testing"
)

// The rivals do what their description says, step by step.
func TestVegas(t *testing.T) {
	v := newVegas()
	for i, tt := range []struct {
		rtt      float64
		inFlight int
		dropped  bool
		want     float64
	}{
		{0.010, 20, false, 20},  // the first latency is the least
		{0.010, 20, false, 26},  // no queue: up by β
		{0.0109, 26, false, 26}, // 26·(1 − 10/10.9) is 3 in the queue: α to β, stay
		{0.0105, 26, false, 27}, // 2 in the queue, below α: one more
		{0.015, 27, false, 26},  // 9 in the queue: one less
		{0.010, 12, false, 26},  // less than half is used: stay
		{0.010, 26, true, 25},   // dropped: one less
		{0.009, 25, false, 25},  // a new least
	} {
		if got := v.sample(tt.rtt, tt.inFlight, tt.dropped); got != tt.want {
			t.Errorf("step %d: limit %v, want %v", i, got, tt.want)
		}
	}
}

func TestVegasForgetsItsLeastLatency(t *testing.T) {
	v := newVegas()
	v.sample(0.001, 1, false)
	for range vegasProbe * netflixInitial {
		v.sample(0.010, 1, false)
	}
	if v.least != 0.010 {
		t.Errorf("the least latency is still %v", v.least)
	}
}

func TestGradient2(t *testing.T) {
	g := newGradient2()
	want := 20.0
	for range 5 { // as long as nothing queues it adds 0.2·4
		want += 0.8
		if got := g.sample(0.010, 40, false); math.Abs(got-want) > 1e-9 {
			t.Errorf("limit %v, want %v", got, want)
		}
	}
	if got := g.sample(0.010, 3, false); math.Abs(got-want) > 1e-9 {
		t.Errorf("limit %v with 3 in flight, want %v", got, want)
	}
	for range 20 {
		g.sample(0.200, 40, false)
	}
	if got := g.sample(1, 40, false); got < gradient2Min || got > want {
		t.Errorf("limit %v in a queue", got)
	}
}
