package storm

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// errStopped is that of a run that was told to stop.
var errStopped = errors.New("storm: stopped")

// run is a storm that goes on.
type run struct {
	*Case
	client  *client
	queue   queue
	gate    gate
	figures *Figures
	// refused is what was refused in this tick, by number.
	refused []int

	// Of the tick: how much the server has done in it, and when, from its beginning, it was
	// done with the last request or became busy again.
	tick   int
	began  time.Time
	served int
	free   time.Duration
}

// Simulate runs a storm and returns its figures. Ticks counts those that are over, for
// others to read. It fails if it is told to stop, or a budget or a limit cannot be had.
func Simulate(c *Case, stop *atomic.Bool, ticks *atomic.Int64) (f *Figures, err error) {
	// Only a limiter needs the clock, but the bubble costs the others nothing.
	err = bubble.Run(func() error {
		f, err = simulate(c, c.detailed(), stop, ticks)
		return err
	})
	return f, err
}

// simulate runs it, in detail or not. It must be in a bubble if there is a limit.
func simulate(c *Case, detailed bool, stop *atomic.Bool, ticks *atomic.Int64) (*Figures, error) {
	r, err := newRun(c)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	for r.tick = range c.Length {
		if stop.Load() {
			return nil, errStopped
		}
		r.step(start, detailed)
		ticks.Add(1)
	}
	r.figures.finish(c)
	return r.figures, nil
}

func newRun(c *Case) (*run, error) {
	client, err := newClient(c)
	if err != nil {
		return nil, err
	}
	r := &run{Case: c, client: client, figures: newFigures(c), refused: make([]int, c.attempts())}
	r.gate, err = newGate(c, &r.queue)
	return r, err
}

// step goes through the tick of a run that has begun at start.
func (r *run) step(start time.Time, detailed bool) {
	r.began = start.Add(time.Duration(r.tick) * time.Second)
	r.gate.begin(r.began)
	r.fail()
	r.arrive(detailed)
	r.figures.Queue[r.tick] = r.queue.n
}

// fail tells the clients what has failed since the last tick.
func (r *run) fail() {
	r.client.begin(r.tick, r.began)
	r.queue.timedOut(r.tick-r.Timeout-1, func(b batch) {
		r.gate.timedOut(b.n)
		r.figures.fail(r.tick, r.client.failed(b.number, b.n))
	})
	for number, n := range r.refused {
		if n > 0 {
			r.figures.fail(r.tick, r.client.failed(number, n))
			r.refused[number] = 0
		}
	}
}

// arrive has the attempts of the tick come, and the server work.
func (r *run) arrive(detailed bool) {
	calls := 0
	if r.tick < r.Calls {
		calls = r.Load
	}
	r.client.call(calls)
	due := r.client.at(0)
	r.figures.arrive(due)
	r.served = 0
	if detailed {
		r.inDetail(due)
	} else {
		for number, n := range due {
			if n > 0 {
				r.queue.push(batch{r.tick, number, n})
				r.figures.come(r.tick, n)
			}
		}
		for r.working() {
			r.serve(r.Capacity - r.served)
		}
	}
	clear(due)
}

// working tells whether the server could do more in this tick.
func (r *run) working() bool { return r.queue.n > 0 && r.served < r.Capacity && !r.out() }

// out tells whether the server does nothing in this tick.
func (r *run) out() bool { return r.tick >= r.Start && r.tick < r.Start+r.Outage }

// each is how long the server takes for a request.
func (r *run) each() time.Duration { return time.Second / time.Duration(r.Capacity) }

// serve has the server do up to n.
func (r *run) serve(n int) {
	b := r.queue.pop(n)
	r.served += b.n
	fresh := r.tick-b.tick <= r.Timeout
	r.gate.served(b.n, fresh)
	r.figures.serve(r.Case, r.tick, b, fresh)
}

// inDetail has the attempts come one by one, at equal distances, with the calls evenly among
// the retries.
func (r *run) inDetail(due []int) {
	calls, retries := due[0], 0
	for _, n := range due[1:] {
		retries += n
	}
	all := calls + retries
	number, left := 0, 0 // of the retries
	share := 0           // of the next call, in parts of all
	for i := range all {
		at := time.Duration(i) * time.Second / time.Duration(all)
		r.serveUntil(at)
		if share += calls; share >= all {
			share -= all
			r.offer(0, at)
			continue
		}
		for left == 0 {
			number++
			left = due[number]
		}
		left--
		r.offer(number, at)
	}
	r.serveUntil(time.Second)
	r.free -= time.Second
	if r.out() {
		r.free = 0 // what it has begun it begins again
	}
}

// offer has one attempt come to the gate.
func (r *run) offer(number int, at time.Duration) {
	r.gate.wait(r.began.Add(at))
	admission := r.gate.offer(number)
	if admission == unsent {
		r.client.unsent(number)
	} else {
		r.figures.come(r.tick, 1)
	}
	if admission != admitted {
		r.refused[number]++
		r.figures.Refused++
		return
	}
	if r.queue.n == 0 {
		r.free = at
	}
	r.queue.push(batch{r.tick, number, 1})
}

// serveUntil has the server do what it can until a moment of the tick.
func (r *run) serveUntil(at time.Duration) {
	for r.working() && r.free+r.each() <= at {
		r.free += r.each()
		r.gate.wait(r.began.Add(r.free))
		r.serve(1)
	}
}
