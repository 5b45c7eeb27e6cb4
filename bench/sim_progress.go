package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
)

// reportEvery is how often progress is told where it is not drawn over.
const reportEvery = 5 * time.Second

// simProgress tells on stderr how far a tournament is: in one line that is drawn over
// and over on a terminal, in a line now and then elsewhere.
type simProgress struct {
	out        io.Writer
	terminal   bool
	tournament *arena.Tournament
	title      string
	began      time.Time
	stop       chan struct{}
	telling    sync.WaitGroup
}

// newSimProgress begins to tell of a tournament, number i of n. Its end must be
// called.
func newSimProgress(out io.Writer, t *arena.Tournament, i, n int) *simProgress {
	p := &simProgress{out: out, terminal: isTerminal(out), tournament: t, title: "sim", began: time.Now(), stop: make(chan struct{})}
	if n > 1 {
		p.title = fmt.Sprintf("sim %d/%d", i+1, n)
	}
	fmt.Fprintf(out, "%s: %d simulations, %d at a time\n", p.title, t.Runs(), t.Parallel)
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
	runs, done := p.tournament.Progress()
	left := ""
	if done > 0.01 {
		rest := time.Duration(float64(time.Since(p.began)) * (1 - done) / done)
		left = fmt.Sprintf(", about %v left", rest.Round(time.Second))
	}
	return fmt.Sprintf("%s: %d of %d simulations, %.0f %% of the calls%s", p.title, runs, p.tournament.Runs(), 100*done, left)
}

// end ends it. Nothing is written after it.
func (p *simProgress) end() {
	close(p.stop)
	p.telling.Wait()
}
