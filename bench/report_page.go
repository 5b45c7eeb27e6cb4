package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/course"
)

// pageFile is the page of -report.
const pageFile = "index.html"

// draw writes the page and its pictures, if -report asks for them. There is a page whatever
// was finished.
func (f *reportFlag) draw(r *report) error {
	if f.reportDir == "" {
		return nil
	}
	page := reportPage{Title: "holdfast bench", About: r.about(), Interrupted: r.Interrupted}
	for i := range r.Rounds {
		d := &r.Rounds[i]
		if len(d.Rows) == 0 {
			continue
		}
		section := newPageRound(r, d)
		for _, p := range section.Parts {
			if err := writePicture(filepath.Join(f.reportDir, p.Picture), p.Charts); err != nil {
				return fmt.Errorf("-report: %w", err)
			}
		}
		page.Rounds = append(page.Rounds, section)
	}
	if err := course.WriteFile(filepath.Join(f.reportDir, pageFile), rowsPage, page); err != nil {
		return fmt.Errorf("-report: %w", err)
	}
	return nil
}

func writePicture(path string, charts []course.Chart) error {
	format, err := course.Format(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := course.Draw(&b, format, charts); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// reportPage is what the page shows.
type reportPage struct {
	Title       string
	About       []string
	Interrupted bool
	Rounds      []pageRound
}

// pageRound is all rows over one protocol, under one mode of cancellation.
type pageRound struct {
	Title   string
	Lines   []string
	Tables  []pageTable
	Verdict []string
	Parts   []pagePart
}

// pageTable is a table; the first cell of a line is its name.
type pageTable struct {
	Head  []string
	Lines [][]string
}

// pagePart is some charts, which are in a picture too.
type pagePart struct {
	Title, Note, Picture string
	Charts               []course.Chart
}

var rowsPage = course.Template(`<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<ul>{{range .About}}<li>{{.}}</li>{{end}}</ul>
{{if .Interrupted}}<p><strong>Interrupted: only the rows that were finished are here.</strong></p>{{end}}
{{range .Rounds}}<h2>{{.Title}}</h2>
{{range .Lines}}<p>{{.}}</p>
{{end}}{{range .Tables}}<div class="wide" tabindex="0"><table><thead><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Lines}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
{{end}}<ul>{{range .Verdict}}<li>{{.}}</li>{{end}}</ul>
{{range .Parts}}<h3>{{.Title}}</h3>
<p>{{.Note}} <a href="{{.Picture}}">As a picture</a></p>
{{figures .Charts}}{{end}}{{end}}</html>
`)

func newPageRound(r *report, d *round) pageRound {
	name := d.Protocol + "-" + d.Cancel // of its pictures
	return pageRound{
		Title:   d.protocolName() + ", cancellation " + pick(d.Cancel == cancelHonour, "honoured", "ignored"),
		Lines:   d.head(&r.Settings),
		Tables:  []pageTable{newPageTable(d.Rows, latencyColumns), newPageTable(d.Rows, costColumns)},
		Verdict: append(strings.Split(strings.TrimSpace(legend), "\n"), d.lines()...),
		Parts: []pagePart{
			{
				Title: "Latency", Picture: name + "-latency.png", Charts: []course.Chart{latencyChart(d.Rows)},
				Note: "All calls of a row that succeeded, from the fastest to the slowest: how slow the slowest of ten, of a hundred and of a thousand are.",
			},
			{
				Title: "Requests", Picture: name + "-requests.png", Charts: []course.Chart{requestsChart(d.Rows)},
				Note: "What came to the server, hedges included, beside the calls that were made.",
			},
			{
				Title: "Permits and the server", Picture: name + "-permits.png", Charts: permitCharts(d.Rows),
				Note: "The permits that the client held, and what truly was in the server: the most at any instant of a step. A limit far above both is not drawn.",
			},
		},
	}
}

func newPageTable(rows []row, columns []column) pageTable {
	t := pageTable{Head: []string{nameHead}}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for i := range rows {
		line := []string{rows[i].Experiment.Name}
		for _, c := range columns {
			line = append(line, c.cell(&rows[i]))
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}

func latencyChart(rows []row) course.Chart {
	c := course.Chart{Title: "Latency by percentile", Unit: "ms", Log: true}
	for i := range rows {
		// The color is the same for a row in all charts.
		x := course.Curve{Name: rows[i].Experiment.Name, Color: i}
		for _, p := range rows[i].Course.Latency {
			x.X, x.Y = append(x.X, course.Tail(p.Percent/100)), append(x.Y, p.Ms)
		}
		c.Curves = append(c.Curves, x)
	}
	return c
}

// requestSteps is how many steps make a point of a rate: fewer would show chance.
const requestSteps = 5

func requestsChart(rows []row) course.Chart {
	c := course.Chart{Title: "Requests at the server", Unit: "a second"}
	for i := range rows {
		x := &rows[i].Course
		c.Length = max(c.Length, x.length())
		c.Curves = append(c.Curves, x.rate(rows[i].Experiment.Name, i, x.Requests))
	}
	// Every row meets the same calls.
	first := &rows[0].Course
	c.Curves = append(c.Curves, first.rate("calls", -1, first.Calls))
	return c
}

// farAbove is how many times higher than all that it bounds a limit is not worth drawing.
const farAbove = 4

func permitCharts(rows []row) []course.Chart {
	var charts []course.Chart
	for i := range rows {
		x := &rows[i].Course
		permits := x.curve("permits", 1, x.Permits)
		permits.Wide = true // where all is well it lies behind the other
		c := course.Chart{Title: rows[i].Experiment.Name, Unit: "at once", Length: x.length(), Curves: []course.Curve{
			x.curve("in the server", 0, x.Server), permits,
		}}
		peak := max(slices.Max(x.Server), slices.Max(x.Permits))
		if slices.Max(x.Limit) <= farAbove*peak {
			c.Curves = append(c.Curves, x.curve("limit", -1, x.Limit))
		}
		charts = append(charts, c)
	}
	return charts
}
