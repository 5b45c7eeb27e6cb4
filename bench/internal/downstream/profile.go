package downstream

import (
	"math"
	"math/rand/v2"
	"time"
)

// Profile says how long the work of a request takes: log-normal with the given
// mean and standard deviation, and for a share of the requests longer by a
// factor. The latter are the stragglers that hedging is for: a second request is
// drawn anew.
type Profile struct {
	Mean            time.Duration `json:"mean_ns"`
	Deviation       time.Duration `json:"deviation_ns"`
	StragglerShare  float64       `json:"straggler_share"`
	StragglerFactor float64       `json:"straggler_factor"`
	// Longest cuts the tail of the draw off, so that a bound on how long a loser
	// may take can be above it for certain.
	Longest time.Duration `json:"longest_ns"`
}

// Expected returns the mean over all requests, stragglers included.
func (p Profile) Expected() time.Duration {
	return time.Duration(float64(p.Mean) * (1 + p.StragglerShare*(p.StragglerFactor-1)))
}

// Draw returns the time that one attempt of one call takes. It depends on nothing
// else, so experiments that hedge differently still see the same primaries.
func (p Profile) Draw(seed, call uint64, attempt int) time.Duration {
	r := Rand(seed, call, uint64(attempt))
	ratio := float64(p.Deviation) / float64(p.Mean)
	variance := math.Log1p(ratio * ratio)
	d := float64(p.Mean) * math.Exp(r.NormFloat64()*math.Sqrt(variance)-variance/2)
	if r.Float64() < p.StragglerShare {
		d *= p.StragglerFactor
	}
	return min(time.Duration(d), p.Longest)
}

// Rand returns a generator that depends on all the numbers given and on their
// order. Neighbouring numbers give unrelated generators.
func Rand(seed uint64, numbers ...uint64) *rand.Rand {
	a := mix(seed)
	for _, n := range numbers {
		a = mix(a ^ mix(n+1))
	}
	return rand.New(rand.NewPCG(a, mix(a)))
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
