package hedgearena

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Scenario is a set of replicas and what happens to them.
type Scenario struct {
	// ID is short and unique, such as H1.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Replicas share the traffic at random. Each serves Slots attempts at a time,
	// first come, first served.
	Replicas int `json:"replicas"`
	Slots    int `json:"slots"`
	// Service is how long an attempt takes in a slot: log-normal.
	Service LogNormal `json:"service"`
	// Law, if it is not nil, is how long an attempt takes in a slot, instead of Service.
	Law Law `json:"-"`
	// Timeout is how long a client waits: 0 is a second.
	Timeout time.Duration `json:"-"`
	// Freeze is how replicas stand still now and then. The zero value is never.
	Freeze Freeze `json:"freeze"`
	// Drops tells that a replica forgets an attempt that is cancelled while it is
	// queued. Otherwise it serves it as if nothing had happened. What is in a slot is
	// served to its end always.
	Drops bool `json:"drops"`
	// Loads are those of the sweep, as shares of the capacity.
	Loads []float64 `json:"loads"`
	// Phases follow each other. The first warms up and is not judged.
	Phases []Phase `json:"-"`
	// Targets are for ours behind a limit, on the median of the seeds, besides those
	// that every scenario has.
	Targets []Target `json:"-"`
}

// Phase is a stretch of a scenario.
type Phase struct {
	Name   string
	Length time.Duration
	// Load, if it is not 0, is the share of the capacity that comes instead of the load
	// of the sweep, and Times multiplies that: 0 is 1.
	Load, Times float64
	// Slow multiplies all service times: 0 is 1.
	Slow float64
	// Slots, if it is not 0, is how many of the slots of a replica are open.
	Slots int
}

// Law is how long attempts take in a slot. It is used by any number of goroutines.
type Law interface {
	// Service returns the time in seconds of an attempt that begins some time after its call
	// came. U is even within (0, 1), and what is random about the time hangs on it.
	Service(call, attempt int, after time.Duration, u float64) float64
	// Mean and Quantile are those of primaries, in seconds.
	Mean() float64
	Quantile(u float64) float64
}

// LogNormal is a service time in seconds by its median and 99th percentile.
type LogNormal struct {
	P50 float64 `json:"p50_seconds"`
	P99 float64 `json:"p99_seconds"`
}

// z99 is a quantile of the normal distribution.
const z99 = 2.3263478740408408

func (l LogNormal) sigma() float64 { return math.Log(l.P99/l.P50) / z99 }

// quantile is the time in seconds that a share u of the attempts does not exceed.
func (l LogNormal) quantile(u float64) float64 {
	return l.P50 * math.Exp(l.sigma()*math.Sqrt2*math.Erfinv(2*u-1))
}

// Mean is in seconds.
func (l LogNormal) Mean() float64 { return l.P50 * math.Exp(l.sigma()*l.sigma()/2) }

// P95 is in seconds.
func (l LogNormal) P95() float64 { return l.quantile(0.95) }

// Freeze is how replicas stand still: for a time, with a mean time between the end of one
// and the beginning of the next.
type Freeze struct {
	For   time.Duration `json:"for_ns"`
	Every time.Duration `json:"every_ns"`
	// Together tells that all replicas do so at once.
	Together bool `json:"together"`
}

// Capacity is how many attempts a second the replicas serve at best. What they lose
// while they are frozen is not taken off.
func (s *Scenario) Capacity() float64 {
	mean := s.Service.Mean()
	if s.Law != nil {
		mean = s.Law.Mean()
	}
	return float64(s.Places()) / mean
}

// Places is how many attempts are served at a time.
func (s *Scenario) Places() int { return s.Replicas * s.Slots }

// Delay is how long a hedge with a fixed delay waits: the 95th percentile of the
// service.
func (s *Scenario) Delay() time.Duration {
	if s.Law != nil {
		return seconds(s.Law.Quantile(0.95))
	}
	return seconds(s.Service.P95())
}

func (s *Scenario) timeout() time.Duration {
	if s.Timeout == 0 {
		return usualTimeout
	}
	return s.Timeout
}

// load is the share of the capacity that comes in a phase.
func (p *Phase) load(sweep float64) float64 {
	if p.Load > 0 {
		return p.Load
	}
	return sweep * orOne(p.Times)
}

// Troubled tells that something happens in the course of it and ends, so that there is a
// recovery to see.
func (s *Scenario) Troubled() bool { return len(s.Phases) > 2 }

// Calls is about how many calls come.
func (s *Scenario) Calls(load float64) float64 {
	sum := 0.0
	for i := range s.Phases {
		sum += s.Phases[i].load(load) * s.Capacity() * s.Phases[i].Length.Seconds()
	}
	return sum
}

// Length is how long the scenario takes in its own time.
func (s *Scenario) Length() time.Duration {
	var sum time.Duration
	for i := range s.Phases {
		sum += s.Phases[i].Length
	}
	return sum
}

// Longer returns the scenario with all phases but the first longer by a factor.
func (s Scenario) Longer(factor float64) Scenario {
	phases := append([]Phase(nil), s.Phases...)
	for i := 1; i < len(phases); i++ {
		phases[i].Length = time.Duration(factor * float64(phases[i].Length)).Round(tick)
	}
	s.Phases = phases
	return s
}

// String describes the scenario in a line.
func (s *Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d replicas × %d slots, %.0f/s, service p50 %g ms p99 %g ms", s.Replicas, s.Slots, s.Capacity(), 1000*s.Service.P50, 1000*s.Service.P99)
	if f := s.Freeze; f.For > 0 {
		who := "each replica freezes"
		if f.Together {
			who = "all replicas freeze together"
		}
		fmt.Fprintf(&b, "; %s for %v about every %v", who, f.For, f.Every)
	}
	if s.Drops {
		b.WriteString("; queued work is dropped when it is cancelled")
	} else {
		b.WriteString("; cancelled work is served anyway")
	}
	for _, p := range s.Phases {
		fmt.Fprintf(&b, "; %s", &p)
	}
	return b.String()
}

// String describes the phase.
func (p *Phase) String() string {
	t := fmt.Sprintf("%s %v", p.Name, p.Length)
	switch {
	case p.Load > 0:
		t += fmt.Sprintf(" at %g %%", 100*p.Load)
	case orOne(p.Times) != 1:
		t += fmt.Sprintf(" with load × %g", p.Times)
	}
	if orOne(p.Slow) != 1 {
		t += fmt.Sprintf(" with service × %g", p.Slow)
	}
	if p.Slots > 0 {
		t += fmt.Sprintf(" with %d slots", p.Slots)
	}
	return t
}

func orOne(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
