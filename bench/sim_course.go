package main

import (
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
	"github.com/holdfast-go/holdfast/bench/internal/course"
)

// simCharts are what is drawn of a scenario.
var simCharts = []struct {
	title, unit string
	series      func(*arena.Course) []float64
	ideal, log  bool
}{
	{title: "Limit", unit: "calls", series: func(c *arena.Course) []float64 { return c.Limit }, log: true},
	{title: "In flight", unit: "calls", series: func(c *arena.Course) []float64 { return c.InFlight }, log: true},
	{title: "Good calls", unit: "a second", series: func(c *arena.Course) []float64 { return c.Good }, ideal: true},
	{title: "Median latency", unit: "ms", series: func(c *arena.Course) []float64 { return c.P50 }, log: true},
	{title: "99th percentile of the latency", unit: "ms", series: func(c *arena.Course) []float64 { return c.P99 }, log: true},
}

// simPages draws the first seed of the matches, in the order of a tournament: a page for
// each scenario. What has no course is left out.
func simPages(matches []arena.Match) []course.Page {
	var pages []course.Page
	for len(matches) > 0 {
		n := 1
		for n < len(matches) && matches[n].Scenario == matches[0].Scenario {
			n++
		}
		if p := simPage(matches[:n]); len(p.Charts) > 0 {
			pages = append(pages, p)
		}
		matches = matches[n:]
	}
	return pages
}

func simPage(matches []arena.Match) course.Page {
	s := matches[0].Scenario
	p := course.Page{File: s.ID, Title: s.ID + " " + s.Name}
	for i := range s.Phases {
		p.Lines = append(p.Lines, s.Phases[i].Name+": "+s.Phases[i].String())
	}
	notes := []string{"The first seed"}
	for _, x := range simCharts {
		chart := course.Chart{Title: x.title, Unit: x.unit, Log: x.log, Length: s.Length()}
		for i := range matches {
			m := &matches[i]
			f := m.Figures[0]
			if f == nil || f.Course == nil {
				continue
			}
			if len(p.Charts) == 0 {
				notes = append(notes, m.Maker.Name+": "+m.Maker.About)
			}
			// The color is the same for a limit in all charts.
			chart.Curves = append(chart.Curves, course.Curve{Name: m.Maker.Name, Color: i, X: f.Course.Seconds, Y: x.series(f.Course)})
		}
		if len(chart.Curves) == 0 {
			return p
		}
		if x.ideal {
			seconds := chart.Curves[0].X
			ideal := make([]float64, len(seconds))
			for i := range seconds {
				ideal[i] = s.Ideal(seconds[i])
			}
			chart.Curves = append(chart.Curves, course.Curve{Name: "ideal", Color: -1, X: seconds, Y: ideal})
		}
		p.Charts = append(p.Charts, chart)
	}
	p.Note = strings.Join(notes, ". ") + "."
	return p
}
