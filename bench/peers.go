package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// comparePeers is the program after the word peers, and returns its exit code.
func comparePeers(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runProgram(ctx, args, stdout, stderr, func(args []string, usage io.Writer) (program, error) {
		o, err := parsePeersFlags(args, usage)
		r := newPeersReport(o, time.Now())
		return program{
			jsonPath: o.jsonPath, report: r, prepare: o.prepareMarkdown,
			fill: func(ctx context.Context, tables, stderr io.Writer) int {
				tables, publish := o.capture(tables, &r.runInfo)
				code := r.fill(ctx, o, tables, stderr)
				if err := publish(); err != nil {
					fmt.Fprintln(stderr, "bench:", err)
					return exitFailed
				}
				return code
			},
		}, err
	})
}

// fill runs the workloads and the micro-benchmarks, prints each when it is over, and returns the
// exit code. Whatever it returns, the report has what was finished.
func (r *peersReport) fill(ctx context.Context, o peersOptions, stdout, stderr io.Writer) int {
	began := time.Now()
	err := r.measure(ctx, o, stdout, stderr)
	r.ElapsedSeconds = time.Since(began).Seconds()
	switch {
	case err != nil && ctx.Err() != nil:
		r.Interrupted = true
		fmt.Fprintf(stderr, "bench: interrupted: %d workloads and %d micro-benchmarks have figures\n", len(r.Workloads), len(r.Micro))
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	case !r.met():
		return exitMissed
	}
	return exitOK
}

func (r *peersReport) measure(ctx context.Context, o peersOptions, stdout, stderr io.Writer) error {
	progress := newPeersProgress(stderr)
	s := &r.Settings
	workloads := s.workloads()
	if s.Delay == 0 {
		var err error
		if s.Delay, err = learnDelay(ctx, &workloads[0], s, progress); err != nil {
			return err
		}
	}
	for i := range workloads {
		w := &workloads[i]
		rows, failure := runWorkload(ctx, w, s, s.Delay, progress)
		if len(rows) > 0 {
			x := peersWorkload{workload: *w, Rows: rows}
			x.judge()
			r.Workloads = append(r.Workloads, x)
			if err := r.printWorkload(stdout, &x); err != nil {
				return errors.Join(failure, err)
			}
		}
		if failure != nil {
			return failure
		}
	}
	if !o.micro {
		return nil
	}
	rows, failure := runMicro(ctx, o.microSettings, stderr)
	r.Micro = rows
	if len(rows) > 0 {
		failure = errors.Join(failure, printMicro(stdout, o.microSettings, rows))
	}
	return failure
}
