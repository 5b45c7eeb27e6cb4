package main

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/course"
	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// hedgeCharts are what is drawn of a row.
var hedgeCharts = []struct {
	title, unit string
	series      func(*hedgearena.Course) []float64
	log         bool
}{
	{title: "Extra attempts", unit: "% of the calls", series: func(c *hedgearena.Course) []float64 { return c.Extra }},
	{title: "Good calls, by when they came", unit: "a second", series: func(c *hedgearena.Course) []float64 { return c.Good }},
	{title: "Median latency", unit: "ms", series: func(c *hedgearena.Course) []float64 { return c.P50 }, log: true},
	{title: "99th percentile of the latency", unit: "ms", series: func(c *hedgearena.Course) []float64 { return c.P99 }, log: true},
	{title: "In flight", unit: "attempts", series: func(c *hedgearena.Course) []float64 { return c.InFlight }, log: true},
	{title: "Limit", unit: "attempts", series: func(c *hedgearena.Course) []float64 { return c.Limit }, log: true},
}

// hedgePages draws the first seed of the rows: a page for each scenario, load and limit.
// What has no course is left out.
func hedgePages(rows []*hedgearena.Row) []course.Page {
	var pages []course.Page
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Scenario == rows[0].Scenario && rows[n].Load == rows[0].Load && limitAndMode(rows[n]) == limitAndMode(rows[0]) {
			n++
		}
		if p := hedgePage(rows[:n]); len(p.Charts) > 0 {
			pages = append(pages, p)
		}
		rows = rows[n:]
	}
	return pages
}

func hedgePage(rows []*hedgearena.Row) course.Page {
	r := rows[0]
	s := r.Scenario
	p := course.Page{
		File:  strings.ReplaceAll(fmt.Sprintf("%s-%g-%s", s.ID, 100*r.Load, limitAndMode(r)), " ", "-"),
		Title: fmt.Sprintf("%s %s at %g %%, limit %s", s.ID, s.Name, 100*r.Load, limitAndMode(r)),
		Lines: []string{s.String()},
	}
	notes := []string{"The first seed"}
	for _, x := range hedgeCharts {
		chart := course.Chart{Title: x.title, Unit: x.unit, Log: x.log, Length: s.Length()}
		for i, r := range rows {
			f := r.Figures[0]
			if f == nil || f.Course == nil {
				continue
			}
			if len(p.Charts) == 0 {
				notes = append(notes, r.Policy.Name+": "+r.Policy.About)
			}
			// The color is the same for a policy in all charts of a page.
			chart.Curves = append(chart.Curves, course.Curve{Name: r.Policy.Name, Color: i, X: f.Course.Seconds, Y: x.series(f.Course)})
		}
		if len(chart.Curves) == 0 {
			return p
		}
		p.Charts = append(p.Charts, chart)
	}
	p.Note = strings.Join(notes, ". ") + "."
	return p
}
