package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
	"github.com/holdfast-go/holdfast/bench/internal/course"
)

// exitMissed tells that a run went well and the library did not: a target was missed, or may have
// been, for all that the figures tell.
const exitMissed = 3

// maxParallel is what a machine may have of processors.
const maxParallel = 1024

// program is one of those after a word, such as sim, once its command line has been read.
type program struct {
	// jsonPath is that of -json, and prepare makes sure that there is room for what it draws:
	// both before minutes of work.
	jsonPath string
	prepare  func() error
	// fill runs everything, prints it and returns the exit code. Whatever it returns, report
	// has what was finished.
	fill   func(ctx context.Context, tables, stderr io.Writer) int
	report any
}

// runProgram reads a command line with parse, runs the program and writes its report. It
// returns the exit code.
func runProgram(ctx context.Context, args []string, stdout, stderr io.Writer, parse func(args []string, usage io.Writer) (program, error)) int {
	p, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	out, err := openOutput(p.jsonPath, stdout, stderr)
	if err == nil {
		err = p.prepare()
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	code := p.fill(ctx, out.tables, stderr)
	if err := out.write(p.report); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return code
}

// commonFlags are those that every simulation has.
type commonFlags struct {
	jsonPath string
	parallel int
}

func (c *commonFlags) register(f *flag.FlagSet) {
	f.IntVar(&c.parallel, "parallel", runtime.GOMAXPROCS(0), fmt.Sprintf("simulations that run at the same time; from 1 to %d", maxParallel))
	f.StringVar(&c.jsonPath, "json", "", "also write everything to this `file`, or to standard output if it is -")
}

// validate names the flag that makes no sense, with its value.
func (c *commonFlags) validate() error {
	if c.parallel < 1 || c.parallel > maxParallel {
		return fmt.Errorf("bench: -parallel %d is not between 1 and %d", c.parallel, maxParallel)
	}
	return nil
}

// reportFlag is that of the programs which draw pages.
type reportFlag struct{ reportDir string }

func (r *reportFlag) register(f *flag.FlagSet, usage string) {
	f.StringVar(&r.reportDir, "report", "", usage)
}

// drawSeed is what -report does in the simulations.
const drawSeed = "also draw the first seed over time, into HTML files in this `directory`"

// prepare makes the directory, if there is to be one.
func (r *reportFlag) prepare() error {
	if r.reportDir == "" {
		return nil
	}
	if err := course.Prepare(r.reportDir); err != nil {
		return fmt.Errorf("bench: -report: %w", err)
	}
	return nil
}

// parseArgs reads a command line into f. It returns flag.ErrHelp after -h, when usage has been
// written to w, and else an error that names the flag and its value.
func parseArgs(f *flag.FlagSet, args []string, w io.Writer) error {
	f.SetOutput(io.Discard) // the error is returned, and usage is for -h
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(w, "usage: go run ./%s [flags]\n", f.Name())
			f.SetOutput(w)
			f.PrintDefaults()
			return err
		}
		return fmt.Errorf("bench: %s", flagError(f, err))
	}
	if f.NArg() > 0 {
		return fmt.Errorf("bench: unexpected argument %s", brief.Quote(redactArgument(f.Arg(0))))
	}
	return nil
}
