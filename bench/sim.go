package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/course"
)

// simulate is the program after the word sim, and returns its exit code.
func simulate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runProgram(ctx, args, stdout, stderr, func(args []string, usage io.Writer) (program, error) {
		o, err := parseSimFlags(args, usage)
		r := newSimReport(o, time.Now())
		return program{
			jsonPath: o.jsonPath, prepare: o.prepare, report: r,
			fill: func(ctx context.Context, tables, stderr io.Writer) int { return r.fill(ctx, o, tables, stderr) },
		}, err
	})
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
			err = course.Write(o.reportDir, "Arena", r.about(), simPages(matches))
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
