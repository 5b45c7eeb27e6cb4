package arena

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Scenario is a course of traffic and service, and what is asked of a limit in it.
type Scenario struct {
	// ID is short and unique, such as S2. The parts of S13 are S13a to S13f.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Clients share the server and know nothing of each other. Each has a limit of
	// its own and an equal part of the traffic.
	Clients int     `json:"clients"`
	Phases  []Phase `json:"-"`
	// Targets are judged on the worst seed.
	Targets []Target `json:"-"`
}

// Phase is a stretch of a scenario.
type Phase struct {
	Name   string
	Length time.Duration
	// Rate is how many calls come in a second.
	Rate float64
	// Workers serve one call each, first come, first served.
	Workers int
	Service Law
	// Beside is the share of the calls that never see the workers: they end after
	// BesideTime, such as hits of a cache.
	Beside     float64
	BesideTime time.Duration
	// Contention lets all calls in at once and slows each down by how many there
	// are: by n/c above c workers, and by half of the excess n/c − 1 besides.
	Contention bool
	// Outage, if it is not 0, is after how long each call ends with a deadline error.
	// Nothing is served.
	Outage time.Duration
}

// Capacity is how many calls a second the phase can serve at best, at a share of it
// that is over.
func (p *Phase) Capacity(at float64) float64 {
	if p.Outage > 0 {
		return 0
	}
	return float64(p.Workers) / p.Service.Mean(at) / (1 - p.Beside)
}

// idealRate is how many good calls a second the best limit could have.
func (p *Phase) idealRate(at float64) float64 { return min(p.Rate, p.Capacity(at)) }

// String describes the phase as the table of scenarios does.
func (p *Phase) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%g s, %g/s, c %d, %s", p.Length.Seconds(), p.Rate, p.Workers, p.Service)
	if p.Beside > 0 {
		fmt.Fprintf(&b, ", %g %% beside it in %v", 100*p.Beside, p.BesideTime)
	}
	if p.Contention {
		b.WriteString(", contention")
	}
	if p.Outage > 0 {
		fmt.Fprintf(&b, ", outage: every call ends after %v", p.Outage)
	}
	return b.String()
}

// Length is how long the scenario takes in its own time.
func (s *Scenario) Length() time.Duration {
	var sum time.Duration
	for i := range s.Phases {
		sum += s.Phases[i].Length
	}
	return sum
}

// Calls is about how many calls come.
func (s *Scenario) Calls() float64 {
	sum := 0.0
	for i := range s.Phases {
		sum += s.Phases[i].Rate * s.Phases[i].Length.Seconds()
	}
	return sum
}

// In reports whether the scenario is one of those named, by its ID or by that of all
// its parts.
func (s *Scenario) In(name string) bool {
	return strings.EqualFold(s.ID, name) || strings.EqualFold(strings.TrimRight(s.ID, "abcdef"), name)
}

// Scale multiplies parameters of a scenario: a limit that was built for the table
// rather than for the matter shows it there. 0 is no scale; see Unscaled.
type Scale struct {
	Service float64 `json:"service"`
	Rate    float64 `json:"rate"`
	Workers float64 `json:"workers"`
}

// Unscaled leaves a scenario as it is.
func Unscaled() Scale { return Scale{1, 1, 1} }

// String names what is scaled.
func (s Scale) String() string {
	var parts []string
	for _, x := range []struct {
		name   string
		factor float64
	}{{"service", s.Service}, {"rate", s.Rate}, {"workers", s.Workers}} {
		if x.factor != 1 {
			parts = append(parts, fmt.Sprintf("%s × %g", x.name, x.factor))
		}
	}
	if parts == nil {
		return "as it is"
	}
	return strings.Join(parts, ", ")
}

// Scaled returns the scenario with its parameters multiplied. Workers are rounded,
// halves up, and stay at least 1. Targets are for the scenario as it is, so a scaled
// one has none.
func (s Scenario) Scaled(by Scale) Scenario {
	if by == Unscaled() {
		return s
	}
	phases := make([]Phase, len(s.Phases))
	for i, p := range s.Phases {
		p.Rate *= by.Rate
		p.Workers = max(1, int(math.Floor(float64(p.Workers)*by.Workers+0.5)))
		if by.Service != 1 {
			p.Service = slower{p.Service, by.Service}
			p.BesideTime = time.Duration(float64(p.BesideTime) * by.Service)
		}
		phases[i] = p
	}
	s.Phases, s.Targets = phases, nil
	return s
}
