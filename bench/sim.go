package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/course"
)

// exitMissed tells that a simulation went well and the limit of the library did not:
// it missed a target.
const exitMissed = 3

// simulate is the program after the word sim, and returns its exit code.
func simulate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseSimFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	out, err := openOutput(o.jsonPath, o.reportDir, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	r := newSimReport(o, time.Now())
	code := r.fill(ctx, o, out.tables, stderr)
	if err := out.write(r); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return code
}

// fill runs everything and prints it, and returns the exit code. Whatever it returns,
// the report has what was finished.
func (r *simReport) fill(ctx context.Context, o simOptions, stdout, stderr io.Writer) int {
	began := time.Now()
	code := exitOK
	for i, scale := range o.scales {
		t := o.tournament(scale)
		title := "sim"
		if n := len(o.scales); n > 1 {
			title = fmt.Sprintf("sim %d/%d", i+1, n)
		}
		p := newSimProgress(stderr, title, t.Runs(), t.Parallel, t.Progress)
		matches, err := t.Run(ctx)
		p.end()
		r.ElapsedSeconds = time.Since(began).Seconds()
		s := r.add(scale, t.Seeds, matches)
		if !o.compare {
			err = errors.Join(err, printMatches(stdout, t.Seeds, matches))
		}
		if o.reportDir != "" && ctx.Err() == nil && err == nil {
			err = course.Write(o.reportDir, "Arena", simPages(matches))
		}
		switch {
		case ctx.Err() != nil:
			r.Interrupted = true
			runs, _ := t.Progress()
			fmt.Fprintf(stderr, "bench: interrupted: %d of %d simulations were finished\n", runs, t.Runs())
			code = exitInterrupted
		case err != nil:
			fmt.Fprintln(stderr, "bench:", err)
			code = exitFailed
		case !s.Verdict.TargetsMet:
			code = exitMissed
		}
		if code == exitFailed || code == exitInterrupted {
			break
		}
	}
	if o.compare {
		if err := printScales(stdout, r); err != nil {
			fmt.Fprintln(stderr, "bench:", err)
			return exitFailed
		}
		return code
	}
	if err := r.printVerdict(stdout); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return code
}
