package sizing

import (
	"context"
	"fmt"
	"math"
	"sort"
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
	// warmUpShare of the calls come before anything is judged, and at least warmUpLeast before
	// hedges are: the gates begin with a quarter of them, and take a step with every 16, so they
	// need some thousands of calls to find out that hedges pay.
	warmUpShare, warmUpLeast = 0.5, 4000
	// longest is how long a simulation is in its own time: with little traffic it has fewer
	// calls.
	longest = 2 * time.Hour
	// roomy is how many times the calls that are in flight on average a dependency serves whose
	// workers are not known.
	roomy = 4
	// lateShare of the calls beyond the time-out is told, and lateSteps is to what it is worked out.
	lateShare, lateSteps = 0.001, 10000
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
	// EqualP99 is within what as many of all calls are answered as without hedging are within
	// its P99. P99 is of the calls that were not refused, and so it falls where refusals take
	// the slow ones; this does not. Where nothing is compared it is P99.
	EqualP99 float64 `json:"equal_p99_ms"`
	// LowP99 and HighP99 are the lowest and the highest EqualP99 of a seed. The others are
	// means over the seeds.
	LowP99  float64 `json:"low_p99_ms"`
	HighP99 float64 `json:"high_p99_ms"`
	// HeldPercent is the share of the hedges that were due which the gates held back.
	HeldPercent float64 `json:"held_percent"`

	seeds []seedEffect
}

// seedEffect is what one seed made of it. P99 is EqualP99, plain is P99, and rank is the share of
// all calls that are within the P99 without hedging.
type seedEffect struct {
	p50, p99, failed, extra, rate float64
	plain, rank, held             float64
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
	// warmUp is how many calls come at least before anything is judged.
	warmUp float64
	// base, if it is not nil, is the effect without hedging that this is compared with, of the
	// same seeds.
	base *Effect
}

// scenario is the model of the dependency under a job, as one seed has it.
func (s *Sizing) scenario(j *job, seed uint64) *hedgearena.Scenario {
	rate, times := j.rate, max(j.times, 1)
	var law hedgearena.Law = s.Input.Latency
	if t, ok := law.(*Trace); ok {
		law = t.drawn(seed, int(times*float64(s.Calls)))
	}
	slots := s.Input.Workers()
	if slots == 0 {
		slots = int(math.Ceil(roomy*heavier*s.Rate*law.Mean())) + 100
	}
	length := func(calls float64) time.Duration {
		d := min(seconds(calls/rate), longest)
		return max((d + tick - 1).Truncate(tick), tick)
	}
	return &hedgearena.Scenario{
		ID: "dependency", Replicas: 1, Slots: slots, Law: law, Timeout: s.Timeout,
		Phases: []hedgearena.Phase{
			{Name: "warm-up", Length: length(max(warmUpShare*times*float64(s.Calls), j.warmUp))},
			{Name: "judged", Length: length(times * float64(s.Calls))},
		},
	}
}

