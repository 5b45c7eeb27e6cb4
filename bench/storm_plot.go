package main

import (
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/course"
	"github.com/holdfast-go/holdfast/bench/internal/storm"
)

// plotFile is that of -plot. The zero value draws nothing.
type plotFile struct {
	file   *os.File
	format string
}

// open opens the file, so that one that cannot be written is found before the run. What is in
// it stays until write. An empty path is no file.
func (p *plotFile) open(path string) (err error) {
	if path == "" {
		return nil
	}
	if p.format, err = course.Format(path); err == nil {
		p.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	}
	if err != nil {
		return fmt.Errorf("bench: -plot: %w", err)
	}
	return nil
}

// write draws the charts, if there is a file and there are any, and closes it.
func (p *plotFile) write(charts []course.Chart) (err error) {
	if p.file == nil {
		return nil
	}
	defer func() {
		if e := p.file.Close(); err == nil {
			err = e
		}
		if err != nil {
			err = fmt.Errorf("-plot: %w", err)
		}
	}()
	if len(charts) == 0 {
		return nil
	}
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	return course.Draw(p.file, p.format, charts)
}

// stormCharts draws the rows that are over: none if there is none.
func stormCharts(s *storm.Sweep) []course.Chart {
	charts := []course.Chart{
		{Title: "Queue of the server", Unit: "requests", Log: true},
		{Title: "Attempts that came to the server", Unit: "a second", Log: true},
		{Title: "Calls answered", Unit: "a second"},
	}
	finished := false
	for i := range s.Rows {
		f := s.Figures[i]
		if f == nil {
			continue
		}
		finished = true
		var seconds []float64
		for t := range f.Queue {
			seconds = append(seconds, float64(t))
		}
		for k, series := range [][]int{f.Queue, f.Rate, f.Good} {
			c := &charts[k]
			y := make([]float64, len(series))
			for t, n := range series {
				y[t] = float64(n)
			}
			c.Length = time.Duration(s.Rows[i].Length) * time.Second
			c.Curves = append(c.Curves, course.Curve{Name: s.Rows[i].Name, Color: i, X: seconds, Y: y})
		}
	}
	if !finished {
		return nil
	}
	return charts
}
