package sizing

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// Latency is a law that can say what it makes of its tail.
type Latency interface {
	hedgearena.Law
	Tail() string
}

// Input is what is known of a dependency.
type Input struct {
	// Kind says what it was read from.
	Kind string
	// Latency is nil if there were too few answers to tell it from.
	Latency Latency
	// Answers and Failed are how many calls it rests on. Both are 0 for percentiles.
	Answers, Failed int
	// Rate is the calls a second that it was recorded at, 0 if that is not known.
	Rate float64
	// Capacity is the answers a second that the dependency gives at best, 0 if that is not
	// known.
	Capacity    float64
	Correlation Correlation
	// Methods are those of the calls, none if the input has none.
	Methods Methods
	// Notes are what a reader must know.
	Notes []string
	// Steps are of the load that was sent.
	Steps []Step
}

// TableInput makes an input of percentiles. Rate is 0 if it is not known.
func TableInput(kind string, t *Table, rate float64) *Input {
	in := &Input{Kind: kind, Latency: t, Rate: rate}
	if t.last.Quantile < 0.99 {
		in.note("the percentiles end at %s, so p99 is not known: %v goes on from them as the last two do, and so does what hedging is said to gain",
			percentile(t.last.Quantile), roundLatency(seconds(t.Quantile(0.99))))
	}
	return in
}

// newInput makes an input of samples. Rate, if it is not 0, counts instead of what their times
// say.
func newInput(kind string, samples []Sample, order Order, rate float64) (*Input, error) {
	in := &Input{Kind: kind, Rate: rate}
	answered := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return s.Failed })
	in.Answers, in.Failed = len(answered), len(samples)-len(answered)
	if order == Timed {
		sortByStart(answered)
		if in.Rate == 0 {
			in.Rate = rateOf(answered) * float64(len(samples)) / float64(max(len(answered), 1))
		}
	}
	if order == Ordered && isSorted(answered) {
		order = Unordered
		in.note("the latencies are sorted, so it is not known which calls were close in time")
	}
	trace, err := newTrace(answered, order, in.Rate)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, inBrackets(causesOf(samples)))
	}
	in.Latency = trace
	in.Correlation = correlate(answered, order, in.Rate)
	if share := float64(in.Failed) / float64(len(samples)); share > manyFailures {
		in.note("%.1f %% of the calls failed%s and are left out: if they were the slow ones, the tail is worse than it looks", 100*share, inBrackets(causesOf(samples)))
	}
	if in.Answers < 10*minSamples {
		in.note("the 99th percentile rests on %d of %d answers", in.Answers/minSamples, in.Answers)
	}
	return in, nil
}

// Workers is how many calls the dependency serves at a time at best, 0 if that is not known.
func (in *Input) Workers() int {
	if in.Capacity == 0 || in.Latency == nil {
		return 0
	}
	return max(1, int(math.Round(in.Capacity*in.Latency.Mean())))
}

// SetWorkers says how many there are. The latency must be known.
func (in *Input) SetWorkers(n int) { in.Capacity = float64(n) / in.Latency.Mean() }

func (in *Input) note(format string, args ...any) {
	in.Notes = append(in.Notes, fmt.Sprintf(format, args...))
}

func isSorted(samples []Sample) bool {
	up := slices.IsSortedFunc(samples, func(a, b Sample) int { return int(min(max(a.Latency-b.Latency, -1), 1)) })
	down := slices.IsSortedFunc(samples, func(a, b Sample) int { return int(min(max(b.Latency-a.Latency, -1), 1)) })
	return up || down
}
