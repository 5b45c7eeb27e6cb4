// Command mutants plants faults in this module and in that of bench, one at a time, and
// shows that a test finds each.
//
//	go run ./proptest/mutants                 # from the root of the module
//	go run ./proptest/mutants -list
//	go run ./proptest/mutants -run 'reserve'
//	go run ./proptest/mutants -sound -race -jitter -run '^permit/'
//
// A test that has never been seen to fail says little. Each row of the tables in this
// folder is a fault that a limiter or hedger of the past has had, or that a change to
// this one may bring: a text of a source file, and what to put in its place. Both
// modules are copied to a temporary folder, so nothing is changed where it lies.
//
// It exits with 1 if a fault survives, if the text that it changes is not there
// exactly once any more, or if the faulty code does not compile: a fault that is
// stale must be brought up to date, since it shows nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"
)

// A fault is one change that breaks the law.
type fault struct {
	name     string   // what goes wrong, in words
	law      string   // which line of the law it breaks, or which promise of the package
	file     string   // from the root of the module
	old, new string   // old occurs exactly once in file
	packages []string // whose tests are to find it; those of the file's package if empty
	tests    []string // that are to find it, where all of the package take long; those that -tests matches if empty
}

func allFaults() []fault {
	return slices.Concat(permitFaults, permitBookFaults, permitRestFaults, limiterFaults, hedgedlimitFaults, choiceFaults,
		httpmwFaults, lostBodyFaults, deafFaults, handlerFaults, hedgingFaults, learningFaults, gradientFaults,
		grpcmwFaults, grpcclientFaults, grpcserverFaults,
		sizingFaults, sizingInputFaults, stormFaults, downstreamFaults, benchFaults)
}

// A result is what became of one fault.
type result struct {
	fault  fault
	caught string // the test that found it; empty if it survived
	err    error  // the fault could not be tried
	took   time.Duration
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("run", "", "try only faults whose name or file matches this `regexp`")
	list := flag.Bool("list", false, "list the faults and try none")
	timeout := flag.Duration("timeout", 30*time.Second, "how long the tests of one package may run, or each of those that a fault names")
	tests := flag.String("tests", "^(Test|Fuzz)", "let only tests that match this `regexp` find the faults that name none")
	jittery := flag.Bool("jitter", false, "have goroutines step aside at every statement of the package, so that they meet anywhere")
	race := flag.Bool("race", false, "run the tests under the race detector")
	sound := flag.Bool("sound", false, "plant no fault: the tests must pass as they are")
	checks := flag.Int("checks", 1000, "how often each property is checked")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	faults := slices.DeleteFunc(allFaults(), func(f fault) bool {
		return !match.MatchString(f.name) && !match.MatchString(f.file)
	})
	if len(faults) == 0 {
		return errors.New("no fault matches")
	}
	if *list {
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		for _, f := range faults {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.file, f.law, f.name)
		}
		return w.Flush()
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m, err := copyModule(".", *timeout, *checks, *tests)
	if err != nil {
		return err
	}
	defer m.remove()
	m.jitter, m.race = *jittery, *race
	if err := m.sound(ctx, faults); err != nil {
		return err
	}
	if *sound {
		return nil
	}
	var results []result
	for i, f := range faults {
		r := m.try(ctx, f)
		if ctx.Err() != nil {
			return errors.Join(report(results), fmt.Errorf("interrupted after %d of %d faults", i, len(faults)))
		}
		results = append(results, r)
		fmt.Fprintf(os.Stderr, "%3d/%d  %5.1fs  %s: %s\n", i+1, len(faults), r.took.Seconds(), f.name, r.verdict())
	}
	return report(results)
}

// verdict tells in words what became of the fault.
func (r result) verdict() string {
	switch {
	case r.err != nil:
		return "ERROR: " + r.err.Error()
	case r.caught == "":
		return "SURVIVED"
	}
	return "caught by " + r.caught
}

// report prints the table, and fails if a fault was not caught.
func report(results []result) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "file\tlaw\tfault\tfound by\ttime")
	bad := 0
	for _, r := range results {
		caught := r.caught
		if r.err != nil || caught == "" {
			bad++
			caught = r.verdict()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1fs\n", r.fault.file, r.fault.law, r.fault.name, caught, r.took.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d faults were not caught", bad, len(results))
	}
	fmt.Printf("%d faults were planted, all were caught\n", len(results))
	return nil
}
