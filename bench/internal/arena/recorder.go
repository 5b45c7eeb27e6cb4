package arena

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// settled is how long after the beginning of a phase a limit must have found its new
// place, where a target says so.
const settled = 2 * time.Second

// parts is into how many parts a phase is cut to work out its ideal.
const parts = 20

// recorder counts what happens in a simulation.
type recorder struct {
	phases   []phaseCount
	course   *Course // nil if it is not kept
	inFlight int
	integral time.Duration // ∫ inFlight dt
	sojourn  time.Duration // Σ latency

	ticks     []tickCount
	now       tickCount
	latencies []time.Duration // of this tick, if the course is kept
}

// phaseCount is about the calls that came in a phase, whenever they ended.
type phaseCount struct {
	begin                            time.Duration
	offered, admitted, refused, good int
	inPart                           [parts]int // offered
	latency, settled                 *hdrhistogram.Histogram
	ticks                            [2]int // of the phase: from, to
}

// tickCount is about what happened in one tick, whatever phase it belongs to.
type tickCount struct {
	good, refused   int
	limit, inFlight int // at its end
}

func newRecorder(s *Scenario, course bool) recorder {
	r := recorder{phases: make([]phaseCount, len(s.Phases))}
	begin := time.Duration(0)
	for i := range r.phases {
		r.phases[i].begin = begin
		begin += s.Phases[i].Length
		// From a microsecond to two minutes, with an error of 0.1 %.
		r.phases[i].latency = hdrhistogram.New(1, (2 * time.Minute).Microseconds(), 3)
		r.phases[i].settled = hdrhistogram.New(1, (2 * time.Minute).Microseconds(), 3)
	}
	if course {
		r.course = &Course{}
	}
	return r
}

func (r *recorder) advance(d time.Duration) {
	r.integral += time.Duration(r.inFlight) * d
}

// arrived counts a call that came when a share of the phase was over.
func (r *recorder) arrived(phase int, at float64, admitted bool) {
	p := &r.phases[phase]
	p.offered++
	p.inPart[min(int(at*parts), parts-1)]++
	if !admitted {
		p.refused++
		r.now.refused++
		return
	}
	p.admitted++
	r.inFlight++
}

func (r *recorder) ended(c *call, latency time.Duration, good bool) {
	r.inFlight--
	r.sojourn += latency
	p := &r.phases[c.phase]
	if good {
		p.good++
		r.now.good++
	}
	us := min(max(latency.Microseconds(), 1), (2 * time.Minute).Microseconds())
	_ = p.latency.RecordValue(us) // cannot fail within the bounds
	if c.start-p.begin >= settled {
		_ = p.settled.RecordValue(us) // as above
	}
	if r.course != nil {
		r.latencies = append(r.latencies, latency)
	}
}

// ticked ends a tick.
func (r *recorder) ticked(at time.Duration, limit int) {
	r.now.limit, r.now.inFlight = limit, r.inFlight
	r.ticks = append(r.ticks, r.now)
	if r.course != nil {
		slices.Sort(r.latencies)
		r.course.add(at, r.now, r.latencies)
		r.latencies = r.latencies[:0]
	}
	r.now = tickCount{}
}
