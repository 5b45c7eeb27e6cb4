package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// peersOptions is what the command line of peers says.
type peersOptions struct {
	settings peersSettings
	micro    bool
	microSettings
	jsonPath string
	markdownFlag
}

// peersSettings is what all rows have in common.
type peersSettings struct {
	Seed uint64 `json:"seed"`
	// Calls of each row are measured in the first workload, and a fifth of them in the second.
	Calls int `json:"calls"`
	// Concurrency is how many callers there are in the first, each of which waits for its answer.
	Concurrency int `json:"concurrency"`
	// WarmUp is the number of calls before each block that are not counted: enough for what is
	// learnt in seconds. It is a fifth of that in the second.
	WarmUp int `json:"warm_up_calls"`
	// Blocks is how many times the rows take turns in the first, so that all of them meet what
	// the machine does meanwhile.
	Blocks int `json:"blocks"`
	// Delay is that of the contenders that have to be told one; 0 in the settings is that which
	// ours learns.
	Delay time.Duration `json:"delay_ns"`
}

// parsePeersFlags reads the command line of peers. See parseFlags.
func parsePeersFlags(args []string, w io.Writer) (peersOptions, error) {
	o := peersOptions{
		settings:      peersSettings{Seed: 1, Calls: 50_000, Concurrency: 20, WarmUp: 10_000, Blocks: 2},
		microSettings: microSettings{Time: 200 * time.Millisecond, Count: 5},
	}
	s := &o.settings
	f := flag.NewFlagSet("bench peers", flag.ContinueOnError)
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of arrivals and service times")
	f.IntVar(&s.Calls, "calls", s.Calls, "calls of each row in the published workload; a fifth of them in the crowded one")
	f.IntVar(&s.Concurrency, "concurrency", s.Concurrency, "callers in the published workload")
	f.IntVar(&s.WarmUp, "warmup", s.WarmUp, "calls before each block of the published workload that are not counted; a fifth of them in the crowded one")
	f.IntVar(&s.Blocks, "blocks", s.Blocks, "how many times the rows take turns in the published workload")
	f.DurationVar(&s.Delay, "delay", 0, "hedge delay of those that have to be told one; 0 is that which ours learns")
	f.BoolVar(&o.micro, "micro", true, "also run the micro-benchmarks, for which Go is needed")
	f.DurationVar(&o.Time, "benchtime", o.Time, "how long each micro-benchmark runs")
	f.IntVar(&o.Count, "count", o.Count, "how many times; medians are told")
	f.StringVar(&o.jsonPath, "json", "", "also write everything to this `file`, or to standard output if it is -")
	o.markdownFlag.register(f)
	if err := parseArgs(f, args, w); err != nil {
		return peersOptions{}, err
	}
	return o, o.validate()
}

// validate names the first flag that makes no sense, with its value.
func (o *peersOptions) validate() error {
	s := &o.settings
	switch {
	case s.Calls < 100 || s.Calls > maxCalls:
		return fmt.Errorf("bench: -calls %d is not between 100 and %d", s.Calls, maxCalls)
	case s.Concurrency < 1 || s.Concurrency > maxConcurrency:
		return fmt.Errorf("bench: -concurrency %d is not between 1 and %d", s.Concurrency, maxConcurrency)
	case s.WarmUp < minWarmUp || s.WarmUp > maxCalls:
		return fmt.Errorf("bench: -warmup %d is not between %d, for the delay must be learnt, and %d", s.WarmUp, minWarmUp, maxCalls)
	case s.Blocks < 1 || s.Blocks > s.Calls:
		return fmt.Errorf("bench: -blocks %d is not between 1 and -calls %d", s.Blocks, s.Calls)
	case s.Delay < 0:
		return fmt.Errorf("bench: -delay %v is negative", s.Delay)
	case o.Time <= 0:
		return fmt.Errorf("bench: -benchtime %v is not positive", o.Time)
	case o.Count < 1 || o.Count > maxCount:
		return fmt.Errorf("bench: -count %d is not between 1 and %d", o.Count, maxCount)
	}
	return nil
}

const (
	// maxConcurrency is less than the connections that are kept.
	maxConcurrency = keptConnections
	// minWarmUp is enough for a percentile to be learnt.
	minWarmUp = 500
	maxCount  = 1000
)

// workload is what the contenders are measured on.
type workload struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Calls int    `json:"calls"`
	// WarmUp is the calls before each block that are not counted.
	WarmUp int `json:"warm_up_calls"`
	// Rate is of calls a second that do not wait for each other; if it is 0, there are as many
	// callers as Concurrency says.
	Rate        float64            `json:"rate"`
	Concurrency int                `json:"concurrency"`
	Replicas    int                `json:"replicas"`
	Slots       int                `json:"slots"`
	Profile     downstream.Profile `json:"profile"`
	Blocks      int                `json:"blocks"`
}

// Names of the workloads.
const (
	workPublished = "published"
	workCrowded   = "crowded"
)

func (s *peersSettings) workloads() []workload {
	main := defaultSettings()
	return []workload{
		{
			Name: workPublished, Calls: s.Calls, WarmUp: s.WarmUp, Blocks: s.Blocks, Concurrency: s.Concurrency, Replicas: 1, Slots: noBound, Profile: main.Profile,
			About: fmt.Sprintf("the workload that bhope/hedge publishes: %d calls by %d callers, service times log-normal with 5 ± 2 ms and ten times as long for 5 %% of the requests, as many workers as requests",
				s.Calls, s.Concurrency),
		},
		{
			Name: workCrowded, Calls: s.Calls / 5, WarmUp: s.WarmUp / 5, Blocks: 1, Rate: main.Rate, Replicas: main.Replicas, Slots: 4, Profile: main.Profile,
			About: fmt.Sprintf("the same service with 2 × 4 workers, of whom the calls alone keep 54 %% busy, and which goes on working for those who have gone: %d calls at %g a second, and the delays as before",
				s.Calls/5, main.Rate),
		},
	}
}

// noBound is more workers than there are ever requests.
const noBound = 1 << 20

func (w *workload) service(seed uint64) downstream.Config {
	return downstream.Config{
		Protocol: downstream.HTTP, Seed: seed, Replicas: w.Replicas, Slots: w.Slots, HonoursCancel: w.Name == workPublished, Profile: w.Profile,
	}
}
