package hedgearena

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// Figures is what came of a case with one seed. Times are in milliseconds unless the
// name says otherwise.
type Figures struct {
	// Total is of all phases but the first, which warms up.
	Total PhaseFigures `json:"total"`
	// Phases are all of them.
	Phases []PhaseFigures `json:"phases"`
	// Calls is how many calls came.
	Calls int `json:"calls"`
	// Course is how it went over time, if it was asked for.
	Course *Course `json:"-"`

	latency *hdrhistogram.Histogram // of Total, nil if it was not asked for
	longest time.Duration
}

// Answered is the share of the calls of Total that were not refused.
func (f *Figures) Answered() float64 {
	return float64(f.Total.Calls-f.Total.Refused) / float64(max(f.Total.Calls, 1))
}

// Within is the time in milliseconds within which a share of all calls of Total had ended, a
// refused one being slower than any other. It is the longest that a call can take if fewer did.
// The latencies must have been asked for.
func (f *Figures) Within(share float64) float64 {
	of := share / max(f.Answered(), 1e-9)
	if of > 1 {
		return 1000 * f.longest.Seconds()
	}
	return quantile(f.latency, f.longest, 100*of)
}

// PhaseFigures is about the calls that came in a phase, whenever they ended.
type PhaseFigures struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
	Good  int    `json:"good"`
	// Refused got no permit, and TimedOut no answer within the time-out.
	Refused  int `json:"refused"`
	TimedOut int `json:"timed_out"`
	// FailedPercent is the share of both.
	FailedPercent float64 `json:"failed_percent"`
	// Percentiles of what was not refused. A call that timed out took the time-out.
	P50  float64 `json:"p50_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p99_9_ms"`
	// Primaries were sent, and so many attempts besides: ExtraPercent is their ratio.
	Primaries    int     `json:"primaries"`
	Extra        int     `json:"extra"`
	ExtraPercent float64 `json:"extra_percent"`
	// SettledExtraPercent is the extra attempts of the calls from the fifth second of the
	// phase on, as a share of those calls, and −1 if it is shorter.
	SettledExtraPercent float64 `json:"settled_extra_percent"`
	// RecoverySeconds is when the first second began in which 95 % of the calls that came
	// ended well: in seconds since the phase began, to a tenth of a second, −1 if never.
	RecoverySeconds float64 `json:"recovery_seconds"`
	// Due hedges were Won, lost or Skipped, by reason. All are 0 where the policy does not
	// count them.
	Due     uint64            `json:"due"`
	Won     uint64            `json:"won"`
	Skipped map[string]uint64 `json:"skipped"`
}

// goodShare is what a second must reach for its goodput to be back.
const goodShare = 0.95

// figures works out what came of the run.
func (r *run) figures() *Figures {
	rec := r.record
	latency := newHistogram(rec.longest)
	f := &Figures{Calls: r.seen, longest: rec.longest}
	last, _ := r.caller.stats()
	for i := range rec.phases {
		p := &rec.phases[i]
		end := last
		if i+1 < len(rec.phases) {
			end = rec.phases[i+1].stats
		}
		x := p.figures(&end, rec.longest)
		x.Name = r.Scenario.Phases[i].Name
		from := int(p.begin / tick)
		x.RecoverySeconds = secondsTo(rec.ticks[from : from+int(r.Scenario.Phases[i].Length/tick)])
		f.Phases = append(f.Phases, x)
		if i > 0 {
			f.Total.add(&x)
			latency.Merge(p.latency)
		}
	}
	f.Total.Name = "total"
	f.Total.rates(latency, rec.longest)
	if r.options.Latency {
		f.latency = latency
	}
	if r.options.Course {
		f.Course = newCourse(rec.ticks)
	}
	return f
}

