package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// reportEvery is how often progress is told where it is not drawn over.
const reportEvery = 5 * time.Second

// simProgress tells on stderr how far many simulations are: in one line that is drawn
// over and over on a terminal, in a line now and then elsewhere.
type simProgress struct {
	out      io.Writer
	terminal bool
	title    string
	runs     int
	progress func() (runs int, share float64)
	began    time.Time
	stop     chan struct{}
	telling  sync.WaitGroup
}

// newSimProgress begins to tell of so many simulations. Progress tells how many are
// over, and which share of all calls has come. Its end must be called.
func newSimProgress(out io.Writer, title string, runs, parallel int, progress func() (int, float64)) *simProgress {
	p := &simProgress{out: out, terminal: isTerminal(out), title: title, runs: runs, progress: progress, began: time.Now(), stop: make(chan struct{})}
	fmt.Fprintf(out, "%s: %d simulations, %d at a time\n", title, runs, parallel)
	p.telling.Go(p.tell)
	return p
}

func (p *simProgress) tell() {
	every := reportEvery
	if p.terminal {
		every = redrawEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if p.terminal {
				fmt.Fprintf(p.out, "\r\x1b[K%s", p.line())
			} else {
				fmt.Fprintln(p.out, p.line())
			}
		case <-p.stop:
			if p.terminal {
				fmt.Fprint(p.out, "\r\x1b[K")
			}
			return
		}
	}
}

// line says how far it is, and how long the rest may take.
func (p *simProgress) line() string {
	runs, done := p.progress()
	left := ""
	if done > 0.01 {
		rest := time.Duration(float64(time.Since(p.began)) * (1 - done) / done)
		left = fmt.Sprintf(", about %v left", rest.Round(time.Second))
	}
	return fmt.Sprintf("%s: %d of %d simulations, %.0f %% of the calls%s", p.title, runs, p.runs, 100*done, left)
}

// end ends it. Nothing is written after it.
func (p *simProgress) end() {
	close(p.stop)
	p.telling.Wait()
}
