package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

func TestParseFlags(t *testing.T) {
	want := options{settings: defaultSettings(), jsonPath: "out.json"}
	want.settings.Protocol = downstream.GRPC
	want.settings.Duration = 2 * time.Second
	want.settings.Rate = 50.5
	want.settings.Seed = 9
	want.settings.Slots = 3
	want.settings.WarmUp = 0
	want.settings.Cancel = both
	got, err := parseFlags(strings.Fields("-duration 2s -rate 50.5 -seed 9 -slots 3 -warmup 0 -cancel both -protocol grpc -json out.json"), io.Discard)
	if err != nil || got != want {
		t.Errorf("parseFlags = %+v, %v, want %+v", got, err, want)
	}
	got, err = parseFlags(nil, io.Discard)
	if want := (options{settings: defaultSettings()}); err != nil || got != want {
		t.Errorf("parseFlags of nothing = %+v, %v, want %+v", got, err, want)
	}
}

// A round for each protocol and kind of service that is asked for, in the same order
// whatever is left out.
func TestVariants(t *testing.T) {
	all := []variant{{"http", "honour"}, {"grpc", "honour"}, {"http", "ignore"}, {"grpc", "ignore"}}
	for _, tt := range []struct {
		protocol, cancel string
		want             []variant
	}{
		{both, both, all},
		{both, cancelIgnore, all[2:]},
		{downstream.GRPC, cancelHonour, all[1:2]},
		{downstream.HTTP, both, []variant{all[0], all[2]}},
	} {
		if got := (settings{Protocol: tt.protocol, Cancel: tt.cancel}).variants(); !slices.Equal(got, tt.want) {
			t.Errorf("-protocol %s -cancel %s: %v, want %v", tt.protocol, tt.cancel, got, tt.want)
		}
	}
}

// Each error names the flag and the value that was given.
func TestParseFlagsErrors(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-duration -1s", "bench: -duration -1s is not positive"},
		{"-duration 0", "bench: -duration 0s is not positive"},
		{"-duration 5", `bench: invalid value "5" for flag -duration: want a duration such as 10s`},
		{"-rate 0", "bench: -rate 0 is not a positive number"},
		{"-rate -3", "bench: -rate -3 is not a positive number"},
		{"-rate NaN", "bench: -rate NaN is not a positive number"},
		{"-rate +Inf", "bench: -rate +Inf is not a positive number"},
		{"-rate fast", `bench: invalid value "fast" for flag -rate: want a number such as 0.5`},
		{"-rate 1 -duration 10ms", "bench: -rate 1 with -duration 10ms makes no call at all"},
		{"-rate 1e9", "bench: -rate 1e+09 with -duration 5s makes more than 5000000 calls"},
		{"-seed -1", `bench: invalid value "-1" for flag -seed: want a whole number that is not negative`},
		{"-slots 0", "bench: -slots 0 is not between 1 and 100000"},
		{"-slots 100001", "bench: -slots 100001 is not between 1 and 100000"},
		{"-warmup -1", "bench: -warmup -1 is not between 0 and 5000000"},
		{"-cancel maybe", `bench: -cancel "maybe" is none of honour, ignore and both`},
		{"-protocol smtp", `bench: -protocol "smtp" is none of http, grpc and both`},
		{"-nonsense", "bench: flag provided but not defined: -nonsense"},
		{"now", `bench: unexpected argument "now"`},
	} {
		if _, err := parseFlags(strings.Fields(tt.args), io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("parseFlags(%s): %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestParseFlagsHelp(t *testing.T) {
	var out bytes.Buffer
	if _, err := parseFlags([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("parseFlags(-h): %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"-duration", "-rate", "-seed", "-slots", "-cancel", "-protocol", "-warmup", "-json"} {
		if !strings.Contains(out.String(), name+" ") {
			t.Errorf("usage does not mention %s", name)
		}
	}
}

func TestRunExitCodes(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // on stderr
	}{
		{"help", []string{"-h"}, exitOK, "usage:"},
		{"bad flag", []string{"-rate", "0"}, exitUsage, "-rate 0"},
		{"json into nowhere", []string{"-json", filepath.Join(t.TempDir(), "no", "such.json")}, exitUsage, "bench: -json "},
		{"json onto a directory", []string{"-json", t.TempDir()}, exitUsage, "bench: -json "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), tt.args, &stdout, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stderr.String(), tt.want) || stdout.Len() > 0 {
				t.Errorf("stderr %q, stdout %q, want %q on stderr", &stderr, &stdout, tt.want)
			}
		})
	}
}
