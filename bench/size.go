package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

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
		return program{
			jsonPath: o.jsonPath, report: r, prepare: o.open,
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
		fmt.Fprintln(stderr, "bench: interrupted: what was finished is printed")
		return exitInterrupted
	case failure != nil || err != nil:
		fmt.Fprintln(stderr, "bench:", errors.Join(failure, err))
		return exitFailed
	}
	return exitOK
}

// sizing is what is to be simulated.
func (o *sizeOptions) sizing(in *sizing.Input, stderr io.Writer) *sizing.Sizing {
	if o.workers > 0 {
		in.SetWorkers(o.workers)
	}
	s := o.simulations()
	s.Input, s.Rate, s.Timeout, s.Idempotent = in, o.rate, o.timeout, o.idempotent
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

// simulations says how they are run.
func (o *sizeOptions) simulations() *sizing.Sizing {
	s := &sizing.Sizing{Calls: o.calls, Parallel: o.parallel}
	for i := range o.seeds {
		s.Seeds = append(s.Seeds, o.seed+uint64(i))
	}
	return s
}

// input reads or measures. On an error the input, if it is not nil, is what was measured before.
func (o *sizeOptions) input(ctx context.Context, stderr io.Writer) (*sizing.Input, error) {
	switch {
	case o.table != nil:
		return &sizing.Input{Kind: "table", Latency: o.table}, nil
	case o.file != nil:
		in, err := sizing.Read(o.file, o.rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.path, err)
		}
		return in, nil
	}
	kind, what := "HTTP", fmt.Sprintf("%s %s", o.method, o.url)
	attack := sizing.HTTP(o.method, o.url, o.data, o.timeout, o.roots)
	if o.grpc != "" {
		secrecy := insecure.NewCredentials()
		if o.tls {
			secrecy = credentials.NewTLS(&tls.Config{RootCAs: o.roots})
		}
		// The channel must not try again by itself, nor wait for a broken connection.
		conn, err := grpc.NewClient(o.grpc, grpc.WithTransportCredentials(secrecy), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig())
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		kind, what = "gRPC", fmt.Sprintf("%s of %s", o.method, o.grpc)
		attack = sizing.GRPC(conn, o.method, o.data, o.timeout)
	}
	if err := o.warn(ctx, what, stderr); err != nil {
		return nil, err
	}
	plan := sizing.Plan{Rate: o.rate, MaxRate: o.maxRate, Length: o.duration, Timeout: o.timeout}
	return sizing.Sweep(ctx, kind, plan, attack, func(s sizing.Step) {
		fmt.Fprintf(stderr, "size: %.4g calls/s for %.1f s: %.4g answered/s, p50 %.4g ms, p99 %.4g ms, %d of %d failed\n",
			s.Rate, s.Seconds, s.Answered, s.P50, s.P99, s.Failed, s.Calls)
	})
}

// warn tells that load will be sent, and leaves time to stop it.
func (o *sizeOptions) warn(ctx context.Context, what string, stderr io.Writer) error {
	fmt.Fprintf(stderr, "size: WARNING: this sends real load to %s\n"+
		"size: WARNING: up to %.4g calls a second, for up to %v, until it no longer keeps up: that may hurt whoever else uses it\n"+
		"size: WARNING: it begins in %v; Ctrl-C stops it\n", what, o.maxRate, o.duration, o.grace)
	select {
	case <-time.After(o.grace):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open opens the file to read.
func (o *sizeOptions) open() error {
	if o.path == "" {
		return nil
	}
	var err error
	if o.file, err = os.Open(o.path); err != nil {
		return fmt.Errorf("bench: -file: %w", err)
	}
	return nil
}

func (o *sizeOptions) close() {
	if o.file != nil {
		_ = o.file.Close() // it was only read
	}
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