// figures are those of a phase, the library having counted to end when it was over, and no call
// having taken more than the longest.
func (p *phaseCount) figures(end *hedgedlimit.Stats, longest time.Duration) PhaseFigures {
	f := PhaseFigures{
		Calls: p.calls, Good: p.good, Refused: p.refused, TimedOut: p.timedOut,
		Primaries: p.primaries, Extra: p.extra, SettledExtraPercent: -1,
		Due: end.Due - p.stats.Due, Skipped: map[string]uint64{},
	}
	for k := 1; k < len(end.Won); k++ {
		f.Won += end.Won[k] - p.stats.Won[k]
	}
	for i := range end.Skipped {
		if n := end.Skipped[i] - p.stats.Skipped[i]; n > 0 {
			f.Skipped[hedgedlimit.Skip(i).String()] = n
		}
	}
	if p.lateCalls > 0 {
		f.SettledExtraPercent = 100 * float64(p.lateExtra) / float64(p.lateCalls)
	}
	f.rates(p.latency, longest)
	return f
}

// add adds the counts of a phase.
func (f *PhaseFigures) add(x *PhaseFigures) {
	f.Calls += x.Calls
	f.Good += x.Good
	f.Refused += x.Refused
	f.TimedOut += x.TimedOut
	f.Primaries += x.Primaries
	f.Extra += x.Extra
	f.Due += x.Due
	f.Won += x.Won
	if f.Skipped == nil {
		f.Skipped = map[string]uint64{}
	}
	for reason, n := range x.Skipped {
		f.Skipped[reason] += n
	}
	f.SettledExtraPercent, f.RecoverySeconds = -1, -1
}

// rates works out what follows from the counts.
func (f *PhaseFigures) rates(latency *hdrhistogram.Histogram, longest time.Duration) {
	f.P50, f.P99, f.P999 = quantile(latency, longest, 50), quantile(latency, longest, 99), quantile(latency, longest, 99.9)
	if f.Calls > 0 {
		f.FailedPercent = 100 * float64(f.Refused+f.TimedOut) / float64(f.Calls)
	}
	if f.Primaries > 0 {
		f.ExtraPercent = 100 * float64(f.Extra) / float64(f.Primaries)
	}
}

// quantile is a percentile in milliseconds. The buckets of a histogram end a little beyond what
// was put into them.
func quantile(latency *hdrhistogram.Histogram, longest time.Duration, percent float64) float64 {
	return float64(min(latency.ValueAtQuantile(percent), longest.Microseconds())) / 1000
}

// secondsTo is when the first second began whose calls ended well.
func secondsTo(ticks []tickCount) float64 {
	const second = int(time.Second / tick)
	for i := 0; i+second <= len(ticks); i++ {
		calls, well := 0, 0
		for _, t := range ticks[i : i+second] {
			calls += t.calls
			well += t.good
		}
		if float64(well) >= goodShare*float64(calls) {
			return float64(i) / float64(second)
		}
	}
	return -1
}

// Course is how a run went: one point for every tenth of a second.
type Course struct {
	Seconds []float64
	// Limit and InFlight, the attempts that somebody waits for, are of that instant.
	Limit, InFlight []float64
	// Good is a rate, Extra a share of the calls in percent, of the calls that came in
	// the tenth of a second after it.
	Good, Extra []float64
	// P50 and P99 are of the same calls, in milliseconds, and those of the point before
	// if none was answered.
	P50, P99 []float64
}

func newCourse(ticks []tickCount) *Course {
	c := &Course{}
	p50, p99 := 0.0, 0.0
	for i := range ticks {
		t := &ticks[i]
		c.Seconds = append(c.Seconds, float64(i)*tick.Seconds())
		c.Limit = append(c.Limit, float64(t.limit))
		c.InFlight = append(c.InFlight, float64(t.inFlight))
		c.Good = append(c.Good, float64(t.good)/tick.Seconds())
		c.Extra = append(c.Extra, 100*float64(t.extra)/float64(max(t.calls, 1)))
		if n := len(t.latency); n > 0 {
			slices.Sort(t.latency)
			p50, p99 = 1000*t.latency[n/2].Seconds(), 1000*t.latency[n*99/100].Seconds()
		}
		c.P50, c.P99 = append(c.P50, p50), append(c.P99, p99)
	}
	return c
}
