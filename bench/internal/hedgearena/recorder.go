package hedgearena

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

const (
	// tick is the step of the course over time.
	tick = 100 * time.Millisecond
	// settledAfter is how long a policy has to find out what a phase is like, where a
	// target says so.
	settledAfter = 5 * time.Second
)

// recorder counts what happens in a simulation, by the phase in which the call came.
type recorder struct {
	mu sync.Mutex // a leaf
	// Guarded by mu.

	phases  []phaseCount
	longest time.Duration // that a call can take
	ticks   []tickCount   // by the time at which the call came
	out     int           // attempts that somebody waits for
	// Invariant, at rest: calls == ended.
	calls, ended int
}

type phaseCount struct {
	begin                          time.Duration
	calls, good, refused, timedOut int
	primaries, extra               int
	lateCalls, lateExtra           int // of the calls from settledAfter on
	latency                        *hdrhistogram.Histogram
	stats                          hedgedlimit.Stats // at its beginning
}

// tickCount is about the calls that came in a tick.
type tickCount struct {
	calls, good, extra int
	latency            []time.Duration // if the course is kept
	limit, inFlight    int             // at its beginning
}

// call is what the recorder is told of a call.
type call struct {
	number int
	phase  int
	came   time.Duration // since the beginning
}

// newHistogram counts latencies from a microsecond to well beyond the longest, with an error of
// 0.1 %.
func newHistogram(longest time.Duration) *hdrhistogram.Histogram {
	return hdrhistogram.New(1, 10*longest.Microseconds(), 3)
}

func newRecorder(s *Scenario) *recorder {
	r := &recorder{longest: s.timeout(), phases: make([]phaseCount, len(s.Phases)), ticks: make([]tickCount, s.Length()/tick)}
	begin := time.Duration(0)
	for i := range r.phases {
		r.phases[i].begin = begin
		r.phases[i].latency = newHistogram(r.longest)
		begin += s.Phases[i].Length
	}
	return r
}

func (r *recorder) tickOf(c call) *tickCount { return &r.ticks[min(int(c.came/tick), len(r.ticks)-1)] }

func (c call) late(p *phaseCount) bool { return c.came-p.begin >= settledAfter }

// arrived counts a call that comes.
func (r *recorder) arrived(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	p := &r.phases[c.phase]
	p.calls++
	if c.late(p) {
		p.lateCalls++
	}
	r.tickOf(c).calls++
}

// began counts an attempt.
func (r *recorder) began(c call, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out++
	p := &r.phases[c.phase]
	if number == 1 {
		p.primaries++
		return
	}
	p.extra++
	if c.late(p) {
		p.lateExtra++
	}
	r.tickOf(c).extra++
}

// left counts an attempt that has ended for its caller.
func (r *recorder) left() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out--
}

// result is how a call ended.
type result uint8

const (
	good result = iota
	refused
	timedOut
)

// finished counts the end of a call.
func (r *recorder) finished(c call, how result, latency time.Duration, course bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	p := &r.phases[c.phase]
	switch how {
	case good:
		p.good++
		r.tickOf(c).good++
	case timedOut:
		p.timedOut++
	case refused:
		p.refused++
		return // It has no latency: nobody waited for an answer.
	}
	_ = p.latency.RecordValue(max(latency.Microseconds(), 1)) // cannot fail within the bounds
	if course {
		t := r.tickOf(c)
		t.latency = append(t.latency, latency)
	}
}

// ticked notes what is in flight at the beginning of a tick.
func (r *recorder) ticked(i, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks[i].limit, r.ticks[i].inFlight = limit, r.out
}
