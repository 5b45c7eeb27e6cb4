package main

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// A load beyond these bounds is a slip.
const minLoad, maxLoad = 0.01, 5

// hedgeOptions is what the command line of hedge says.
type hedgeOptions struct {
	scenarios []hedgearena.Scenario
	loads     []float64 // nil for those of the scenarios
	limits    []hedgearena.Limit
	modes     []hedgearena.Mode
	policies  []hedgearena.Policy
	seeds     []uint64
	commonFlags
	reportFlag
}

func (o *hedgeOptions) sweep() *hedgearena.Sweep {
	return &hedgearena.Sweep{
		Scenarios: o.scenarios, Loads: o.loads, Limits: o.limits, Modes: o.modes, Policies: o.policies,
		Seeds: o.seeds, Parallel: o.parallel, Course: o.reportDir != "",
	}
}

// parseHedgeFlags reads the command line after the word hedge. It returns flag.ErrHelp
// after -h, when usage has been written to w, and else an error that names the flag
// and its value.
func parseHedgeFlags(args []string, w io.Writer) (hedgeOptions, error) {
	o := hedgeOptions{}
	scenarioName := func(s *hedgearena.Scenario) string { return s.ID }
	limitName := func(l *hedgearena.Limit) string { return l.Name }
	policyName := func(p *hedgearena.Policy) string { return p.Name }
	modeName := func(m *hedgearena.Mode) string { return string(*m) }
	modes := []hedgearena.Mode{hedgearena.Refuse, hedgearena.Queue}
	listed := func(names []string) string { return "`names` out of " + strings.Join(names, ", ") + ", or all" }

	f := flag.NewFlagSet("bench hedge", flag.ContinueOnError)
	scenarios := f.String("scenario", "H1,H3", "scenarios to run: "+listed(names(hedgearena.Scenarios(), scenarioName)))
	loads := f.String("load", "", "loads to run, as `shares` of the capacity such as 0.3,0.95; those of each scenario without it")
	policies := f.String("policy", hedgearena.OurName, "policies to run: "+listed(names(hedgearena.Policies(), policyName))+"; what they are compared with runs always")
	limits := f.String("limit", "1.5x,3x", "limits in front: "+listed(names(hedgearena.Limits(), limitName)))
	mode := f.String("mode", "all", "what becomes of a call without a permit: "+listed(names(modes, modeName)))
	seeds := f.Int("seeds", 10, "how many seeds each simulation is run with; targets are judged on the median")
	seed := f.Uint64("seed", 1, "the first seed")
	long := f.Float64("long", 1, "`factor` of how long all phases but the first are: chance is less in longer ones")
	o.commonFlags.register(f)
	o.reportFlag.register(f, drawSeed)
	if err := parseArgs(f, args, w); err != nil {
		return hedgeOptions{}, err
	}
	if !(*long >= minScale && *long <= maxScale) {
		return hedgeOptions{}, fmt.Errorf("bench: -long %v is not between %v and %v", *long, minScale, maxScale)
	}
	var errs [6]error
	o.scenarios, errs[0] = pickNamed("-scenario", *scenarios, hedgearena.Scenarios(), scenarioName)
	o.policies, errs[1] = pickNamed("-policy", *policies, hedgearena.Policies(), policyName)
	o.limits, errs[2] = pickNamed("-limit", *limits, hedgearena.Limits(), limitName)
	o.modes, errs[3] = pickNamed("-mode", *mode, modes, modeName)
	o.seeds, errs[4] = pickSeeds(*seed, *seeds)
	o.loads, errs[5] = pickLoads(*loads)
	for _, err := range errs {
		if err != nil {
			return hedgeOptions{}, err
		}
	}
	for i := range o.scenarios {
		o.scenarios[i] = o.scenarios[i].Longer(*long)
	}
	return o, o.commonFlags.validate()
}

// pickLoads reads the loads. None is nil.
func pickLoads(list string) ([]float64, error) {
	if list == "" {
		return nil, nil
	}
	var loads []float64
	for text := range strings.SplitSeq(list, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(x >= minLoad && x <= maxLoad) {
			return nil, fmt.Errorf("bench: -load %q is not a number between %v and %v", text, minLoad, maxLoad)
		}
		loads = append(loads, x)
	}
	return loads, nil
}
