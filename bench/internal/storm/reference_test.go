package storm

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
)

// naive is the model once more, request by request and without anything that makes it fast:
// no batches, no cursors, and the budget is what the calls of the tick pay in.
func naive(c *Case) (queues, good []int) {
	type request struct {
		came, number int
		done         bool
	}
	var all, queue []*request
	tries := c.attempts()
	budget := c.Layers[0].Budget
	for t := range c.Length {
		var coming []*request
		if t < c.Calls {
			for range c.Load {
				coming = append(coming, &request{came: t})
			}
		}
		left := int(budget*float64(c.Load) + 1e-9)
		var again []*request
		for _, r := range all {
			if r.done || t-r.came != c.Timeout+1 || r.number+1 == tries {
				continue
			}
			if budget > 0 && left == 0 {
				continue
			}
			left--
			again = append(again, &request{came: t, number: r.number + 1})
		}
		slices.SortStableFunc(again, func(a, b *request) int { return a.number - b.number })
		coming = append(coming, again...)
		all, queue = append(all, coming...), append(queue, coming...)
		answers := 0
		if t < c.Start || t >= c.Start+c.Outage {
			n := min(c.Capacity, len(queue))
			for _, r := range queue[:n] {
				r.done = true
				if t-r.came <= c.Timeout {
					answers++
				}
			}
			queue = queue[n:]
		}
		queues, good = append(queues, len(queue)), append(good, answers)
		all = slices.DeleteFunc(all, func(r *request) bool { return r.done || t-r.came > c.Timeout+1 })
	}
	return queues, good
}

// drawn is a small storm.
func drawn(r *rand.Rand) *Case {
	c := &Case{
		Capacity: 1 + r.IntN(12), Load: 1 + r.IntN(12), Timeout: 1 + r.IntN(3),
		Start: r.IntN(5), Outage: r.IntN(15), Length: 40, Calls: 10 + r.IntN(31),
	}
	switch r.IntN(3) {
	case 0:
		c.Layers = []Layer{{Tries: 1 + r.IntN(4)}, {Tries: 1 + r.IntN(3)}}
	case 1:
		c.Layers = []Layer{{Tries: 1 + r.IntN(9)}}
	case 2:
		// A budget whose payment for a tick is a whole number: the account then keeps nothing
		// for the next.
		c.Calls = c.Length
		c.Load = 10 * (1 + r.IntN(3))
		c.Layers = []Layer{{Tries: 1 + r.IntN(9), Budget: []float64{0.1, 0.3, 1}[r.IntN(3)]}}
	}
	return c
}

func simulated(t *testing.T, c *Case) *Figures {
	t.Helper()
	f, err := Simulate(c, new(atomic.Bool), new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSimulateAgreesWithNaiveModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		c := drawn(r)
		f := simulated(t, c)
		queues, good := naive(c)
		if !slices.Equal(f.Queue, queues) || !slices.Equal(f.Good, good) {
			t.Fatalf("%+v:\nqueue %v\nwant  %v\ngood  %v\nwant  %v", *c, f.Queue, queues, f.Good, good)
		}
		if f.Answered+f.Failed > f.Calls || f.Answered+f.Wasted != f.Served || f.Served+f.Queue[c.Length-1] != f.Came || f.Came+f.Refused != f.Attempts {
			t.Fatalf("%+v: the counts do not add up: %+v", *c, *f)
		}
	}
}

// Looking into the ticks changes nothing about a queue that lets everybody in, unless it
// matters which of the attempts of a tick is served first: with two tries left for one and
// none for the other it may, but does not in the rows that are known.
func TestInsideOfATick(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		c := drawn(r)
		c.Layers = []Layer{{Tries: 1}}
		compareDetail(t, c)
	}
	for _, row := range Rows(Defaults()) {
		if row.Known != "" {
			row.Length, row.Calls = 600, 600
			compareDetail(t, &row.Case)
		}
	}
}

func compareDetail(t *testing.T, c *Case) {
	t.Helper()
	var figures [2]*Figures
	for i, detailed := range []bool{false, true} {
		var err error
		if figures[i], err = simulate(c, detailed, new(atomic.Bool), new(atomic.Int64)); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := figures[0], figures[1]; !slices.Equal(a.Queue, b.Queue) || !slices.Equal(a.Good, b.Good) || !slices.Equal(a.Rate, b.Rate) {
		t.Fatalf("%s %+v:\nqueue %v\n  inside %v\ngood %v\n  inside %v", c.Name, *c, a.Queue, b.Queue, a.Good, b.Good)
	}
}
