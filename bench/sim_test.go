package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two scenarios as they are, with what is printed and written. The bounds are far
// below the targets: they tell that limit and simulator work at all.
func TestSim(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	var stdout strings.Builder
	code := run(t.Context(), []string{"sim", "-scenario", "S1,S7", "-seeds", "1", "-limit", "semaphore,holdfast", "-json", path, "-report", dir}, &stdout, t.Output())
	if code != exitOK && code != exitMissed {
		t.Fatalf("exit code %d; output:\n%s", code, &stdout)
	}
	r := readReport[simReport](t, path)
	if r.Interrupted || len(r.Scales) != 1 || len(r.Scales[0].Scenarios) != 2 || len(r.Seeds) != 1 {
		t.Fatalf("%+v", r)
	}
	v := r.Scales[0].Verdict
	if v.Targets != 4 || v.Met+len(v.Missed) != v.Targets || v.TargetsMet != (code == exitOK) {
		t.Errorf("exit code %d with %+v", code, v)
	}
	for i, want := range []struct {
		id             string
		good, p50      float64 // at least, at most
		semaphore, off float64 // what Erlang's formula gives it
	}{{"S1", 95, 14, 93.1, 0.5}, {"S7", 88, 220, 82.3, 2}} {
		s := r.Scales[0].Scenarios[i]
		if s.ID != want.id || len(s.Limits) != 2 || s.Limits[0].Name != "holdfast" || len(s.Limits[0].Runs) != 1 {
			t.Fatalf("%+v", s)
		}
		ours, told := s.Limits[0].Runs[0].Phases[0], s.Limits[1].Runs[0].Phases[0]
		if ours.GoodPercent < want.good || ours.P50 > want.p50 {
			t.Errorf("%s: good %.1f %%, p50 %.1f ms", s.ID, ours.GoodPercent, ours.P50)
		}
		if told.GoodPercent < want.semaphore-want.off || told.GoodPercent > want.semaphore+want.off || told.Offered != ours.Offered {
			t.Errorf("%s: a semaphore had good %.1f %% of %d calls", s.ID, told.GoodPercent, told.Offered)
		}
	}
	for _, want := range []string{"S1 overload: 120 s, 3000/s", "  holdfast   overload ", "good % ≥ 99 [99.6]: ", "  semaphore  overload ", "seeds 1 to 1; ", "targets of holdfast, on the worst seed: "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &stdout)
		}
	}
	for _, name := range []string{"index.html", "S1.html", "S7.html"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// With -json - nothing else is on standard output.
func TestSimJSONToStdout(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), strings.Fields("sim -scenario S7 -seeds 2 -seed 9 -json -"), &stdout, &stderr)
	var r simReport
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v; exit code %d, stderr %s", err, code, &stderr)
	}
	runs := r.Scales[0].Scenarios[0].Limits[0].Runs
	if len(runs) != 2 || runs[0].Seed != 9 || runs[1].Seed != 10 || !strings.Contains(stderr.String(), "S7 small and slow") {
		t.Errorf("%d runs; stderr %s", len(runs), &stderr)
	}
}

// The same again, and on one processor: the same figures.
func TestSimIsDeterministic(t *testing.T) {
	play := func(parallel string) []simScale {
		var stdout bytes.Buffer
		run(t.Context(), strings.Fields("sim -scenario S7,S4 -seeds 2 -json - -parallel "+parallel), &stdout, io.Discard)
		var r simReport
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r.Scales
	}
	a, err := json.Marshal(play("1"))
	b, err2 := json.Marshal(play("3"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s\nand again\n%s", a, b)
	}
}

func TestSimScales(t *testing.T) {
	var stdout bytes.Buffer
	code := run(t.Context(), strings.Fields("sim -scenario S7 -seeds 1 -scales"), &stdout, io.Discard)
	if code != exitOK && code != exitMissed {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"as it is", "service × 0.5", "service × 1.5", "rate × 0.5", "rate × 1.5", "workers × 0.5", "workers × 1.5", "S7 overload  holdfast"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &stdout)
		}
	}
}

