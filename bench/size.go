package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
	"github.com/holdfast-go/holdfast/bench/internal/sizing"
)

const (
	// assumedRate is the calls a second if nothing tells.
	assumedRate = 100
	// assumedUse is the share of the capacity that is in use if only that is known.
	assumedUse = 0.6
)

// size is the program after the word size, and returns its exit code.
func size(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runProgram(ctx, args, stdout, stderr, func(args []string, usage io.Writer) (program, error) {
		o, err := parseSizeFlags(args, usage)
		r := newSizeReport(time.Now())
		if err == nil {
			err = o.open() // before the file of -json, which may be the same
		}
		return program{
			jsonPath: o.jsonPath, report: r, prepare: func() error { return nil },
			fill: func(ctx context.Context, tables, stderr io.Writer) int {
				defer o.close()
				// As in hedge: calls leave a lot of small garbage and little that stays.
				defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
				if o.cases {
					return r.fillCases(ctx, o, tables, stderr)
				}
				return r.fill(ctx, o, tables, stderr)
			},
		}, err
	})
}

// fill reads or measures, simulates and prints, and returns the exit code. Whatever it returns,
// the report has what was finished.
func (r *sizeReport) fill(ctx context.Context, o *sizeOptions, stdout, stderr io.Writer) int {
	began := time.Now()
	in, failure := o.input(ctx, stderr)
	var s *sizing.Sizing
	if in != nil {
		s = o.sizing(in, stderr)
		r.addInput(s)
		if failure == nil {
			r.Recommendation, failure = s.Recommend(ctx)
		}
	}
	r.ElapsedSeconds = time.Since(began).Seconds()
	var err error
	if s != nil {
		if r.Recommendation != nil && r.Recommendation.Complete() {
			err = r.addText(s, o.grpcMethod())
		}
		err = errors.Join(err, r.printTables(stdout), r.printText(stdout))
	}
	switch {
	case ctx.Err() != nil:
		r.Interrupted = true
		fmt.Fprintln(stderr, "bench: interrupted:", r.kept())
		return exitInterrupted
	case failure != nil || err != nil:
		fmt.Fprintln(stderr, "bench:", errors.Join(failure, err))
		return exitFailed
	}
	return exitOK
}

// sizing is what is to be simulated.
func (o *sizeOptions) sizing(in *sizing.Input, stderr io.Writer) *sizing.Sizing {
	if o.workers > 0 && in.Latency != nil {
		in.SetWorkers(o.workers)
	}
	s := o.simulations()
	s.Input, s.Rate, s.Timeout = in, o.rate, o.timeout
	s.Idempotent, s.Doubt = o.idempotency(in)
	s.Begin = func(stage string, runs int, progress func() (int, float64)) func() {
		return newSimProgress(stderr, "size: "+stage, runs, o.parallel, progress).end
	}
	switch {
	case s.Rate > 0:
	case in.Rate > 0:
		s.Rate = in.Rate
	case in.Capacity > 0:
		s.Rate = assumedUse * in.Capacity
		in.Notes = append(in.Notes, fmt.Sprintf("the present load is not known: %g %% of the capacity is assumed; -rate tells it", 100*assumedUse))
	default:
		s.Rate = assumedRate
		in.Notes = append(in.Notes, fmt.Sprintf("the present load is not known: %d calls a second are assumed; -rate tells it", assumedRate))
	}
	return s
}

// idempotency tells whether a call may be carried out twice, and what is to be said of that: what
// the flags say counts, and then what the input does.
func (o *sizeOptions) idempotency(in *sizing.Input) (idempotent bool, doubt string) {
	switch {
	case o.idempotentGiven && o.idempotent:
		return true, ""
	case o.idempotentGiven:
		return false, "-idempotent=false says so"
	case o.method == "":
		return in.Methods.Idempotent()
	case o.grpcMethod() == "" && sizing.Safe(o.method):
		return true, ""
	}
	return false, fmt.Sprintf("%s is not known to be idempotent; -idempotent tells that it is", brief.Shorten(o.method, brief.Most))
}

// kept says what an interruption has left.
func (r *sizeReport) kept() string {
	switch {
	case r.Input == nil:
		return "nothing was finished"
	case r.Recommendation == nil && len(r.Input.Steps) > 0:
		return fmt.Sprintf("%s of the load, with %s, had been finished, and what they tell is printed",
			brief.Count(len(r.Input.Steps), "step"), brief.Count(r.Input.Answers, "answer"))
	}
	return "what was finished is printed"
}

// simulations says how they are run.
func (o *sizeOptions) simulations() *sizing.Sizing {
	s := &sizing.Sizing{Calls: o.calls, Parallel: o.parallel}
	for i := range o.seeds {
		s.Seeds = append(s.Seeds, o.seed+uint64(i))
	}
	return s
}

// fillCases holds what is recommended against what is known to be best.
func (r *sizeReport) fillCases(ctx context.Context, o *sizeOptions, stdout, stderr io.Writer) int {
	began := time.Now()
	s := o.simulations()
	all := sizing.Cases()
	r.Cases = []sizing.CaseRow{}
	var failure error
	for i := range all {
		fmt.Fprintf(stderr, "size: case %d of %d: %s\n", i+1, len(all), all[i].Name)
		var row *sizing.CaseRow
		if row, failure = sizing.RunCase(ctx, &all[i], *s); failure != nil {
			break
		}
		r.Cases = append(r.Cases, *row)
	}
	r.ElapsedSeconds = time.Since(began).Seconds()
	met, err := r.printCases(stdout)
	switch {
	case ctx.Err() != nil:
		r.Interrupted = true
		fmt.Fprintf(stderr, "bench: interrupted: %d of %d cases were finished\n", len(r.Cases), len(all))
		return exitInterrupted
	case failure != nil || err != nil:
		fmt.Fprintln(stderr, "bench:", errors.Join(failure, err))
		return exitFailed
	case !met:
		return exitMissed
	}
	return exitOK
}