// run runs all jobs with all seeds.
func (s *Sizing) run(ctx context.Context, stage string, jobs []job) ([]Effect, error) {
	n := len(s.Seeds)
	cases := make([]hedgearena.Case, len(jobs)*n)
	planned := 0.0
	for i := range cases {
		j := &jobs[i/n]
		x := s.scenario(j, s.Seeds[i%n])
		cases[i] = hedgearena.Case{Scenario: x, Load: j.rate / x.Capacity(), Policy: &j.policy, NewLimiter: j.limit}
		planned += x.Calls(cases[i].Load)
	}
	var calls, finished atomic.Int64
	end := s.begin(stage, len(cases), func() (int, float64) {
		return int(finished.Load()), min(1, float64(calls.Load())/max(planned, 1))
	})
	defer end()
	effects := make([]Effect, len(jobs))
	for i := range effects {
		effects[i].seeds = make([]seedEffect, n)
	}
	err := bubble.Each(ctx, s.Parallel, len(cases), func(i int, stop *atomic.Bool) error {
		f, err := hedgearena.Simulate(cases[i], s.Seeds[i%n], hedgearena.Options{Stop: stop, Calls: &calls, Latency: true})
		if err != nil {
			return err
		}
		rank := 0.99 * f.Answered()
		if base := jobs[i/n].base; base != nil {
			rank = base.seeds[i%n].rank
		}
		// Nobody else has this place.
		effects[i/n].seeds[i%n] = seedEffect{
			p50: f.Total.P50, p99: f.Within(rank), failed: f.Total.FailedPercent, extra: f.Total.ExtraPercent,
			rate:  float64(f.Total.Good) / cases[i].Scenario.Phases[1].Length.Seconds(),
			plain: f.Total.P99, rank: rank, held: held(&f.Total),
		}
		finished.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range effects {
		effects[i].sum()
	}
	return effects, nil
}

// Notes are what a reader must know of the simulations.
func (s *Sizing) Notes() []string {
	var notes []string
	if t, ok := s.Input.Latency.(*Trace); ok {
		if drawn := t.Drawn(s.Calls); drawn != "" {
			notes = append(notes, drawn)
		}
	}
	if smaller := s.scaled(); smaller != "" {
		notes = append(notes, smaller)
	}
	if late := s.late(); late > lateShare {
		notes = append(notes, fmt.Sprintf("%.2g %% of the calls take longer than -timeout %v without any queue: they fail whatever is set", 100*late, s.Timeout))
	}
	return notes
}

// late is the share of the latencies beyond the time-out.
func (s *Sizing) late() float64 {
	return 1 - float64(sort.Search(lateSteps, func(i int) bool {
		return s.Input.Latency.Quantile((float64(i)+0.5)/lateSteps) > s.Timeout.Seconds()
	}))/lateSteps
}

func (s *Sizing) begin(stage string, runs int, progress func() (int, float64)) (end func()) {
	if s.Begin == nil {
		return func() {}
	}
	return s.Begin(stage, runs, progress)
}

// held is the share in percent of the due hedges that the gates held back.
func held(f *hedgearena.PhaseFigures) float64 {
	sum := 0
	for _, why := range []hedgedlimit.Skip{hedgedlimit.SkipPressure, hedgedlimit.SkipStandstill, hedgedlimit.SkipSurge, hedgedlimit.SkipWin} {
		sum += int(f.Skipped[why.String()])
	}
	return 100 * float64(sum) / float64(max(f.Due, 1))
}

// sum takes the means over the seeds.
func (e *Effect) sum() {
	share := 1 / float64(len(e.seeds))
	for i, x := range e.seeds {
		e.P50 += share * x.p50
		e.P99 += share * x.plain
		e.FailedPercent += share * x.failed
		e.ExtraPercent += share * x.extra
		e.AnsweredRate += share * x.rate
		e.HeldPercent += share * x.held
		e.EqualP99 += share * x.p99
		if i == 0 || x.p99 < e.LowP99 {
			e.LowP99 = x.p99
		}
		e.HighP99 = max(e.HighP99, x.p99)
	}
}

// compare runs policies behind a limit at the present load and at the heavier one. None, if it is
// not nil, is what they are compared with.
func (s *Sizing) compare(ctx context.Context, stage string, limit limitSetup, policies []hedgearena.Policy, none *Effects) ([]Effects, error) {
	var setups []setup
	for _, p := range policies {
		setups = append(setups, setup{limit, p})
	}
	return s.runBoth(ctx, stage, setups, none)
}

// runBoth is compare for set-ups with limits of their own.
func (s *Sizing) runBoth(ctx context.Context, stage string, setups []setup, none *Effects) ([]Effects, error) {
	var jobs []job
	for _, x := range setups {
		now := job{setup: x, rate: s.Rate, warmUp: warmUpLeast}
		more := now
		more.rate = heavier * s.Rate
		if none != nil {
			now.base, more.base = &none.Present, &none.Heavier
		}
		jobs = append(jobs, now, more)
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

// judged is about how many calls all seeds of a row judge at the present load.
func (s *Sizing) judged() float64 {
	return min(float64(s.Calls), longest.Seconds()*s.Rate) * float64(len(s.Seeds))
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

// utilisation is the share of the capacity that a rate takes, 0 if it is not known.
func (s *Sizing) utilisation(rate float64) float64 {
	if s.Input.Capacity == 0 {
		return 0
	}
	return rate / s.Input.Capacity
}
