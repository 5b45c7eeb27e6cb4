package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/storm"
)

// retryStorm is the program after the word storm, and returns its exit code.
func retryStorm(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runProgram(ctx, args, stdout, stderr, func(args []string, usage io.Writer) (program, error) {
		o, err := parseStormFlags(args, usage)
		r := newStormReport(time.Now())
		var picture plotFile
		return program{
			jsonPath: o.jsonPath, report: r,
			prepare: func() error { return picture.open(o.plotPath) },
			fill: func(ctx context.Context, tables, stderr io.Writer) int {
				return r.fill(ctx, o, &picture, tables, stderr)
			},
		}, err
	})
}

// fill runs the rows, prints and draws them, and returns the exit code. Whatever it returns,
// the report has what was finished.
func (r *stormReport) fill(ctx context.Context, o stormOptions, picture *plotFile, stdout, stderr io.Writer) int {
	began := time.Now()
	s := &storm.Sweep{Rows: o.rows, Parallel: o.parallel}
	p := newSimProgress(stderr, "storm", len(s.Rows), s.Parallel, s.Progress)
	failure := s.Run(ctx)
	p.end()
	r.ElapsedSeconds = time.Since(began).Seconds()
	r.add(s)
	err := errors.Join(r.printTable(stdout), r.printVerdict(stdout), picture.write(stormCharts(s)))
	switch {
	case err != nil || failure != nil && ctx.Err() == nil:
		fmt.Fprintln(stderr, "bench:", errors.Join(failure, err))
		return exitFailed
	case ctx.Err() != nil && !r.Verdict.Complete:
		r.Interrupted = true
		done, _ := s.Progress()
		fmt.Fprintf(stderr, "bench: interrupted: %d of %d simulations were finished\n", done, len(s.Rows))
		return exitInterrupted
	case len(r.Verdict.Missed) > 0:
		return exitMissed
	}
	return exitOK
}
