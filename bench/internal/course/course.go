// Package course draws how simulations went over time: HTML files with everything in
// them, and an index.
package course

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
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

// Page is what a file shows.
type Page struct {
	// File is its name without the ending.
	File  string
	Title string
	// Lines are a list above the charts, and Note is a paragraph after it.
	Lines  []string
	Note   string
	Charts []Chart
}

var (
	head = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}svg{width:100%;height:auto}</style>
`
	chartPage = template.Must(template.New("charts").Parse(head + `<title>{{.Page.Title}}</title>
<p><a href="index.html">All pages</a></p>
<h1>{{.Page.Title}}</h1>
<ul>{{range .Page.Lines}}<li>{{.}}</li>{{end}}</ul>
<p>{{.Page.Note}}</p>
{{range .Charts}}{{.}}
{{end}}</html>
`))
	indexPage = template.Must(template.New("index").Parse(head + `<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<ul>{{range .Pages}}<li><a href="{{.File}}.html">{{.Title}}</a></li>{{end}}</ul>
</html>
`))
)

// Write draws the pages, and an index of them with the title, into a directory that is
// there.
func Write(dir, title string, pages []Page) error {
	for i := range pages {
		p := &pages[i]
		var charts []template.HTML
		for j := range p.Charts {
			svg, err := p.Charts[j].svg()
			if err != nil {
				return fmt.Errorf("%s: %w", p.File, err)
			}
			charts = append(charts, template.HTML(svg)) //nolint:gosec // it is made here, of numbers and names of our own
		}
		data := struct {
			Page   *Page
			Charts []template.HTML
		}{p, charts}
		if err := writePage(filepath.Join(dir, p.File+".html"), chartPage, data); err != nil {
			return err
		}
	}
	return writePage(filepath.Join(dir, "index.html"), indexPage, struct {
		Title string
		Pages []Page
	}{title, pages})
}

func writePage(path string, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
