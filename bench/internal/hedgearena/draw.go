package hedgearena

import (
	"math/rand/v2"
	"sync"
)

// draws are the random numbers of a seed. They hang on the numbers of the call and of
// the attempt, and not on the order in which they are asked for: so every policy
// meets the same service times, whatever it sends besides.
type draws struct {
	seed     uint64
	replicas int
	law      func(u float64) float64 // the service time by its quantile
}

// What a number is drawn for.
const (
	drawService = iota + 1
	drawReplica
	drawPlacebo
	drawApart
	drawGate
)

// bits are 64 random ones: the finisher of SplitMix64 over all that tells them apart.
func (d *draws) bits(what, call, attempt int) uint64 {
	x := d.seed
	for _, v := range [...]uint64{uint64(what), uint64(call), uint64(attempt)} {
		x = mix(x + v*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019)
	}
	return x
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// uniform is within (0, 1).
func (d *draws) uniform(what, call, attempt int) float64 {
	return (float64(d.bits(what, call, attempt)>>11) + 0.5) / (1 << 53)
}

// service is how long the attempt takes in a slot, in seconds.
func (d *draws) service(call, attempt int) float64 {
	return d.law(d.uniform(drawService, call, attempt))
}

// replica is where the attempt goes: at random, and each attempt of a call elsewhere as
// long as there are replicas.
func (d *draws) replica(call, attempt int) int {
	first := int(d.bits(drawReplica, call, 1) % uint64(d.replicas))
	if attempt == 1 || d.replicas == 1 {
		return first
	}
	others := d.replicas - 1
	offset := int(d.bits(drawReplica, call, 2) % uint64(others))
	return (first + 1 + (offset+attempt-2)%others) % d.replicas
}

// placebo reports whether the call is one of the share that is hedged at random.
func (d *draws) placebo(call int, share float64) bool {
	return d.uniform(drawPlacebo, call, 1) < share
}

// sequence returns random numbers of [0, 1) that hang on the order in which they are asked
// for, for what does not know the call. Any number of goroutines may ask.
func (d *draws) sequence(what int) func() float64 {
	var mu sync.Mutex // a leaf
	source := rand.New(rand.NewPCG(d.seed, uint64(what)))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Float64()
	}
}
