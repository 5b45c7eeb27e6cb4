// Package course draws how the runs of the arena went over time: an HTML file for each
// scenario with everything in it, and an index.
package course

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
)

// Prepare makes the directory, so that one that cannot be written to is found before
// the run.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".writable")
	if err != nil {
		return err
	}
	return firstError(f.Close(), os.Remove(f.Name()))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// page is what a file shows.
type page struct {
	Scenario *arena.Scenario
	Phases   []string
	Limits   []string
	Charts   []template.HTML
}

var (
	head = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}svg{width:100%;height:auto}</style>
`
	scenarioPage = template.Must(template.New("scenario").Parse(head + `<title>{{.Scenario.ID}} {{.Scenario.Name}}</title>
<p><a href="index.html">All scenarios</a></p>
<h1>{{.Scenario.ID}} {{.Scenario.Name}}</h1>
<ul>{{range .Phases}}<li>{{.}}</li>{{end}}</ul>
<p>The first seed. {{range .Limits}}{{.}}. {{end}}</p>
{{range .Charts}}{{.}}
{{end}}</html>
`))
	indexPage = template.Must(template.New("index").Parse(head + `<title>Arena</title>
<h1>Arena</h1>
<ul>{{range .}}<li><a href="{{.Scenario.ID}}.html">{{.Scenario.ID}} {{.Scenario.Name}}</a></li>{{end}}</ul>
</html>
`))
)

// Write draws the matches, in the order of a tournament, into a directory that is
// there. What has no course is left out.
func Write(dir string, matches []arena.Match) error {
	var pages []page
	for len(matches) > 0 {
		n := 1
		for n < len(matches) && matches[n].Scenario == matches[0].Scenario {
			n++
		}
		p, err := newPage(matches[:n])
		if err != nil {
			return fmt.Errorf("%s: %w", matches[0].Scenario.ID, err)
		}
		if len(p.Limits) > 0 {
			pages = append(pages, p)
			if err := writePage(filepath.Join(dir, p.Scenario.ID+".html"), scenarioPage, p); err != nil {
				return err
			}
		}
		matches = matches[n:]
	}
	return writePage(filepath.Join(dir, "index.html"), indexPage, pages)
}

func writePage(path string, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// newPage makes the page of a scenario.
func newPage(matches []arena.Match) (page, error) {
	s := matches[0].Scenario
	p := page{Scenario: s}
	for i := range s.Phases {
		p.Phases = append(p.Phases, s.Phases[i].Name+": "+s.Phases[i].String())
	}
	var curves []curve
	for i := range matches {
		m := &matches[i]
		if f := m.Figures[0]; f != nil && f.Course != nil {
			p.Limits = append(p.Limits, m.Maker.Name+": "+m.Maker.About)
			curves = append(curves, curve{name: m.Maker.Name, color: i, course: f.Course})
		}
	}
	if len(curves) == 0 {
		return p, nil
	}
	for _, c := range charts {
		svg, err := c.svg(s, curves)
		if err != nil {
			return page{}, err
		}
		p.Charts = append(p.Charts, template.HTML(svg)) //nolint:gosec // it is made here, of numbers and names of our own
	}
	return p, nil
}
