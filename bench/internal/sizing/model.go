package sizing

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// Model is a dependency of which everything is known, to hold a recommendation against. It is
// worked out call by call, and shares nothing with the arena in which recommendations are tried.
type Model struct {
	Workers int
	Service hedgearena.Law
	// Spells are stretches in which every call is slow. The zero value is none.
	Spells Spells
	Seed   uint64
}

// Spells are stretches of For, of which a Share is slow at random: Times as slow.
type Spells struct {
	For          time.Duration
	Share, Times float64
}

// Capacity is the answers a second at best.
func (m *Model) Capacity() float64 { return float64(m.Workers) / (m.Service.Mean() * m.Spells.mean()) }

// mean is by which factor spells make the mean longer.
func (x Spells) mean() float64 {
	if x.For == 0 {
		return 1
	}
	return 1 + x.Share*(x.Times-1)
}

// factor is how much longer a call takes that is begun at a time.
func (x Spells) factor(at time.Duration, seed uint64) float64 {
	if x.For == 0 || rand.New(rand.NewPCG(seed, uint64(at/x.For))).Float64() >= x.Share {
		return 1
	}
	return x.Times
}

// instants is a heap of times in seconds.
type instants []float64

func (h instants) Len() int           { return len(h) }
func (h instants) Less(i, j int) bool { return h[i] < h[j] }
func (h instants) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *instants) Push(x any)        { *h = append(*h, x.(float64)) }
func (h *instants) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// queue is a first-come-first-served queue before workers, worked out call by call.
type queue struct {
	free instants // when each worker is
	ends instants // when the calls inside end
}

func newQueue(workers int) *queue { return &queue{free: make(instants, workers)} }

// inside is how many calls there are at a time, which must not go back.
func (q *queue) inside(at float64) int {
	for len(q.ends) > 0 && q.ends[0] <= at {
		heap.Pop(&q.ends)
	}
	return len(q.ends)
}

// take lets a call in, and returns when it ends.
func (q *queue) take(at, service float64) float64 {
	end := max(at, q.free[0]) + service
	q.free[0] = end
	heap.Fix(&q.free, 0)
	heap.Push(&q.ends, end)
	return end
}

// Attack sends calls to it as a Poisson process. Who waits longer than the time-out has failed, and
// is served all the same.
func (m *Model) Attack(timeout time.Duration) Attack {
	source := rand.New(rand.NewPCG(m.Seed, 1))
	began := time.Duration(0) // of the step, so that spells differ
	return func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error) {
		var samples []Sample
		q := newQueue(m.Workers)
		for at := source.ExpFloat64() / rate; at < length.Seconds(); at += source.ExpFloat64() / rate {
			service := m.Service.Quantile(source.Float64()) * m.Spells.factor(began+seconds(at), m.Seed)
			latency := seconds(q.take(at, service) - at)
			s := Sample{Start: seconds(at), Latency: latency}
			if latency > timeout {
				s.Latency, s.Failed = timeout, true
			}
			samples = append(samples, s)
		}
		began += length
		return samples, ctx.Err()
	}
}

// BestLimit is the smallest limit that gets 99 % of the answers which any limit gets at 1.5 × the
// capacity, calls that do not fit being refused: what a recommendation should be.
func (m *Model) BestLimit(calls int) int {
	// Far more than ever helps: with so many waiting no worker is idle.
	most := 3*m.Workers + 50
	enough := int(math.Ceil(goodEnough * float64(m.admitted(most, calls))))
	low, high := m.Workers/2, most // with half of the workers at work there are too few answers
	for high-low > 1 {
		if middle := (low + high) / 2; m.admitted(middle, calls) >= enough {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// admitted is how many of the calls fit under a limit. All of them are answered in the end.
func (m *Model) admitted(limit, calls int) int {
	source := rand.New(rand.NewPCG(m.Seed, 2))
	rate := overload * m.Capacity()
	q := newQueue(m.Workers)
	at, n := 0.0, 0
	for range calls {
		at += source.ExpFloat64() / rate
		service := m.Service.Quantile(source.Float64()) * m.Spells.factor(seconds(at), m.Seed)
		if q.inside(at) < limit {
			q.take(at, service)
			n++
		}
	}
	return n
}
