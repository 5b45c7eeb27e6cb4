package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// peersProgress tells on stderr how far a comparison is: in one line that is drawn over and over
// on a terminal, in a line per part elsewhere. It is for one goroutine.
type peersProgress struct {
	out      io.Writer
	terminal bool
	began    time.Time
}

func newPeersProgress(out io.Writer) *peersProgress {
	return &peersProgress{out: out, terminal: isTerminal(out), began: time.Now()}
}

// watch runs a part with so many calls, which adds each that has ended to done.
func (p *peersProgress) watch(what string, calls int, part func(done *atomic.Int64) ([]sample, error)) ([]sample, error) {
	elapsed := time.Since(p.began).Round(time.Second)
	if !p.terminal {
		fmt.Fprintf(p.out, "peers: %s, %d calls, after %v\n", what, calls, elapsed)
	}
	var done atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		if p.terminal {
			p.draw(what, calls, &done, stop)
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	return part(&done)
}

func (p *peersProgress) draw(what string, calls int, done *atomic.Int64, stop <-chan struct{}) {
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		fmt.Fprintf(p.out, "\r\x1b[Kpeers: %s, %d/%d calls, after %v", what, done.Load(), calls, time.Since(p.began).Round(time.Second))
		select {
		case <-tick.C:
		case <-stop:
			fmt.Fprint(p.out, "\r\x1b[K")
			return
		}
	}
}
