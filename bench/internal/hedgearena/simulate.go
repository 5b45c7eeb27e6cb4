package hedgearena

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// ErrStopped is returned by Simulate when it was told to stop.
var ErrStopped = errors.New("hedgearena: stopped")

const (
	// usualTimeout is how long a client waits where the scenario does not say.
	usualTimeout = time.Second
	// stopEvery is after how many calls a simulation looks whether to stop.
	stopEvery = 1024
	// apart is within which time attempts are told apart that began in one instant.
	apart = time.Microsecond
)

// Options are what a simulation does besides.
type Options struct {
	// Course keeps how it went over time.
	Course bool
	// Latency keeps the latencies, some 100 KB, for Figures.Within.
	Latency bool
	// Stop, if it is not nil and becomes true, ends the simulation early.
	Stop *atomic.Bool
	// Calls, if it is not nil, counts the calls that have come.
	Calls *atomic.Int64
}

// Case is what one simulation is about, but for the seed.
type Case struct {
	Scenario *Scenario
	// Load is a share of the capacity.
	Load   float64
	Limit  Limit
	Mode   Mode
	Policy *Policy
	// NewLimiter, if it is not nil, makes what stands in front instead of Limit and Mode.
	NewLimiter func() (*limiter.Limiter, error)
}

// String names the case.
func (c Case) String() string {
	return fmt.Sprintf("%s at %g %%, limit %s, %s, %s", c.Scenario.ID, 100*c.Load, c.Limit.Name, c.Mode, c.Policy.Name)
}

// Simulate runs a case with a seed. On error there are no figures. It may run in any
// number of goroutines at the same time.
func Simulate(c Case, seed uint64, o Options) (*Figures, error) {
	var figures *Figures
	err := bubble.Run(func() error {
		r, err := newRun(c, seed, o)
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

// run is a simulation, in a bubble. One goroutine lets the calls come; each call has
// one, and what the policy adds.
type run struct {
	Case
	options  Options
	seed     uint64
	draws    *draws
	arrivals *rand.Rand
	server   *server
	limiter  *limiter.Limiter
	caller   caller
	record   *recorder
	base     time.Time

	calls   sync.WaitGroup
	seen    int
	strange atomic.Pointer[error] // what no call should have returned
}

func newRun(c Case, seed uint64, o Options) (*run, error) {
	s := c.Scenario
	r := &run{
		Case: c, options: o, seed: seed,
		draws:    &draws{seed: mix(seed), replicas: s.Replicas, law: s.Service.quantile},
		arrivals: rand.New(rand.NewPCG(seed, 1)),
		server:   newServer(s),
		record:   newRecorder(s),
		base:     time.Now(),
	}
	var err error
	newLimiter := c.NewLimiter
	if newLimiter == nil {
		newLimiter = func() (*limiter.Limiter, error) { return c.Limit.newLimiter(s, c.Mode) }
	}
	if r.limiter, err = newLimiter(); err == nil {
		r.caller, err = c.Policy.new(setup{s, r.limiter, r.draws})
	}
	if err != nil {
		return nil, fmt.Errorf("hedgearena: %s: %w", c, err)
	}
	return r, nil
}

// play goes through the phases and waits for the last calls.
func (r *run) play() error {
	stop := make(chan struct{})
	var freezers sync.WaitGroup
	if f := r.Scenario.Freeze; f.For > 0 && f.Together {
		all := make([]int, r.Scenario.Replicas)
		for i := range all {
			all[i] = i
		}
		freezers.Go(func() { r.server.freezer(f, rand.New(rand.NewPCG(r.seed, 100)), stop, all...) })
	} else if f.For > 0 {
		for i := range r.Scenario.Replicas {
			freezers.Go(func() { r.server.freezer(f, rand.New(rand.NewPCG(r.seed, 100+uint64(i))), stop, i) })
		}
	}
	err := r.arrive()
	r.calls.Wait()
	time.Sleep(apart) // losers may have been kept apart
	close(stop)
	freezers.Wait()
	bubble.Settle()
	left := r.server.close()
	r.pulse()
	if err != nil {
		return err
	}
	return r.check(left)
}

// arrive lets the calls come.
func (r *run) arrive() error {
	var begin, now time.Duration
	ticks := 0
	for i := range r.Scenario.Phases {
		p := &r.Scenario.Phases[i]
		r.begin(i)
		until := begin + p.Length
		rate := p.load(r.Load) * r.Scenario.Capacity()
		// The traffic has no memory, so it can begin anew with each phase.
		pause := func() time.Duration { return seconds(r.arrivals.ExpFloat64() / rate) }
		for next := begin + pause(); next < until; next += pause() {
			time.Sleep(next - now)
			now = next
			for ; ticks <= int(now/tick); ticks++ {
				r.record.ticked(ticks, r.limiter.Limit())
			}
			r.come(call{number: r.seen, phase: i, came: now})
			if r.seen%stopEvery == 0 && r.pulse() {
				return ErrStopped
			}
		}
		time.Sleep(until - now)
		begin, now = until, until
	}
	return nil
}

// begin begins a phase.
func (r *run) begin(i int) {
	p := &r.Scenario.Phases[i]
	open := r.Scenario.Slots
	if p.Slots > 0 {
		open = p.Slots
	}
	r.server.setOpen(open)
	stats, _ := r.caller.stats()
	r.record.phases[i].stats = stats
}

// pulse reports progress, and whether to stop.
func (r *run) pulse() bool {
	if c := r.options.Calls; c != nil {
		n := r.seen % stopEvery
		if n == 0 {
			n = stopEvery
		}
		c.Add(int64(n))
	}
	return r.options.Stop != nil && r.options.Stop.Load()
}

// come is a call that comes.
func (r *run) come(c call) {
	r.seen++
	r.record.arrived(c)
	r.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), r.Scenario.timeout())
		defer cancel()
		err := r.caller.do(ctx, c.number, func(ctx context.Context, number int) error { return r.attempt(ctx, c, number) })
		how := good
		switch {
		case err == nil:
		case errors.Is(err, limiter.ErrLimitExceeded):
			how = refused
		case ctx.Err() != nil:
			how = timedOut
		default:
			r.strange.Store(&err)
		}
		r.record.finished(c, how, time.Since(r.base)-c.came, r.options.Course)
	})
}

