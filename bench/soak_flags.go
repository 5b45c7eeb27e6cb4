package main

import (
	"flag"
	"fmt"
	"io"
	"time"
)

// shortestSoak: a soak that is shorter has not met all that may go wrong, nor can it tell
// memory that grows from memory that is only being taken.
const shortestSoak = 5 * time.Second

// soakOptions is what the command line of soak says.
type soakOptions struct {
	settings soakSettings
	jsonPath string
}

// soakSettings is what there is to set of a soak.
type soakSettings struct {
	// Time is how long calls are begun.
	Time time.Duration `json:"time_ns"`
	// Capacity is how many requests each of the two servers answers at once.
	Capacity int    `json:"capacity"`
	Seed     uint64 `json:"seed"`
}

// parseSoakFlags reads the command line after the word soak. It returns flag.ErrHelp after
// -h, when usage has been written to w, and else an error that names the flag and its value.
func parseSoakFlags(args []string, w io.Writer) (soakOptions, error) {
	o := soakOptions{settings: soakSettings{Time: 10 * time.Minute, Capacity: 8, Seed: 1}}
	s := &o.settings
	f := flag.NewFlagSet("bench soak", flag.ContinueOnError)
	f.DurationVar(&s.Time, "time", s.Time, "how long calls are begun")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of the draws of the calls")
	f.IntVar(&s.Capacity, "capacity", s.Capacity, "how many requests each of the two servers answers at once")
	f.StringVar(&o.jsonPath, "json", "", "also write everything to this `file`, or to standard output if it is -")
	if err := parseArgs(f, args, w); err != nil {
		return soakOptions{}, err
	}
	return o, s.validate()
}

// validate names the first flag that makes no sense, with its value.
func (s *soakSettings) validate() error {
	switch {
	case s.Time < shortestSoak:
		return fmt.Errorf("bench: -time %v is too short to judge by: %v at least", s.Time, shortestSoak)
	case s.Capacity < 1 || s.Capacity > maxSlots:
		return fmt.Errorf("bench: -capacity %d is not between 1 and %d", s.Capacity, maxSlots)
	}
	return nil
}
