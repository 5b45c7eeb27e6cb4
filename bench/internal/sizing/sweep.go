package sizing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

const (
	// stepFactor is between the rates of two steps of a sweep: fine enough that the first step
	// beyond what the dependency can serve is not far beyond it.
	stepFactor = 1.5
	// startShare of the present rate is where a sweep begins: that should be without a queue.
	startShare = 0.25
	// mustAnswer is the share of the calls that must have been answered in time for the dependency
	// to have kept up. Calls that would have failed at lower rates too do not count.
	mustAnswer = 0.9
	// manyFailures is a share of failures that a reader must know of.
	manyFailures = 0.01
	// unqueued is how much longer than at the lowest rate the median may be without a queue.
	unqueued = 1.05
	// settling is the share of a step in which queues fill.
	settling = 0.25
)

// Attack sends calls at a rate for a time, and returns when all have ended. If ctx ends it
// returns the calls that ended before, and its error.
type Attack func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error)

// Plan is the load of a sweep.
type Plan struct {
	// Rate is the present one, and MaxRate is never exceeded.
	Rate, MaxRate float64
	// Length is that of all steps together.
	Length time.Duration
	// Timeout is how long a call may take.
	Timeout time.Duration
}

// Step is one rate of a sweep.
type Step struct {
	Rate    float64 `json:"rate"`
	Seconds float64 `json:"seconds"`
	Calls   int     `json:"calls"`
	Failed  int     `json:"failed"`
	// Causes are those of the failures, the commonest first.
	Causes []Cause `json:"causes"`
	// Answered is the good answers a second, once queues had filled, and until the first call
	// timed out: then work begins that nobody waits for.
	Answered float64 `json:"answered"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`

	samples []Sample
	keptUp  bool
}

// rates are those of the steps, from a fourth of the present one to the highest.
func (p Plan) rates() []float64 {
	var rates []float64
	for r := startShare * p.Rate; r < p.MaxRate/1.01; r *= stepFactor {
		rates = append(rates, r)
	}
	return append(rates, p.MaxRate)
}

// lengths are those of the steps. A low rate gets more of the time, to be known as well.
func (p Plan) lengths(rates []float64) []time.Duration {
	sum := 0.0
	for _, r := range rates {
		sum += 1 / math.Sqrt(r)
	}
	var lengths []time.Duration
	for _, r := range rates {
		lengths = append(lengths, time.Duration(float64(p.Length)/(sum*math.Sqrt(r))))
	}
	return lengths
}

// Check tells whether the load is enough to learn from: even all of its calls may be too few.
func (p Plan) Check() error {
	calls := 0.0
	rates := p.rates()
	for i, d := range p.lengths(rates) {
		calls += rates[i] * d.Seconds()
	}
	if calls < minSamples {
		return fmt.Errorf("about %s, of which %d at least must be answered", brief.Count(int(calls), "call"), minSamples)
	}
	return nil
}

// Sweep sends more and more load until the dependency no longer keeps up, and tells of each step
// that is over. On an error the input, if it is not nil, is what was seen in the steps that were
// over; its latency is nil if they tell none.
func Sweep(ctx context.Context, kind string, p Plan, attack Attack, told func(Step)) (*Input, error) {
	var steps []Step
	var failure error
	capacity, failing := 0.0, 0.0 // failing is the share that failed at lower rates
	calls, failed := 0, 0
	rates := p.rates()
	lengths := p.lengths(rates)
	offset := time.Duration(0)
	for i, rate := range rates {
		samples, err := attack(ctx, rate, lengths[i])
		if err != nil {
			failure = err
			break
		}
		sortByStart(samples)
		s := newStep(rate, lengths[i], p.Timeout, failing, samples)
		// So that the steps follow each other.
		for k := range samples {
			samples[k].Start += offset
		}
		offset += lengths[i]
		steps = append(steps, s)
		told(s)
		if len(steps) == 1 && s.P50 > 0 && lengths[i].Seconds() < 8*s.P50/1000 {
			return stepsOnly(kind, steps), fmt.Errorf("%v is too short for calls that take %.0f ms", p.Length, s.P50)
		}
		if len(steps) == 1 && (!s.keptUp || s.fails()) {
			// Nothing is known of it without a queue, or as it is when it works.
			return stepsOnly(kind, steps), s.hopeless()
		}
		if s.keptUp {
			calls, failed = calls+s.Calls, failed+s.Failed
			failing = float64(failed) / float64(calls)
			continue
		}
		capacity = s.Answered
		break
	}
	in, err := fromSteps(kind, steps, capacity)
	if err != nil || in == nil {
		return in, errors.Join(failure, err)
	}
	if last := len(steps) - 1; capacity > 0 && float64(steps[last].Failed) > (failing+manyFailures)*float64(steps[last].Calls) {
		s := &steps[last]
		in.note("%d of %d calls at %.4g a second failed%s: that is taken for want of capacity", s.Failed, s.Calls, s.Rate, inBrackets(s.Causes))
	}
	switch {
	case capacity > 0 || failure != nil:
	case failing > manyFailures:
		in.note("at any rate up to %.4g calls a second about as many failed, %.1f %% of all: its capacity for the others is not known, and a higher -max-rate finds it; mend the failures first", p.MaxRate, 100*failing)
	default:
		in.note("it kept up with %.4g calls a second, so its capacity is not known: a higher -max-rate finds it", p.MaxRate)
	}
	return in, failure
}