// A scaled scenario has no targets, so none can be missed.
func TestSimScaled(t *testing.T) {
	var stdout bytes.Buffer
	if code := run(t.Context(), strings.Fields("sim -scenario s7 -seeds 1 -scale-workers 2"), &stdout, io.Discard); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if out := stdout.String(); !strings.Contains(out, "c 6") || !strings.Contains(out, "workers × 2") || strings.Contains(out, "met") {
		t.Errorf("output:\n%s", out)
	}
}

// Ctrl-C leaves what was finished, in the tables and the file.
func TestSimInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	code := run(ctx, strings.Fields("sim -json - -limit all"), &stdout, &cancelAt{"720 simulations", cancel})
	if code != exitInterrupted {
		t.Errorf("exit code %d, want 130", code)
	}
	var r simReport
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Scales) != 1 || len(r.Scales[0].Scenarios) != 18 || r.Scales[0].Verdict.TargetsMet {
		t.Errorf("interrupted: %t, %d scales, %+v", r.Interrupted, len(r.Scales), r.Scales[0].Verdict)
	}
}

// Each error names the flag and the value that was given.
func TestParseSimFlagsErrors(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-scenario S99", `bench: -scenario "S99" is none of S1 to S13, S13a to S13f and all`},
		{"-scenario S1,", `bench: -scenario "" is none of S1 to S13, S13a to S13f and all`},
		{"-limit tcp", `bench: -limit "tcp" is none of holdfast, aimd, fixed, vegas, vegas-mean, gradient2, failsafe, semaphore and all`},
		{"-seeds 0", "bench: -seeds 0 is not between 1 and 1000"},
		{"-seeds 1001", "bench: -seeds 1001 is not between 1 and 1000"},
		{"-seeds x", `bench: invalid value "x" for flag -seeds: want a whole number`},
		{"-seed 18446744073709551615", "bench: -seed 18446744073709551615 leaves no room for the others"},
		{"-parallel 0", "bench: -parallel 0 is not between 1 and 1024"},
		{"-scale-service 0", "bench: -scale-service 0 is not between 0.01 and 100"},
		{"-scale-rate -1", "bench: -scale-rate -1 is not between 0.01 and 100"},
		{"-scale-workers NaN", "bench: -scale-workers NaN is not between 0.01 and 100"},
		{"-scales -scale-rate 2", "bench: -scales goes through scales of its own, and cannot be had with rate × 2"},
		{"-scales -report x", `bench: -scales draws nothing, and cannot be had with -report "x"`},
		{"-duration 5s", "bench: flag provided but not defined: -duration"},
		{"now", `bench: unexpected argument "now"`},
	} {
		if _, err := parseSimFlags(strings.Fields(tt.args), io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("parseSimFlags(%s): %v, want %s", tt.args, err, tt.want)
		}
	}
}

// Names are picked once each, in the order of the tables.
func TestParseSimFlags(t *testing.T) {
	o, err := parseSimFlags(strings.Fields("-scenario S13,S2,s2 -limit vegas,holdfast -seeds 2 -seed 7 -scale-rate 0.5 -parallel 3"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range o.scenarios {
		got = append(got, s.ID)
	}
	for _, m := range o.makers {
		got = append(got, m.Name)
	}
	if want := "S2 S13a S13b S13c S13d S13e S13f holdfast vegas"; strings.Join(got, " ") != want {
		t.Errorf("picked %s, want %s", got, want)
	}
	if len(o.seeds) != 2 || o.seeds[0] != 7 || o.parallel != 3 || len(o.scales) != 1 || o.scales[0].Rate != 0.5 {
		t.Errorf("%+v", o)
	}
	if o, err = parseSimFlags(nil, io.Discard); err != nil || len(o.scenarios) != 18 || len(o.makers) != 1 || len(o.seeds) != 5 {
		t.Errorf("by default: %d scenarios, %d limits, %d seeds, %v", len(o.scenarios), len(o.makers), len(o.seeds), err)
	}
}
