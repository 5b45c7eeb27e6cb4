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

// style makes a page that can be read on a phone and on a wide screen, by day and by night.
const style = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
<style>
:root{color-scheme:light dark}
body{font:16px/1.5 sans-serif;max-width:76rem;margin:1.5rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1,h2{line-height:1.2}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,28rem),1fr));gap:1.5rem}
figure{margin:0;min-width:0}
figcaption{font-weight:bold}
figure svg text{fill:currentColor}
figure svg{display:block;width:100%;height:auto}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:0 1rem;margin:0;padding:0;font-size:.875rem}
.legend svg{display:inline-block;width:1.5rem;height:.75rem;margin-right:.35rem}
.wide{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.875rem}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid #8886}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:inherit}
.wide,table,thead,tbody,tr{background:inherit}
li{overflow-wrap:anywhere}
a{color:#0b5cad}
@media (prefers-color-scheme:dark){body{color:#e4e4e4;background:#16181b}a{color:#8ab8f0}}
</style>
`

var chartPage = Template(`<title>{{.Title}}</title>
<p><a href="index.html">All pages</a></p>
<h1>{{.Title}}</h1>
<ul>{{range .Lines}}<li>{{.}}</li>{{end}}</ul>
<p>{{.Note}}</p>
{{figures .Charts}}</html>
`)

var indexPage = Template(`<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<ul>{{range .About}}<li>{{.}}</li>{{end}}</ul>
<ul>{{range .Pages}}<li><a href="{{.File}}.html">{{.Title}}</a></li>{{end}}</ul>
</html>
`)

// Template parses the body of a page, from its title on, into one whose look is that of all
// pages. In it {{figures .Charts}} draws charts. It panics if the text is no template.
func Template(body string) *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{"figures": figures}).Parse(style + body))
}

// Write draws the pages, and an index of them with the title and what is said about all of
// them, into a directory that is there.
func Write(dir, title string, about []string, pages []Page) error {
	for i := range pages {
		if err := WriteFile(filepath.Join(dir, pages[i].File+".html"), chartPage, &pages[i]); err != nil {
			return fmt.Errorf("%s: %w", pages[i].File, err)
		}
	}
	return WriteFile(filepath.Join(dir, "index.html"), indexPage, struct {
		Title string
		About []string
		Pages []Page
	}{title, about, pages})
}

// WriteFile writes one page. On error what was in the file before is still there, unless it
// could not be written.
func WriteFile(path string, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
