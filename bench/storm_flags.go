package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/course"
	"github.com/holdfast-go/holdfast/bench/internal/storm"
)

// stormOptions is what the command line of storm says.
type stormOptions struct {
	settings storm.Settings
	rows     []storm.Row
	plotPath string
	commonFlags
}

// parseStormFlags reads the command line after the word storm. It returns flag.ErrHelp after
// -h, when usage has been written to w, and else an error that names the flag and its value.
func parseStormFlags(args []string, w io.Writer) (stormOptions, error) {
	o := stormOptions{settings: storm.Defaults()}
	s := &o.settings
	names := map[any]string{}
	f := flag.NewFlagSet("bench storm", flag.ContinueOnError)
	number := func(x *int, name, usage string) {
		names[x] = "-" + name
		f.IntVar(x, name, *x, usage)
	}
	share := func(x *float64, name, usage string) {
		names[x] = "-" + name
		f.Float64Var(x, name, *x, usage)
	}
	seconds := func(x *int, name, usage string) {
		names[x] = "-" + name
		f.Var((*wholeSeconds)(x), name, usage)
	}
	number(&s.Capacity, "capacity", "what the server does a second")
	number(&s.Load, "load", "calls a second")
	seconds(&s.Timeout, "timeout", "`duration` that a client waits for an attempt")
	seconds(&s.Start, "start", "`duration` for which all is well")
	seconds(&s.Outage, "outage", "`duration` for which the server then does nothing")
	seconds(&s.Length, "length", "`duration` of all of it")
	number(&s.Layers, "layers", "layers that try again")
	number(&s.Tries, "tries", "tries of each layer; the attempts of a call are this to the power of -layers")
	share(&s.Budget, "budget", "`retries` for each call, in the rows with a budget")
	share(&s.HighBudget, "high-budget", "`retries` for each call, in the row high budget")
	number(&s.HighLoad, "high-load", "calls a second, in the row high load")
	seconds(&s.Blip, "blip", "`duration` of the outage of the row blip")
	number(&s.MaxQueue, "queue", "what the queue holds at most, in the rows short queue")
	seconds(&s.Backoff.Initial, "backoff", "`duration` of the longest wait before the first retry, in the rows back-off")
	number(&s.Backoff.Multiplier, "backoff-factor", "how much longer the wait before each further retry is")
	seconds(&s.Backoff.Max, "backoff-max", "`duration` of the longest wait before any retry")
	seconds(&s.Herd, "herd", "`duration` for which calls come in the rows herd")
	number(&s.DeepLayers, "deep-layers", "layers in the row deep")
	share(&s.Marked, "marked", "`share` of what comes that marked retries may be from half of the permits on, in the row header")
	rows := f.String("row", "all", "rows to run: `names` out of "+strings.Join(stormNames(), ", ")+", or all")
	o.commonFlags.register(f)
	f.StringVar(&o.plotPath, "plot", "", "also draw all rows over time, into this `file`, whose name ends in .png or .svg")
	if err := parseArgs(f, args, w); err != nil {
		return stormOptions{}, err
	}
	name := func(field any) string { return names[field] }
	if err := s.Validate(name); err != nil {
		return stormOptions{}, fmt.Errorf("bench: %w", err)
	}
	if o.plotPath != "" {
		if _, err := course.Format(o.plotPath); err != nil {
			return stormOptions{}, fmt.Errorf("bench: -plot %w", err)
		}
	}
	var err error
	if o.rows, err = pickNamed("-row", *rows, storm.Rows(*s), stormName); err != nil {
		return stormOptions{}, err
	}
	if err := s.Bound(o.rows, name); err != nil {
		return stormOptions{}, fmt.Errorf("bench: %w", err)
	}
	return o, o.commonFlags.validate()
}

func stormName(r *storm.Row) string { return r.Name }

func stormNames() []string { return names(storm.Rows(storm.Defaults()), stormName) }

// wholeSeconds is a duration without fractions of a second, since the model has none.
type wholeSeconds int

func (s *wholeSeconds) String() string { return (time.Duration(*s) * time.Second).String() }

func (s *wholeSeconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d%time.Second != 0:
		return fmt.Errorf("not a whole number of seconds")
	}
	*s = wholeSeconds(d / time.Second)
	return nil
}
