package gradient_test

import (
	"math/rand/v2"
)

// scenario is a story about traffic and a server, of one phase or more.
type scenario struct {
	name   string
	story  string
	phases []phase
	whole  bool // it makes no sense in a short form
}

// mix takes 5 ms, and this share of calls 100 ms.
func mix(slow float64) func(*rand.Rand, float64, int) float64 {
	return func(r *rand.Rand, _ float64, _ int) float64 {
		s := 0.005
		if r.Float64() < slow {
			s = 0.1
		}
		return s * (0.9 + 0.2*r.Float64())
	}
}

func heavyTail(r *rand.Rand, _ float64, _ int) float64 { return pareto(r, 0.010) }

// contention slows every call down by what else is inside, and nobody queues.
func contention(workers int) func(*rand.Rand, float64, int) float64 {
	c := float64(workers)
	return func(r *rand.Rand, _ float64, inside int) float64 {
		n := float64(inside)
		return logNormal(r, 0.010, 0.3) * max(1, n/c) * (1 + 0.5*max(0, n-c)/c)
	}
}

// contended is such a server: it has as many workers as come, and does what workers
// would at best.
func contended(length float64, workers int) phase {
	return phase{length: length, rate: 3000, workers: 1 << 20, mean: 0.010 * (1 << 20) / float64(workers), service: contention(workers)}
}

var scenarios = []scenario{
	{"S1", "Half as much again as the server can do. The limit goes to the 20 that are busy and a short queue, and stays.", []phase{
		{length: 120, rate: 3000, workers: 20, mean: 0.010},
	}, false},
	{"S2", "Three workers of four are lost, and come back. The limit follows down at once, and up within a second.", []phase{
		{length: 60, rate: 1500, workers: 20, mean: 0.010},
		{length: 60, rate: 1500, workers: 5, mean: 0.010},
		{length: 60, rate: 1500, workers: 20, mean: 0.010},
	}, false},
	{"S3", "A heavy tail at half load. There is no overload, and nothing to cut.", []phase{
		{length: 120, rate: 1000, workers: 20, mean: 0.010, service: heavyTail},
	}, false},
	{"S4", "Hardly any traffic, then a spike of three times what the server can do. The limit has not grown in the meantime.", []phase{
		{length: 120, rate: 100, workers: 20, mean: 0.010},
		{length: 20, rate: 6000, workers: 20, mean: 0.010},
	}, false},
	{"S5", "The service gets four times slower without being overloaded. The limit grows with what is needed.", []phase{
		{length: 180, rate: 1000, workers: 80, mean: 0.025, service: func(r *rand.Rand, at float64, _ int) float64 {
			return logNormal(r, 0.010+0.030*at/180, 0.3)
		}},
	}, true},
	{"S6", "One call in ten is slow, then one in two. It is another mix, and no overload.", []phase{
		{length: 60, rate: 1000, workers: 100, mean: 0.0145, service: mix(0.1)},
		{length: 60, rate: 1000, workers: 100, mean: 0.0525, service: mix(0.5)},
	}, false},
	{"S7", "Three slow workers under twice their load. Windows have few samples, and the limit still is small.", []phase{
		{length: 180, rate: 60, workers: 3, mean: 0.100},
	}, false},
	{"S8", "Nobody queues, but everybody gets slower by what else is inside. There is no queue to find, so limits are compared, and the lower one wins.", []phase{
		contended(60, 20), contended(60, 10), contended(60, 20),
	}, false},
	{"S9", "Two calls in five are cache hits, beside the queue. The quartile does not see the queue. The limit climbs until throughput stands still, and then the mean is believed.", []phase{
		{length: 60, rate: 5000, workers: 20, mean: 0.010, hits: 0.4},
	}, false},
	{"S10", "Two hundred workers, found from a limit of 20.", []phase{
		{length: 60, rate: 6000, workers: 200, mean: 0.050},
	}, false},
	{"S11", "A heavy tail under half as much again as the server can do.", []phase{
		{length: 120, rate: 3000, workers: 20, mean: 0.010, service: heavyTail},
	}, false},
	{"S12", "Every call runs into its deadline, and then none does. The limit closes, and opens within seconds.", []phase{
		{length: 60, rate: 1600, workers: 20, mean: 0.010},
		{length: 600, rate: 1600, workers: 20, mean: 0.010, expire: 1},
		{length: 60, rate: 1600, workers: 20, mean: 0.010},
	}, false},
}
