package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/course"
)

// gcPercent is how much garbage there may be, as a share of what lives: a third of the time
// goes without it.
const gcPercent = 400

// hedge is the program after the word hedge, and returns its exit code.
func hedge(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runProgram(ctx, args, stdout, stderr, func(args []string, usage io.Writer) (program, error) {
		o, err := parseHedgeFlags(args, usage)
		r := newHedgeReport(o, time.Now())
		return program{
			jsonPath: o.jsonPath, prepare: o.prepare, report: r,
			fill: func(ctx context.Context, tables, stderr io.Writer) int { return r.fill(ctx, o, tables, stderr) },
		}, err
	})
}

// fill runs everything and prints it, and returns the exit code. Whatever it returns,
// the report has what was finished.
func (r *hedgeReport) fill(ctx context.Context, o hedgeOptions, stdout, stderr io.Writer) int {
	began := time.Now()
	s := o.sweep()
	rows := s.Rows()
	runs := len(rows) * len(s.Seeds)
	p := newSimProgress(stderr, "hedge", runs, s.Parallel, func() (int, float64) { return s.Progress(rows) })
	// Calls leave a lot of small garbage and little that stays.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	failure := s.Run(ctx, rows)
	p.end()
	r.ElapsedSeconds = time.Since(began).Seconds()
	r.add(rows)
	err := errors.Join(printRows(stdout, rows), r.printVerdict(stdout))
	if o.reportDir != "" && failure == nil && err == nil {
		err = course.Write(o.reportDir, "Hedging", r.about(), hedgePages(rows))
	}
	switch {
	case ctx.Err() != nil:
		r.Interrupted = true
		done, _ := s.Progress(rows)
		fmt.Fprintf(stderr, "bench: interrupted: %d of %d simulations were finished\n", done, runs)
		return exitInterrupted
	case failure != nil || err != nil:
		fmt.Fprintln(stderr, "bench:", errors.Join(failure, err))
		return exitFailed
	case !r.Verdict.TargetsMet:
		return exitMissed
	}
	return exitOK
}
