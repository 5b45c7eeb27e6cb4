package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// redrawEvery is how often the line on a terminal is drawn anew.
const redrawEvery = 200 * time.Millisecond

// rowOverhead is about what a row takes besides its calls.
const rowOverhead = 300 * time.Millisecond

// progress tells on stderr how far the run is: in one line that is drawn over and
// over on a terminal, in a line per phase elsewhere. It is for one goroutine.
type progress struct {
	out      io.Writer
	terminal bool
	began    time.Time
	planned  time.Duration // of the whole run
	rows     int
	row      int // the present one, counted from 1
	title    string
}

func newProgress(out io.Writer, s settings, rows int) *progress {
	perRow := time.Duration(float64(s.WarmUp+s.calls())/s.Rate*float64(time.Second)) + rowOverhead
	return &progress{
		out: out, terminal: isTerminal(out),
		began: time.Now(), planned: time.Duration(rows) * perRow, rows: rows,
	}
}

// isTerminal reports whether w is a character device, which is as much as can be
// known without a dependency.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// nextRow begins the next row.
func (p *progress) nextRow(experiment string, v variant) {
	p.row++
	p.title = fmt.Sprintf("row %d/%d %s (%s, cancel %s)", p.row, p.rows, experiment, v.protocol, v.cancel)
}

// finished tells what came of a row.
func (p *progress) finished(r row) {
	fmt.Fprintf(p.out, "%s: p99 %.1f ms, extra %.1f %%, errors %d\n", p.title, r.P99, r.ExtraPercent, r.Errors)
}

// left is how long the rest of the run will take.
func (p *progress) left() time.Duration {
	return max(p.planned-time.Since(p.began), 0).Round(time.Second)
}

// phase begins a phase of the row with so many calls; those that have ended are
// to be added to its done. Its end must be called.
func (p *progress) phase(name string, calls int) *phase {
	ph := &phase{progress: p, name: name, calls: calls, stop: make(chan struct{})}
	if !p.terminal {
		fmt.Fprintf(p.out, "%s: %s, %d calls, about %v left\n", p.title, name, calls, p.left())
		return ph
	}
	ph.drawing.Add(1)
	go ph.draw()
	return ph
}

// phase is a part of a row.
type phase struct {
	progress *progress
	name     string
	calls    int
	done     atomic.Int64
	stop     chan struct{}
	drawing  sync.WaitGroup
}

// draw draws the line until the phase ends.
func (ph *phase) draw() {
	defer ph.drawing.Done()
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	p := ph.progress
	for {
		fmt.Fprintf(p.out, "\r\x1b[K%s: %s, %d/%d calls, about %v left", p.title, ph.name, ph.done.Load(), ph.calls, p.left())
		select {
		case <-tick.C:
		case <-ph.stop:
			fmt.Fprint(p.out, "\r\x1b[K")
			return
		}
	}
}

// end ends the phase. Nothing is drawn after it.
func (ph *phase) end() {
	close(ph.stop)
	ph.drawing.Wait()
}
