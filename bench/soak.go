package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/soak"
)

// soakEvery is how often the soak tells how far it is.
const soakEvery = 10 * time.Second

// shortestSoak: a soak that is shorter has not met all that may go wrong, nor can it tell
// memory that grows from memory that is only being taken.
const shortestSoak = 5 * time.Second

// soakTransport is the program after the word soak, and returns its exit code.
func soakTransport(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	config, err := parseSoakFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	config.Every = soakEvery
	config.Progress = func(s soak.Snapshot) {
		fmt.Fprintf(stderr, "%v of %v: %s\n", s.Elapsed.Round(time.Second), config.Time, soakLine(s))
	}
	result, err := soak.Run(ctx, config)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	printSoak(stdout, config, result)
	if len(result.Wrong) > 0 || result.Interrupted {
		return exitFailed
	}
	return exitOK
}

// parseSoakFlags reads the flags. On error, which it has not printed, it returns nothing
// of use.
func parseSoakFlags(args []string, stderr io.Writer) (soak.Config, error) {
	var c soak.Config
	f := flag.NewFlagSet("bench soak", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.DurationVar(&c.Time, "time", 10*time.Minute, "how long calls are begun")
	f.Uint64Var(&c.Seed, "seed", 1, "of the draws of the calls")
	f.IntVar(&c.Capacity, "capacity", 8, "how many requests each of the two servers answers at once")
	if err := f.Parse(args); err != nil {
		return soak.Config{}, err
	}
	switch {
	case f.NArg() > 0:
		return soak.Config{}, fmt.Errorf("bench: soak takes no arguments, only flags: %q", f.Arg(0))
	case c.Time < shortestSoak:
		return soak.Config{}, fmt.Errorf("bench: -time %v is too short to judge by: %v at least", c.Time, shortestSoak)
	case c.Capacity < 1 || c.Capacity > maxSlots:
		return soak.Config{}, fmt.Errorf("bench: -capacity %d is not between 1 and %d", c.Capacity, maxSlots)
	}
	return c, nil
}

func soakLine(s soak.Snapshot) string {
	return fmt.Sprintf("%d calls: %d answered, %d with 5xx, %d refused, %d errors, %d panics, %d hedged; %d bodies lost and found; in flight %d, goroutines %d, heap %.1f MiB",
		s.Calls, s.Answered, s.Failed, s.Refused, s.Broken, s.Panicked, s.Hedged, s.LostBodies, s.InFlight, s.Goroutines, mebibytes(s.Heap))
}

// printSoak prints the verdict. What is wrong comes last, since it is what is to be read.
func printSoak(w io.Writer, c soak.Config, r soak.Result) {
	fmt.Fprintf(w, "soak of %v, seed %d, two servers of capacity %d\n", r.Last.Elapsed.Round(time.Second), c.Seed, c.Capacity)
	fmt.Fprintln(w, soakLine(r.Last))
	for _, k := range slices.Sorted(maps.Keys(r.Kinds)) {
		fmt.Fprintf(w, "  %-22s %d\n", k, r.Kinds[k])
	}
	fmt.Fprintf(w, "heap after a collection: %.1f MiB in the first third, %.1f MiB in the last\n", mebibytes(r.FirstHeap), mebibytes(r.LastHeap))
	if r.Interrupted {
		fmt.Fprintf(w, "INTERRUPTED after %v of %v\n", r.Last.Elapsed.Round(time.Second), c.Time)
	}
	for _, wrong := range r.Wrong {
		fmt.Fprintln(w, "WRONG:", wrong)
	}
	if len(r.Wrong) == 0 {
		fmt.Fprintln(w, "nothing has stayed behind: no permit, no goroutine, no open body, no memory")
	}
}

func mebibytes(n uint64) float64 { return float64(n) / (1 << 20) }
