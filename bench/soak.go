package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/soak"
)

// soakEvery is how often the soak tells how far it is.
const soakEvery = 10 * time.Second

// soakTransport is the program after the word soak, and returns its exit code.
func soakTransport(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runProgram(ctx, args, stdout, stderr, func(args []string, usage io.Writer) (program, error) {
		o, err := parseSoakFlags(args, usage)
		r := newSoakReport(o.settings, time.Now())
		return program{
			jsonPath: o.jsonPath, report: r,
			prepare: func() error { return nil }, // nothing is drawn
			fill:    r.fill,
		}, err
	})
}

// fill soaks, prints the verdict and returns the exit code. The report has no result if the
// soak could not begin, and else that of all calls until then, also after Ctrl-C.
func (r *soakReport) fill(ctx context.Context, stdout, stderr io.Writer) int {
	began := time.Now()
	s := r.Settings
	result, err := soak.Run(ctx, soak.Config{
		Time: s.Time, Capacity: s.Capacity, Seed: s.Seed, Every: soakEvery,
		Progress: func(x soak.Snapshot) {
			fmt.Fprintf(stderr, "soak: %v of %v: %s\n", x.Elapsed.Round(time.Second), s.Time, soakLine(x))
		},
	})
	r.ElapsedSeconds = time.Since(began).Seconds()
	if err == nil {
		r.Result, r.Interrupted = &result, result.Interrupted
		err = r.print(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	if r.Interrupted {
		fmt.Fprintf(stderr, "bench: interrupted after %v of %v: what there was is judged\n", result.Last.Elapsed.Round(time.Second), s.Time)
	}
	return soakCode(result)
}

// soakCode is the exit code of a result. What has stayed behind has been found, whether or
// not the soak was to go on: so it counts for more than an interruption.
func soakCode(r soak.Result) int {
	switch {
	case len(r.Wrong) > 0:
		return exitFailed
	case r.Interrupted:
		return exitInterrupted
	}
	return exitOK
}
