package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
	"github.com/holdfast-go/holdfast/bench/internal/sizing"
)

// input reads or measures. On an error the input, if it is not nil, is what was measured before.
func (o *sizeOptions) input(ctx context.Context, stderr io.Writer) (*sizing.Input, error) {
	switch {
	case o.table != nil:
		return sizing.TableInput("table", o.table, 0), nil
	case o.file != nil:
		return o.read(ctx)
	}
	kind, what := "HTTP", fmt.Sprintf("%s %s", o.method, redactURL(o.url))
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
	return sizing.Sweep(ctx, kind, o.plan(), attack, func(s sizing.Step) { fmt.Fprintln(stderr, stepLine(&s)) })
}

// plan is the load to send.
func (o *sizeOptions) plan() sizing.Plan {
	return sizing.Plan{Rate: o.rate, MaxRate: o.maxRate, Length: o.duration, Timeout: o.timeout}
}

// stepLine tells of a step that is over.
func stepLine(s *sizing.Step) string {
	line := fmt.Sprintf("size: %.4g calls/s for %.1f s: ", s.Rate, s.Seconds)
	switch {
	case s.Calls == 0:
		return line + "no call was sent"
	case s.Failed == s.Calls:
		return line + fmt.Sprintf("none of %s was answered: %s", brief.Count(s.Calls, "call"), sizing.TellCauses(s.Causes))
	}
	line += fmt.Sprintf("%.4g answered/s, p50 %.4g ms, p99 %.4g ms, %d of %d failed", s.Answered, s.P50, s.P99, s.Failed, s.Calls)
	if s.Failed > 0 {
		line += ": " + sizing.TellCauses(s.Causes)
	}
	return line
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

// standardInput is the -file that is no file.
const standardInput = "-"

// open opens the file to read, which must not be the one to write.
func (o *sizeOptions) open() error {
	if o.path == "" {
		return nil
	}
	if o.file = os.Stdin; o.path != standardInput {
		var err error
		if o.file, err = os.Open(o.path); err != nil {
			return fmt.Errorf("bench: -file: %w", err)
		}
	}
	info, err := o.file.Stat()
	if err == nil {
		switch {
		case info.IsDir():
			err = errors.New("it is a directory")
		case o.writes(info):
			err = errJSONIsInput
		}
	}
	if err != nil {
		o.close()
		return fmt.Errorf("bench: -file %s: %w", brief.Quote(o.path), err)
	}
	return nil
}

var errJSONIsInput = errors.New("-json is the same file, and would overwrite it")

// writes tells whether a file is that of -json, which may not be there yet.
func (o *sizeOptions) writes(input os.FileInfo) bool {
	if o.jsonPath == "" || o.jsonPath == "-" {
		return false
	}
	info, err := os.Stat(o.jsonPath)
	return err == nil && os.SameFile(info, input)
}

// readInput reads a whole file that is named by a flag, and must not be the one to write.
func (o *sizeOptions) readInput(flag, path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bench: -%s: %w", flag, err)
	}
	if info, err := os.Stat(path); err == nil && o.writes(info) {
		return nil, fmt.Errorf("bench: -%s %s: %w", flag, brief.Quote(path), errJSONIsInput)
	}
	return data, nil
}

// read reads the file. It does not wait for it once ctx has ended: a pipe that nobody writes to is
// read until the program ends.
func (o *sizeOptions) read(ctx context.Context) (*sizing.Input, error) {
	type result struct {
		in  *sizing.Input
		err error
	}
	done := make(chan result, 1)
	go func() {
		in, err := sizing.Read(o.file, o.rate)
		done <- result{in, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			name := o.path
			if name == standardInput {
				name = "standard input"
			}
			return nil, fmt.Errorf("%s: %w", name, r.err)
		}
		return r.in, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (o *sizeOptions) close() {
	if o.file != nil && o.path != standardInput {
		_ = o.file.Close() // it was only read
	}
}