// stepsOnly is an input of which only the steps are known.
func stepsOnly(kind string, steps []Step) *Input {
	in := &Input{Kind: kind, Steps: steps}
	for _, s := range steps {
		in.Answers += s.Calls - s.Failed
		in.Failed += s.Failed
	}
	return in
}

// fails tells whether more calls failed than may go without an answer, beyond what chance does.
func (s *Step) fails() bool {
	calls, share := float64(s.Calls), 1-mustAnswer
	return float64(s.Failed) > share*calls+surely*math.Sqrt(share*(1-share)*calls)
}

// hopeless is the error of a first step that fails or did not keep up.
func (s *Step) hopeless() error {
	if float64(s.Failed) > (1-mustAnswer)*float64(s.Calls) {
		return fmt.Errorf("%d of %d calls (%.0f %%) failed at %.4g a second already, a fourth of the present rate%s",
			s.Failed, s.Calls, 100*float64(s.Failed)/float64(s.Calls), s.Rate, inBrackets(s.Causes))
	}
	return fmt.Errorf("it did not keep up with %.4g calls a second, a fourth of the present rate: %.4g were answered", s.Rate, s.Answered)
}

// newStep works out what came of a step, in order of time, of which the share failing is no want
// of capacity: it failed at lower rates as well.
func newStep(rate float64, length, timeout time.Duration, failing float64, samples []Sample) Step {
	s := Step{Rate: rate, Seconds: length.Seconds(), Calls: len(samples), Causes: causesOf(samples), samples: samples}
	until := length
	for _, x := range samples {
		if x.Failed && x.Latency >= timeout {
			until = min(until, x.Start+x.Latency)
		}
	}
	from := time.Duration(settling * float64(until))
	var latencies []float64
	answered := 0
	for _, x := range samples {
		if x.Failed {
			s.Failed++
			continue
		}
		latencies = append(latencies, 1000*x.Latency.Seconds())
		if end := x.Start + x.Latency; end >= from && end < until {
			answered++
		}
	}
	window := (until - from).Seconds()
	s.Answered = float64(answered) / window
	// A few answers more or less are chance.
	due := rate * window * (1 - failing)
	s.keptUp = answered > 0 && float64(answered) >= min(mustAnswer*due, due-surely*math.Sqrt(due))
	if n := len(latencies); n > 0 {
		slices.Sort(latencies)
		s.P50, s.P99 = latencies[n/2], latencies[n*99/100]
	}
	return s
}

// fromSteps makes an input of the steps that had no queue, and of others if those have too few
// calls. Without a step it is nil, and on an error only the steps are known.
func fromSteps(kind string, steps []Step, capacity float64) (*Input, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	var samples []Sample
	calls, length := 0, 0.0
	queued := false
	for _, s := range steps {
		fits := s.P50 <= unqueued*steps[0].P50
		if fits || len(samples) < minSamples {
			queued = queued || !fits
			samples = append(samples, s.samples...)
			calls += s.Calls
			length += s.Seconds
		}
	}
	in, err := newInput(kind, samples, Timed, float64(calls)/length)
	if err != nil {
		return stepsOnly(kind, steps), err
	}
	in.Capacity, in.Steps = capacity, steps
	if queued {
		in.note("there were few calls at low rates, so some of those at higher ones count as well: the latency may have queues in it")
	}
	return in, nil
}
