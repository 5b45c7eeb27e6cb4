package sizing

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	// heavier is the higher of the two loads, and overload the one at which the limit is looked
	// for: of the present load, and of the capacity.
	heavier  = 1.5
	overload = 1.5
	// warmUpShare of the calls come before anything is judged: the gates of the hedger need some
	// thousands to find out that hedges pay.
	warmUpShare = 0.5
	// longest is how long a simulation is in its own time: with little traffic it has fewer
	// calls.
	longest = 2 * time.Hour
	// roomy is how many times the calls that are in flight on average a dependency serves whose
	// workers are not known.
	roomy = 4
	// tick is the resolution of hedgearena.
	tick = 100 * time.Millisecond
)

// Sizing sizes the limit, the delay and the budget for a dependency.
type Sizing struct {
	Input *Input
	// Rate is the present calls a second.
	Rate float64
	// Timeout is how long a client waits.
	Timeout time.Duration
	// Idempotent tells that a call may be carried out twice. Doubt, if it is not empty, is why not,
	// or why it is only taken to be so.
	Idempotent bool
	Doubt      string
	// Calls is about how many a simulation judges.
	Calls int
	Seeds []uint64
	// Parallel simulations run at the same time.
	Parallel int
	// Begin, if it is not nil, is told of each stage, with its number of simulations, before it
	// begins, and returns what to call when it is over.
	Begin func(stage string, runs int, progress func() (runs int, share float64)) (end func())
}

// Effect is what a set-up does at a load. Times are in milliseconds.
type Effect struct {
	P50           float64 `json:"p50_ms"`
	P99           float64 `json:"p99_ms"`
	FailedPercent float64 `json:"failed_percent"`
	ExtraPercent  float64 `json:"extra_percent"`
	// AnsweredRate is the good answers a second.
	AnsweredRate float64 `json:"answered_per_second"`
}

// Effects are those at the present load and at 1.5 times that.
type Effects struct {
	Present Effect `json:"present"`
	Heavier Effect `json:"heavier"`
}

// setup is what is simulated: a limiter, and how it is hedged. The limiter and what
// policy sets up are made for each simulation anew.
type setup struct {
	limit  limitSetup
	policy hedgearena.Policy
}

// limitSetup makes a limiter.
type limitSetup func() (*limiter.Limiter, error)

// job is a set-up at a rate.
type job struct {
	setup
	rate float64
	// times as many calls as usual: 0 is 1.
	times float64
}

// scenario is the model of the dependency, called at a rate, so many times as many calls as usual.
func (s *Sizing) scenario(rate, times float64) *hedgearena.Scenario {
	law := s.Input.Latency
	slots := s.Input.Workers()
	if slots == 0 {
		slots = int(math.Ceil(roomy*heavier*s.Rate*law.Mean())) + 100
	}
	length := func(calls float64) time.Duration {
		d := min(seconds(times*calls/rate), longest)
		return max((d + tick - 1).Truncate(tick), tick)
	}
	return &hedgearena.Scenario{
		ID: "dependency", Replicas: 1, Slots: slots, Law: law, Timeout: s.Timeout,
		Phases: []hedgearena.Phase{
			{Name: "warm-up", Length: length(warmUpShare * float64(s.Calls))},
			{Name: "judged", Length: length(float64(s.Calls))},
		},
	}
}

// run runs all jobs with all seeds, and returns the means over the seeds.
func (s *Sizing) run(ctx context.Context, stage string, jobs []job) ([]Effect, error) {
	n := len(s.Seeds)
	figures := make([]*hedgearena.Figures, len(jobs)*n)
	cases := make([]hedgearena.Case, len(jobs))
	planned := 0.0
	for i := range jobs {
		j := &jobs[i]
		x := s.scenario(j.rate, max(j.times, 1))
		cases[i] = hedgearena.Case{Scenario: x, Load: j.rate / x.Capacity(), Policy: &j.policy, NewLimiter: j.limit}
		planned += x.Calls(cases[i].Load) * float64(n)
	}
	var calls, finished atomic.Int64
	end := s.begin(stage, len(figures), func() (int, float64) {
		return int(finished.Load()), min(1, float64(calls.Load())/max(planned, 1))
	})
	defer end()
	err := bubble.Each(ctx, s.Parallel, len(figures), func(i int, stop *atomic.Bool) error {
		f, err := hedgearena.Simulate(cases[i/n], s.Seeds[i%n], hedgearena.Options{Stop: stop, Calls: &calls})
		if err != nil {
			return err
		}
		figures[i] = f // nobody else has this place
		finished.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	effects := make([]Effect, len(jobs))
	for i, f := range figures {
		effects[i/n].add(&f.Total, cases[i/n].Scenario.Phases[1].Length, n)
	}
	return effects, nil
}

func (s *Sizing) begin(stage string, runs int, progress func() (int, float64)) (end func()) {
	if s.Begin == nil {
		return func() {}
	}
	return s.Begin(stage, runs, progress)
}

// add adds one of n seeds.
func (e *Effect) add(f *hedgearena.PhaseFigures, length time.Duration, n int) {
	share := 1 / float64(n)
	e.P50 += share * f.P50
	e.P99 += share * f.P99
	e.FailedPercent += share * f.FailedPercent
	e.ExtraPercent += share * f.ExtraPercent
	e.AnsweredRate += share * float64(f.Good) / length.Seconds()
}

// runBoth runs set-ups at the present load and at the heavier one.
func (s *Sizing) runBoth(ctx context.Context, stage string, setups []setup) ([]Effects, error) {
	var jobs []job
	for _, x := range setups {
		jobs = append(jobs, job{setup: x, rate: s.Rate}, job{setup: x, rate: heavier * s.Rate})
	}
	effects, err := s.run(ctx, stage, jobs)
	if err != nil {
		return nil, err
	}
	both := make([]Effects, len(setups))
	for i := range both {
		both[i] = Effects{Present: effects[2*i], Heavier: effects[2*i+1]}
	}
	return both, nil
}

// unhedged is no hedging.
func unhedged() hedgearena.Policy {
	for _, p := range hedgearena.Policies() {
		if p.Name == hedgearena.NoneName {
			return p
		}
	}
	panic("sizing: internal error: hedgearena has no " + hedgearena.NoneName)
}

// newLimiter makes a limiter whose panics end the simulation.
func newLimiter(c limiter.Config) (*limiter.Limiter, error) {
	c.OnPanic = func(v any, _ []byte) { panic(v) }
	return limiter.New(c)
}

// library is the hedger of the library.
func library(name string, change func(*hedgedlimit.Config) error) hedgearena.Policy {
	return hedgearena.Library(name, "", change)
}

// utilisation is the share of the capacity that a rate takes, 0 if it is not known.
func (s *Sizing) utilisation(rate float64) float64 {
	if s.Input.Capacity == 0 {
		return 0
	}
	return rate / s.Input.Capacity
}
