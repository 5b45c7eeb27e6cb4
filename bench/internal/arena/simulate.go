package arena

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
	"github.com/holdfast-go/holdfast/permit"
)

// ErrStopped is returned by Simulate when it was told to stop.
var ErrStopped = errors.New("arena: stopped")

const (
	// goodWithin is how long a good call takes at most.
	goodWithin = 500 * time.Millisecond
	// tick is how often limits are looked at, and the step of the course over time.
	tick = 100 * time.Millisecond
	// stopEvery is after how many calls a simulation looks whether to stop.
	stopEvery = 4096
)

// Options are what a simulation does besides.
type Options struct {
	// Course keeps how the figures went over time.
	Course bool
	// Stop, if it is not nil and becomes true, ends the simulation early.
	Stop *atomic.Bool
	// Calls, if it is not nil, counts the calls that have come.
	Calls *atomic.Int64
}

// Simulate runs a scenario against a limit of its own for each client. On error there
// are no figures. It may run in any number of goroutines at the same time.
func Simulate(s *Scenario, m *Maker, seed uint64, o Options) (*Figures, error) {
	var figures *Figures
	err := bubble.Run(func() error {
		r, err := newRun(s, m, seed, o)
		if err != nil {
			return err
		}
		if err := r.play(); err != nil {
			return err
		}
		figures = r.figures()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return figures, nil
}

// call is an admitted call.
type call struct {
	start   time.Duration
	service time.Duration // nothing in its way
	client  int32
	phase   int32
	beside  bool
}

// run is a simulation. It belongs to one goroutine, in a bubble.
type run struct {
	scenario *Scenario
	options  Options
	clients  []Contender
	base     time.Time
	now      time.Duration // the clock of the bubble, since base

	// Streams of random numbers, so that a change of one part leaves the others.
	arrivals, services, pick *rand.Rand

	ends    events
	waiting fifo // at the server
	busy    int  // workers, or calls in contention
	calls   []call
	free    []int32 // indexes of calls that are not in use

	phase      int
	phaseStart time.Duration
	nextTick   time.Duration
	seen       int64 // calls that have come
	record     recorder
	perClient  []int // good calls
}

func newRun(s *Scenario, m *Maker, seed uint64, o Options) (*run, error) {
	n := max(s.Clients, 1)
	r := &run{
		scenario: s, options: o, base: time.Now(), nextTick: tick,
		arrivals:  rand.New(rand.NewPCG(seed, 1)),
		services:  rand.New(rand.NewPCG(seed, 2)),
		pick:      rand.New(rand.NewPCG(seed, 3)),
		perClient: make([]int, n),
		record:    newRecorder(s, o.Course),
	}
	for range n {
		c, err := m.New(float64(s.Phases[0].Workers) / float64(n))
		if err != nil {
			return nil, fmt.Errorf("arena: %s: %w", m.Name, err)
		}
		r.clients = append(r.clients, c)
	}
	return r, nil
}

// play goes through the phases and waits for the last calls.
func (r *run) play() error {
	for i := range r.scenario.Phases {
		r.phase, r.phaseStart = i, r.now
		r.serve() // there may be more workers now
		p := &r.scenario.Phases[i]
		until := r.phaseStart + p.Length
		// The traffic has no memory, so it can begin anew with each phase.
		for next := r.now + r.pause(p); next < until; next += r.pause(p) {
			r.playUntil(next)
			r.sleepUntil(next)
			r.arrive(p)
			if r.seen++; r.seen%stopEvery == 0 && r.pulse() {
				return ErrStopped
			}
		}
		r.playUntil(until)
		r.sleepUntil(until)
		r.record.phaseEnded(r)
	}
	r.pulse()
	for len(r.ends.heap) > 0 {
		r.end(r.ends.pop())
	}
	return r.check()
}

// pulse reports progress, and whether to stop.
func (r *run) pulse() bool {
	if c := r.options.Calls; c != nil {
		n := r.seen % stopEvery
		if n == 0 {
			n = stopEvery
		}
		c.Add(n)
	}
	return r.options.Stop != nil && r.options.Stop.Load()
}

// check holds the books against each other: by Little's law the time that all calls
// spent in flight is the integral of how many were.
func (r *run) check() error {
	switch {
	case time.Since(r.base) != r.now:
		return fmt.Errorf("arena: internal error: the clock says %v after %v", time.Since(r.base), r.now)
	case r.record.inFlight != 0 || r.busy != 0 || r.waiting.len() != 0:
		return fmt.Errorf("arena: internal error: %d calls in flight, %d served and %d waiting at the end", r.record.inFlight, r.busy, r.waiting.len())
	case r.record.integral != r.record.sojourn:
		return fmt.Errorf("arena: internal error: Little's law: ∫n = %v, Σ latency = %v", r.record.integral, r.record.sojourn)
	}
	return nil
}

// pause is the time to the next call.
func (r *run) pause(p *Phase) time.Duration {
	return nanoseconds(r.arrivals.ExpFloat64() / p.Rate)
}

func nanoseconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// playUntil lets everything happen that comes before, or at, a time.
func (r *run) playUntil(until time.Duration) {
	for len(r.ends.heap) > 0 && r.ends.heap[0].at <= until {
		r.end(r.ends.pop())
	}
	r.tickUntil(until)
}

// tickUntil looks at the limits at each tick until then. Nothing changes between two
// events, so the clock may stay behind.
func (r *run) tickUntil(until time.Duration) {
	for r.nextTick <= until {
		limit := 0
		for _, c := range r.clients {
			limit += c.Limit()
		}
		r.record.ticked(r.nextTick, limit)
		r.nextTick += tick
	}
}

// sleepUntil moves the clock.
func (r *run) sleepUntil(t time.Duration) {
	if t > r.now {
		time.Sleep(t - r.now)
		r.record.advance(t - r.now)
		r.now = t
	}
}

// arrive is a call that comes.
func (r *run) arrive(p *Phase) {
	at := float64(r.now-r.phaseStart) / float64(p.Length)
	c := call{start: r.now, phase: int32(r.phase), service: nanoseconds(p.Service.Draw(r.services, at))}
	if len(r.clients) > 1 {
		c.client = int32(r.pick.IntN(len(r.clients)))
	}
	if p.Beside > 0 && r.pick.Float64() < p.Beside {
		c.beside = true
	}
	i := r.slot()
	admitted := r.clients[c.client].Acquire(r.now, int(i))
	r.record.arrived(r.phase, at, admitted)
	if !admitted {
		r.free = append(r.free, i)
		return
	}
	r.calls[i] = c
	switch {
	case p.Outage > 0:
		r.ends.push(event{at: r.now + p.Outage, call: i})
	case c.beside:
		r.ends.push(event{at: r.now + p.BesideTime, call: i})
	case p.Contention:
		r.busy++
		n, workers := float64(r.busy), float64(p.Workers)
		slowdown := max(1, n/workers) * (1 + 0.5*max(0, n-workers)/workers)
		r.ends.push(event{at: r.now + nanoseconds(c.service.Seconds()*slowdown), call: i, server: true})
	default:
		r.waiting.push(i)
		r.serve()
	}
}

// serve gives waiting calls to free workers.
func (r *run) serve() {
	for r.waiting.len() > 0 && r.busy < r.scenario.Phases[r.phase].Workers {
		i := r.waiting.pop()
		r.busy++
		r.ends.push(event{at: r.now + r.calls[i].service, call: i, server: true})
	}
}

// end is a call that ends.
func (r *run) end(e event) {
	r.tickUntil(e.at - 1)
	r.sleepUntil(e.at)
	c := &r.calls[e.call]
	if e.server {
		r.busy--
		r.serve()
	}
	p := &r.scenario.Phases[c.phase]
	outcome := permit.Success
	if p.Outage > 0 {
		outcome = permit.Expired
	}
	latency := r.now - c.start
	good := outcome == permit.Success && latency <= goodWithin
	if good {
		r.perClient[c.client]++
	}
	r.record.ended(c, latency, good)
	r.clients[c.client].Release(r.now, int(e.call), outcome)
	r.free = append(r.free, e.call)
}

// slot returns the index of a call that is not in use.
func (r *run) slot() int32 {
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		return i
	}
	r.calls = append(r.calls, call{})
	return int32(len(r.calls) - 1)
}
