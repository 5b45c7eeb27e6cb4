package arena

import "time"

// Course is how a run went: one point for every tenth of a second.
type Course struct {
	Seconds []float64
	// Limit and InFlight are of that instant, summed over the clients; Good and
	// Refused are rates over the tenth of a second before it.
	Limit, InFlight, Good, Refused []float64
	// P50 and P99 are of the calls that ended in it, in milliseconds, and those
	// of the point before if none did.
	P50, P99 []float64
}

// add adds a point. The latencies are sorted.
func (c *Course) add(at time.Duration, t tickCount, latencies []time.Duration) {
	c.Seconds = append(c.Seconds, at.Seconds())
	c.Limit = append(c.Limit, float64(t.limit))
	c.InFlight = append(c.InFlight, float64(t.inFlight))
	c.Good = append(c.Good, float64(t.good)/tick.Seconds())
	c.Refused = append(c.Refused, float64(t.refused)/tick.Seconds())
	p50, p99 := 0.0, 0.0
	if n := len(latencies); n > 0 {
		p50, p99 = 1000*latencies[n/2].Seconds(), 1000*latencies[n*99/100].Seconds()
	} else if m := len(c.P50); m > 0 {
		p50, p99 = c.P50[m-1], c.P99[m-1]
	}
	c.P50, c.P99 = append(c.P50, p50), append(c.P99, p99)
}

// Ideal is the rate of good calls that the best limit could have at a time.
func (s *Scenario) Ideal(seconds float64) float64 {
	begin := 0.0
	for i := range s.Phases {
		p := &s.Phases[i]
		length := p.Length.Seconds()
		if seconds <= begin+length || i == len(s.Phases)-1 {
			return p.idealRate(min(1, (seconds-begin)/length))
		}
		begin += length
	}
	return 0
}
