package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
)

const (
	// maxSeeds is far more than anybody waits for.
	maxSeeds = 1000
	// A scale beyond these bounds leaves nothing of a scenario.
	minScale, maxScale = 0.01, 100
)

// simOptions is what the command line of sim says.
type simOptions struct {
	scenarios []arena.Scenario
	makers    []arena.Maker
	seeds     []uint64
	// scales are gone through one after the other. There is one, or those that
	// compare: the scenarios as they are, and each parameter halved and half as much
	// again.
	scales  []arena.Scale
	compare bool
	commonFlags
	reportFlag
}

// tournament is all simulations of a scale.
func (o *simOptions) tournament(scale arena.Scale) *arena.Tournament {
	t := &arena.Tournament{Makers: o.makers, Seeds: o.seeds, Parallel: o.parallel, Course: o.reportDir != ""}
	for _, s := range o.scenarios {
		t.Scenarios = append(t.Scenarios, s.Scaled(scale))
	}
	return t
}

// parseSimFlags reads the command line after the word sim. It returns flag.ErrHelp
// after -h, when usage has been written to w, and else an error that names the flag
// and its value.
func parseSimFlags(args []string, w io.Writer) (simOptions, error) {
	o := simOptions{}
	scale := arena.Unscaled()
	f := flag.NewFlagSet("bench sim", flag.ContinueOnError)
	scenarios := f.String("scenario", "all", "scenarios to run: `ids` such as S2,S7, or all; S13 is S13a to S13f")
	limits := f.String("limit", arena.OurName, "limits to run: `names` out of "+strings.Join(makerNames(), ", ")+", or all")
	seeds := f.Int("seeds", 5, "how many seeds each simulation is run with; targets are judged on the worst")
	seed := f.Uint64("seed", 1, "the first seed")
	f.Float64Var(&scale.Service, "scale-service", 1, "`factor` of all service times; a scaled scenario has no targets")
	f.Float64Var(&scale.Rate, "scale-rate", 1, "`factor` of all traffic")
	f.Float64Var(&scale.Workers, "scale-workers", 1, "`factor` of all workers, rounded")
	f.BoolVar(&o.compare, "scales", false, "instead, compare goodput with service, rate and workers × 0.5 and × 1.5 each")
	o.commonFlags.register(f)
	o.reportFlag.register(f, drawSeed)
	if err := parseArgs(f, args, w); err != nil {
		return simOptions{}, err
	}
	var err error
	if o.scenarios, err = pickScenarios(*scenarios); err != nil {
		return simOptions{}, err
	}
	if o.makers, err = pickMakers(*limits); err != nil {
		return simOptions{}, err
	}
	if o.seeds, err = pickSeeds(*seed, *seeds); err != nil {
		return simOptions{}, err
	}
	if err := o.commonFlags.validate(); err != nil {
		return simOptions{}, err
	}
	switch {
	case o.compare && scale != arena.Unscaled():
		return simOptions{}, fmt.Errorf("bench: -scales goes through scales of its own, and cannot be had with %s", scale)
	case o.compare && o.reportDir != "":
		return simOptions{}, fmt.Errorf("bench: -scales draws nothing, and cannot be had with -report %q", o.reportDir)
	}
	o.scales = []arena.Scale{scale}
	if o.compare {
		o.scales = comparedScales()
	}
	return o, validScale(scale)
}

// pickSeeds returns n seeds from the first on.
func pickSeeds(first uint64, n int) ([]uint64, error) {
	switch {
	case n < 1 || n > maxSeeds:
		return nil, fmt.Errorf("bench: -seeds %d is not between 1 and %d", n, maxSeeds)
	case first > math.MaxUint64-maxSeeds:
		return nil, fmt.Errorf("bench: -seed %d leaves no room for the others", first)
	}
	var seeds []uint64
	for i := range n {
		seeds = append(seeds, first+uint64(i))
	}
	return seeds, nil
}

// validScale names the first factor that makes no sense.
func validScale(s arena.Scale) error {
	for _, x := range []struct {
		flag   string
		factor float64
	}{{"-scale-service", s.Service}, {"-scale-rate", s.Rate}, {"-scale-workers", s.Workers}} {
		if !(x.factor >= minScale && x.factor <= maxScale) {
			return fmt.Errorf("bench: %s %v is not between %v and %v", x.flag, x.factor, minScale, maxScale)
		}
	}
	return nil
}

// comparedScales are those of -scales, the scenarios as they are first.
func comparedScales() []arena.Scale {
	scales := []arena.Scale{arena.Unscaled()}
	for _, set := range []func(*arena.Scale, float64){
		func(s *arena.Scale, x float64) { s.Service = x },
		func(s *arena.Scale, x float64) { s.Rate = x },
		func(s *arena.Scale, x float64) { s.Workers = x },
	} {
		for _, factor := range []float64{0.5, 1.5} {
			s := arena.Unscaled()
			set(&s, factor)
			scales = append(scales, s)
		}
	}
	return scales
}

// pickScenarios returns the scenarios that are named, in their own order.
func pickScenarios(list string) ([]arena.Scenario, error) {
	all := arena.Scenarios()
	if list == "all" {
		return all, nil
	}
	picked := make([]bool, len(all))
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for i := range all {
			if all[i].In(strings.TrimSpace(name)) {
				picked[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("bench: -scenario %q is none of S1 to S13, S13a to S13f and all", name)
		}
	}
	var some []arena.Scenario
	for i := range all {
		if picked[i] {
			some = append(some, all[i])
		}
	}
	return some, nil
}

// pickMakers returns the limits that are named, in their own order.
func pickMakers(list string) ([]arena.Maker, error) {
	return pickNamed("-limit", list, arena.Makers(), func(m *arena.Maker) string { return m.Name })
}

// pickNamed returns those of all that the list of a flag names, in their own order.
func pickNamed[T any](flag, list string, all []T, name func(*T) string) ([]T, error) {
	if list == "all" {
		return all, nil
	}
	picked := make([]bool, len(all))
	for want := range strings.SplitSeq(list, ",") {
		want = strings.TrimSpace(want)
		i := slices.IndexFunc(all, func(x T) bool { return strings.EqualFold(name(&x), want) })
		if i < 0 {
			return nil, fmt.Errorf("bench: %s %q is none of %s and all", flag, want, strings.Join(names(all, name), ", "))
		}
		picked[i] = true
	}
	var some []T
	for i := range all {
		if picked[i] {
			some = append(some, all[i])
		}
	}
	return some, nil
}

func names[T any](all []T, name func(*T) string) []string {
	var list []string
	for i := range all {
		list = append(list, name(&all[i]))
	}
	return list
}

func makerNames() []string {
	return names(arena.Makers(), func(m *arena.Maker) string { return m.Name })
}
