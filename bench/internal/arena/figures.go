package arena

import "time"

// Figures is what came of one contender in one scenario with one seed. Times are in
// milliseconds unless the name says otherwise.
type Figures struct {
	Phases []PhaseFigures `json:"phases"`
	// Jain is the fairness among the clients, of what was good: 1 if all had the
	// same, 1/n if one had everything. It is 1 for one client.
	Jain float64 `json:"jain"`
	// Calls is how many calls came.
	Calls int `json:"calls"`
	// Course is how it went over time, if it was asked for.
	Course *Course `json:"-"`
}

// PhaseFigures is about the calls that came in a phase, whenever they ended.
type PhaseFigures struct {
	Name     string `json:"name"`
	Offered  int    `json:"offered"`
	Admitted int    `json:"admitted"`
	Refused  int    `json:"refused"`
	// Good counts the calls that succeeded within 500 ms, and Ideal is how many the
	// best limit could have had: the calls that came, or the capacity if that is less.
	Good  int     `json:"good"`
	Ideal float64 `json:"ideal"`
	// GoodPercent is 0 if there was no ideal to reach. It may exceed 100 a little:
	// a capacity is a mean.
	GoodPercent     float64 `json:"good_percent"`
	RejectedPercent float64 `json:"rejected_percent"`
	// Percentiles of all that was admitted, and of what was admitted from the third
	// second of the phase on.
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	SettledP50 float64 `json:"settled_p50_ms"`
	SettledP99 float64 `json:"settled_p99_ms"`
	// SecondsTo90 is when the first second began in which 90 % of the ideal rate
	// ended well, and SecondsTo80 the same for 80 %: to a tenth of a second, and −1
	// if there was none.
	SecondsTo90 float64 `json:"seconds_to_90"`
	SecondsTo80 float64 `json:"seconds_to_80"`
	// The limit, summed over clients and looked at ten times a second: LimitLate is the
	// greatest from the 15th second of the phase on, and 0 if it is shorter. LimitBack
	// is when the limit was back at 80 % of what it was at the end of the first phase:
	// in seconds, −1 if never.
	LimitMean float64 `json:"limit_mean"`
	LimitLast int     `json:"limit_last"`
	LimitLate int     `json:"limit_late"`
	LimitBack float64 `json:"limit_back_seconds"`
}

// lateFrom is from when on a limit must have closed in an outage.
const lateFrom = 15 * time.Second

const ticksPerSecond = int(time.Second / tick)

// phaseEnded is told of the end of each phase, when all ticks within it are over.
func (r *recorder) phaseEnded(x *run) {
	p := &r.phases[x.phase]
	p.ticks[0] = 0
	if x.phase > 0 {
		p.ticks[0] = r.phases[x.phase-1].ticks[1]
	}
	p.ticks[1] = len(r.ticks)
}

// figures works out what came of the run.
func (r *run) figures() *Figures {
	f := &Figures{Jain: jain(r.perClient), Calls: int(r.seen), Course: r.record.course}
	for i := range r.scenario.Phases {
		f.Phases = append(f.Phases, r.record.phaseFigures(r.scenario, i))
	}
	return f
}

func (r *recorder) phaseFigures(s *Scenario, i int) PhaseFigures {
	p, c := &s.Phases[i], &r.phases[i]
	f := PhaseFigures{
		Name: p.Name, Offered: c.offered, Admitted: c.admitted, Refused: c.refused,
		Good: c.good, Ideal: p.ideal(c.inPart[:]),
		P50: milliseconds(c.latency.ValueAtQuantile(50)), P99: milliseconds(c.latency.ValueAtQuantile(99)),
		SettledP50: milliseconds(c.settled.ValueAtQuantile(50)), SettledP99: milliseconds(c.settled.ValueAtQuantile(99)),
	}
	if f.Ideal > 0 {
		f.GoodPercent = 100 * float64(f.Good) / f.Ideal
	}
	if f.Offered > 0 {
		f.RejectedPercent = 100 * float64(f.Refused) / float64(f.Offered)
	}
	ticks := r.ticks[c.ticks[0]:c.ticks[1]]
	f.SecondsTo90, f.SecondsTo80 = p.secondsTo(0.9, ticks), p.secondsTo(0.8, ticks)
	before := r.ticks[r.phases[0].ticks[1]-1].limit
	f.LimitBack = -1
	for j, t := range ticks {
		f.LimitMean += float64(t.limit) / float64(len(ticks))
		if time.Duration(j)*tick >= lateFrom {
			f.LimitLate = max(f.LimitLate, t.limit)
		}
		if f.LimitBack < 0 && 10*t.limit >= 8*before {
			f.LimitBack = float64(j) / float64(ticksPerSecond)
		}
	}
	f.LimitLast = ticks[len(ticks)-1].limit
	return f
}

// ideal is how many of the calls could have ended well, from how many came in each
// part of the phase.
func (p *Phase) ideal(offered []int) float64 {
	n := len(offered)
	seconds := p.Length.Seconds() / float64(n)
	capacity := func(part int) float64 { return seconds * p.Capacity((float64(part)+0.5)/float64(n)) }
	if capacity(0) == capacity(n-1) {
		// Nothing drifts, so that chance in the parts need not count against it.
		sum := 0
		for _, x := range offered {
			sum += x
		}
		return min(float64(sum), float64(n)*capacity(0))
	}
	ideal := 0.0
	for i, x := range offered {
		ideal += min(float64(x), capacity(i))
	}
	return ideal
}

// secondsTo returns when the first second began in which a share of the ideal rate
// ended well, or −1.
func (p *Phase) secondsTo(share float64, ticks []tickCount) float64 {
	sum := 0
	for i := range ticks {
		sum += ticks[i].good
		from := i + 1 - ticksPerSecond
		if from < 0 {
			continue
		}
		at := float64(from) / float64(len(ticks))
		if ideal := p.idealRate(at); ideal > 0 && float64(sum) >= share*ideal {
			return float64(from) / float64(ticksPerSecond)
		}
		sum -= ticks[from].good
	}
	return -1
}

// jain is Jain's fairness index (Σx)² / (n·Σx²), and 0 if all are 0.
func jain(x []int) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(x)) * squares)
}

func milliseconds(us int64) float64 { return float64(us) / 1000 }