// attempt is what a policy runs.
func (r *run) attempt(ctx context.Context, c call, number int) error {
	r.record.began(c, number)
	defer r.record.left()
	if time.Since(r.base) != c.came {
		// It began because something else ended, and so may others have in the same
		// instant. A random moment between them makes their order that of the draws,
		// and not that of the processors.
		time.Sleep(time.Duration(1 + r.draws.bits(drawApart, c.number, number)%uint64(apart)))
	}
	service := r.service(c, number) * orOne(r.Scenario.Phases[c.phase].Slow)
	return r.server.serve(ctx, r.draws.replica(c.number, number), seconds(service))
}

// service is how long the attempt, which begins now, takes in a slot, in seconds.
func (r *run) service(c call, number int) float64 {
	if law := r.Scenario.Law; law != nil {
		return law.Service(c.number, number, time.Since(r.base)-c.came, r.draws.uniform(drawService, c.number, number))
	}
	return r.draws.service(c.number, number)
}

// check holds the books against each other.
func (r *run) check(left int) error {
	if err := r.strange.Load(); err != nil {
		return fmt.Errorf("hedgearena: %s: a call returned %w", r.Case, *err)
	}
	attempts := 0
	sum := 0
	for i := range r.record.phases {
		p := &r.record.phases[i]
		attempts += p.primaries + p.extra
		sum += p.good + p.refused + p.timedOut
	}
	x := r.server
	switch {
	case r.record.calls != r.seen || r.record.ended != r.seen || sum != r.seen:
		return fmt.Errorf("hedgearena: internal error: of %d calls %d came and %d ended, %d in one way", r.seen, r.record.calls, r.record.ended, sum)
	case x.came != attempts || x.served+x.dropped+left != attempts:
		return fmt.Errorf("hedgearena: internal error: of %d attempts %d came to the replicas, %d were served, %d dropped and %d left", attempts, x.came, x.served, x.dropped, left)
	case r.record.out != 0 || r.limiter.InFlight() != 0:
		return fmt.Errorf("hedgearena: internal error: %d attempts and %d permits are out at the end", r.record.out, r.limiter.InFlight())
	}
	if s, ok := r.caller.stats(); ok {
		return checkStats(&s, r.seen, attempts)
	}
	return nil
}

// checkStats holds the identities of the library's counts at rest, and the counts
// against ours.
func checkStats(s *hedgedlimit.Stats, calls, attempts int) error {
	started, skipped := uint64(0), uint64(0)
	for _, n := range s.Started {
		started += n
	}
	for _, n := range s.Skipped {
		skipped += n
	}
	extra := s.Started[limiter.Hedge] + s.Started[limiter.Retry]
	switch {
	case s.Calls != uint64(calls) || s.Calls != s.Refused+s.Succeeded+s.Failed+s.ContextEnded:
	case started != uint64(attempts) || s.Due != extra+skipped:
	default:
		return nil
	}
	return fmt.Errorf("hedgearena: internal error: %d calls and %d attempts do not agree with %+v", calls, attempts, *s)
}
