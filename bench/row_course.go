package main

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/bench/internal/course"
	"github.com/holdfast-go/holdfast/bench/internal/sweep"
)

// rowSteps is how many steps of time a row is looked at in: as many as a chart can show.
const rowSteps = 150

// rowCourse is how a row went: its distribution, and its figures over time. All slices of the
// second kind are of one length.
type rowCourse struct {
	// Latency is the distribution of the latency, ever finer towards its tail.
	Latency []percentile `json:"latency"`
	// StepSeconds is the length of a step. The first begins with the measuring.
	StepSeconds float64 `json:"step_seconds"`
	// Calls are those that were to start in the step, refused ones included, and Requests what
	// came to the server.
	Calls    []int `json:"calls"`
	Requests []int `json:"requests"`
	// Permits and Server are the most that were held, and that were at work or queued in the
	// server, at any instant of the step; Limit is the limit under which its last permit was
	// granted.
	Permits []int `json:"permits_peak"`
	Server  []int `json:"server_peak"`
	Limit   []int `json:"limit"`
}

// percentile is a point of a distribution.
type percentile struct {
	Percent float64 `json:"percent"`
	Ms      float64 `json:"ms"`
}

// course looks at the measuring step by step, until its last call had ended.
func (m *measurement) course() rowCourse {
	step := max(m.end.Sub(m.begin)/rowSteps, time.Microsecond)
	c := rowCourse{
		StepSeconds: step.Seconds(),
		Calls:       make([]int, rowSteps), Requests: make([]int, rowSteps), Limit: make([]int, rowSteps),
	}
	at := func(ns int64) (k int, ok bool) {
		k = int((ns - m.begin.UnixNano()) / int64(step))
		return k, ns >= m.begin.UnixNano() && k < rowSteps
	}
	latency := newHistogram()
	for i := range m.samples {
		s := &m.samples[i]
		if s.err == nil {
			record(latency, s.latency)
		}
		if k, ok := at(m.begin.UnixNano() + int64(s.due)); ok {
			c.Calls[k]++
		}
	}
	c.Latency = percentiles(latency)
	var inside, held []sweep.Interval
	for _, v := range m.report.Visits {
		inside = append(inside, sweep.Interval{Start: v.Enter, End: v.Exit})
		if k, ok := at(v.Enter); ok {
			c.Requests[k]++
		}
	}
	last := make([]time.Time, rowSteps)
	for i := range m.attempts {
		a := &m.attempts[i]
		held = append(held, hold(a))
		if k, ok := at(a.Granted.UnixNano()); ok && a.Granted.After(last[k]) {
			last[k], c.Limit[k] = a.Granted, a.Grant.Limit
		}
	}
	fillGaps(c.Limit)
	c.Permits = sweep.Peaks(held, m.begin.UnixNano(), int64(step), rowSteps)
	c.Server = sweep.Peaks(inside, m.begin.UnixNano(), int64(step), rowSteps)
	return c
}

// fillGaps lets a limit stand until another is known: nothing was granted in between.
func fillGaps(limit []int) {
	last := 0
	for _, x := range limit {
		if x != 0 {
			last = x
			break
		}
	}
	for i, x := range limit {
		if x == 0 {
			limit[i] = last
		}
		last = limit[i]
	}
}

// percentiles goes through a distribution in steps of a twentieth of a decade of what is left
// above, as far as there is a sample. It is empty if there is none.
func percentiles(h *hdrhistogram.Histogram) []percentile {
	list := []percentile{}
	n := float64(h.TotalCount())
	if n == 0 {
		return list
	}
	for k := 0.0; ; k++ {
		left := math.Pow(10, -k/20)
		if left*n < 1 {
			break
		}
		p := 100 * (1 - left)
		list = append(list, percentile{p, quantile(h, p)})
	}
	return list
}

// length is the time that all steps take.
func (c *rowCourse) length() time.Duration {
	return time.Duration(c.StepSeconds * float64(len(c.Permits)) * float64(time.Second))
}

// curve draws one figure of each step.
func (c *rowCourse) curve(name string, color int, y []int) course.Curve {
	x := course.Curve{Name: name, Color: color}
	for k, n := range y {
		x.X, x.Y = append(x.X, float64(k)*c.StepSeconds), append(x.Y, float64(n))
	}
	return x
}

// rate draws how many there were a second, in the middle of a few steps each.
func (c *rowCourse) rate(name string, color int, counts []int) course.Curve {
	x := course.Curve{Name: name, Color: color}
	for k := 0; k+requestSteps <= len(counts); k += requestSteps {
		sum := 0
		for _, n := range counts[k : k+requestSteps] {
			sum += n
		}
		x.X = append(x.X, (float64(k)+requestSteps/2.0)*c.StepSeconds)
		x.Y = append(x.Y, float64(sum)/(requestSteps*c.StepSeconds))
	}
	return x
}
