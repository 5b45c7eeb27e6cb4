package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// Values of -cancel, and of -protocol besides those of package downstream.
const (
	cancelHonour = "honour"
	cancelIgnore = "ignore"
	both         = "both"
)

const (
	// maxCalls bounds the calls of a row: all latencies are kept until its end.
	maxCalls = 5_000_000
	// maxSlots is far above what a loopback service can be given to do.
	maxSlots = 100_000
)

// options is what the command line says.
type options struct {
	settings settings
	jsonPath string
	reportFlag
	markdownFlag
}

// settings is what the experiments have in common.
type settings struct {
	// Protocol is what the service is called by.
	Protocol string `json:"protocol"`
	// Duration is how long each experiment is measured.
	Duration time.Duration `json:"duration_ns"`
	// Rate is calls a second, at random and independent of the answers.
	Rate float64 `json:"rate"`
	Seed uint64  `json:"seed"`
	// WarmUp is the number of calls before measuring.
	WarmUp int `json:"warm_up_calls"`
	// Replicas, Slots and Profile describe the service; Slots is per replica.
	Replicas int                `json:"replicas"`
	Slots    int                `json:"slots"`
	Profile  downstream.Profile `json:"profile"`
	// Cancel tells whether the service honours the cancellation of a request.
	Cancel string `json:"cancel"`
}

func defaultSettings() settings {
	return settings{
		Protocol: both,
		Duration: 5 * time.Second,
		Rate:     600,
		Seed:     1,
		WarmUp:   2000,
		Replicas: 2,
		Slots:    8,
		Profile: downstream.Profile{
			Mean:            5 * time.Millisecond,
			Deviation:       2 * time.Millisecond,
			StragglerShare:  0.05,
			StragglerFactor: 10,
			Longest:         500 * time.Millisecond,
		},
		Cancel: cancelHonour,
	}
}

// parseFlags reads the command line. It returns flag.ErrHelp after -h, when usage
// has been written to w, and else an error that names the flag and its value.
func parseFlags(args []string, w io.Writer) (options, error) {
	o := options{settings: defaultSettings()}
	s := &o.settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&s.Protocol, "protocol", s.Protocol, "what the service is called by: http, grpc, or both in turn")
	f.DurationVar(&s.Duration, "duration", s.Duration, "how long each row is measured; there are five for each protocol")
	f.Float64Var(&s.Rate, "rate", s.Rate, "calls `a-second`, arriving at random (open loop)")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of arrivals and service times")
	f.IntVar(&s.Slots, "slots", s.Slots, "worker slots of each of the two replicas")
	f.StringVar(&s.Cancel, "cancel", s.Cancel, "whether the service stops work whose client has gone: honour, ignore, or both in turn")
	f.IntVar(&s.WarmUp, "warmup", s.WarmUp, "calls before each row that are not counted")
	f.StringVar(&o.jsonPath, "json", "", "also write everything to this `file`, or to standard output if it is -")
	o.reportFlag.register(f, "also draw the rows, into an HTML file and pictures in this `directory`")
	o.markdownFlag.register(f)
	if err := parseArgs(f, args, w); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(w, "see also go run ./bench sim -h, hedge -h, storm -h, size -h, peers -h and soak -h")
		}
		return options{}, err
	}
	return o, s.validate()
}

// validate names the first flag that makes no sense, with its value.
func (s *settings) validate() error {
	switch {
	case s.Duration <= 0:
		return fmt.Errorf("bench: -duration %v is not positive", s.Duration)
	case math.IsNaN(s.Rate) || math.IsInf(s.Rate, 0) || s.Rate <= 0:
		return fmt.Errorf("bench: -rate %v is not a positive number", s.Rate)
	case s.Rate*s.Duration.Seconds() < 1:
		return fmt.Errorf("bench: -rate %v with -duration %v makes no call at all", s.Rate, s.Duration)
	case s.Rate*s.Duration.Seconds() > maxCalls:
		return fmt.Errorf("bench: -rate %v with -duration %v makes more than %d calls", s.Rate, s.Duration, maxCalls)
	case s.Slots < 1 || s.Slots > maxSlots:
		return fmt.Errorf("bench: -slots %d is not between 1 and %d", s.Slots, maxSlots)
	case s.WarmUp < 0 || s.WarmUp > maxCalls:
		return fmt.Errorf("bench: -warmup %d is not between 0 and %d", s.WarmUp, maxCalls)
	}
	switch s.Cancel {
	case cancelHonour, cancelIgnore, both:
	default:
		return fmt.Errorf("bench: -cancel %q is none of honour, ignore and both", s.Cancel)
	}
	switch s.Protocol {
	case downstream.HTTP, downstream.GRPC, both:
	default:
		return fmt.Errorf("bench: -protocol %q is none of http, grpc and both", s.Protocol)
	}
	return nil
}

// calls is how many calls of a row are measured.
func (s settings) calls() int { return int(math.Round(s.Rate * s.Duration.Seconds())) }

// variant is what the rows of one round have in common besides the settings.
type variant struct{ protocol, cancel string }

// variants returns the rounds to go through.
func (s settings) variants() []variant {
	var list []variant
	for _, cancel := range []string{cancelHonour, cancelIgnore} {
		for _, protocol := range []string{downstream.HTTP, downstream.GRPC} {
			if (s.Cancel == both || s.Cancel == cancel) && (s.Protocol == both || s.Protocol == protocol) {
				list = append(list, variant{protocol, cancel})
			}
		}
	}
	return list
}

// offeredLoad is the share of all slots that the calls alone keep busy.
func (s settings) offeredLoad() float64 {
	return s.Rate * s.Profile.Expected().Seconds() / float64(s.Replicas*s.Slots)
}

// service is the configuration of the service in a round.
func (s settings) service(v variant) downstream.Config {
	return downstream.Config{
		Protocol:      v.protocol,
		Seed:          s.Seed,
		Replicas:      s.Replicas,
		Slots:         s.Slots,
		HonoursCancel: v.cancel == cancelHonour,
		Profile:       s.Profile,
	}
}
