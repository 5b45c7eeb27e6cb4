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

// A scenario as it is, with what is printed and written. The bounds are far from the
// targets: they tell that hedging and simulator work at all.
func TestHedge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	var stdout strings.Builder
	args := strings.Fields("hedge -scenario H1 -load 0.3 -seeds 1 -long 0.2 -limit 3x -mode refuse -policy ours,hand")
	code := run(t.Context(), append(args, "-json", path, "-report", dir), &stdout, t.Output())
	if code != exitOK && code != exitMissed {
		t.Fatalf("exit code %d; output:\n%s", code, &stdout)
	}
	r := readReport[hedgeReport](t, path)
	if r.Interrupted || len(r.Rows) != 4 || len(r.Seeds) != 1 || len(r.Scenarios) != 1 || len(r.Policies) != 2 {
		t.Fatalf("%+v", r)
	}
	if v := r.Verdict; v.Targets != 3 || v.Met+len(v.Missed) != v.Targets || v.TargetsMet != (code == exitOK) {
		t.Errorf("exit code %d with %+v", code, v)
	}
	for i, want := range []struct {
		limit, policy, base string
		p99, off            float64
	}{{"none", "none", "", 100, 0.2}, {"none", "hand", "none", 66, 0.15}, {"3x", "none", "", 100, 0.2}, {"3x", "ours", "none", 75, 0.25}} {
		x := r.Rows[i]
		if x.Limit != want.limit || x.Policy != want.policy || x.Base != want.base || len(x.Runs) != 1 || (x.Difference != nil) != (want.base != "") {
			t.Fatalf("row %d: %+v", i, x)
		}
		if p99 := x.Runs[0].Total.P99; p99 < want.p99*(1-want.off) || p99 > want.p99*(1+want.off) {
			t.Errorf("%s behind %s: p99 %.1f ms, want about %v", x.Policy, x.Limit, p99, want.p99)
		}
	}
	for _, want := range []string{"H1 independent: 4 replicas × 10 slots, 2451/s", "30 %  none ", "3x refuse", "hand", "p99 ms ≤ 70 [67]: ", "seeds 1 to 1; ", "targets of ours, on the median of the seeds: "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &stdout)
		}
	}
	for _, name := range []string{"index.html", "H1-30-none.html", "H1-30-3x-refuse.html"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// The same again, and on one processor: the same figures. With -json - nothing else is on
// standard output.
func TestHedgeIsDeterministic(t *testing.T) {
	play := func(parallel string) []hedgeRow {
		var stdout, stderr bytes.Buffer
		run(t.Context(), strings.Fields("hedge -scenario R1 -load 0.7 -seeds 2 -seed 9 -long 0.1 -limit 1.5x -json - -parallel "+parallel), &stdout, &stderr)
		var r hedgeReport
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stderr.String(), "s to 95 %") || len(r.Rows) != 4 || r.Rows[0].Runs[1].Seed != 10 {
			t.Errorf("%d rows; stderr %s", len(r.Rows), &stderr)
		}
		return r.Rows
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

// Without a policy that is judged nothing can be missed.
func TestHedgeWithoutOurs(t *testing.T) {
	var stdout bytes.Buffer
	if code := run(t.Context(), strings.Fields("hedge -scenario n1 -load 0.3 -seeds 1 -long 0.1 -limit 3x -policy limiter"), &stdout, io.Discard); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if out := stdout.String(); !strings.Contains(out, "3x queue") || strings.Contains(out, "targets of") {
		t.Errorf("output:\n%s", out)
	}
}

// Ctrl-C leaves what was finished, in the tables and the file.
func TestHedgeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	code := run(ctx, strings.Fields("hedge -json - -scenario all -limit all -policy all"), &stdout, &cancelAt{"simulations", cancel})
	if code != exitInterrupted {
		t.Errorf("exit code %d, want 130", code)
	}
	var r hedgeReport
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Rows) == 0 || r.Verdict.TargetsMet {
		t.Errorf("interrupted: %t, %d rows, %+v", r.Interrupted, len(r.Rows), r.Verdict)
	}
}

// Each error names the flag and the value that was given.
func TestParseHedgeFlagsErrors(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-scenario H9", `bench: -scenario "H9" is none of H1, H2, H3, H4, N1, C1, C2, D1, T1, R1 and all`},
		{"-policy luck", `bench: -policy "luck" is none of none, placebo, hand, failsafe, unlimited, budget, limiter, ours and all`},
		{"-limit 2x", `bench: -limit "2x" is none of none, 1.5x, 3x, gradient and all`},
		{"-mode wait", `bench: -mode "wait" is none of refuse, queue and all`},
		{"-load 0.3,x", `bench: -load "x" is not a number between 0.01 and 5`},
		{"-load 6", `bench: -load "6" is not a number between 0.01 and 5`},
		{"-load NaN", `bench: -load "NaN" is not a number between 0.01 and 5`},
		{"-seeds 0", "bench: -seeds 0 is not between 1 and 1000"},
		{"-seed 18446744073709551615", "bench: -seed 18446744073709551615 leaves no room for the others"},
		{"-long 0", "bench: -long 0 is not between 0.01 and 100"},
		{"-parallel 0", "bench: -parallel 0 is not between 1 and 1024"},
		{"-scales", "bench: flag provided but not defined: -scales"},
		{"now", `bench: unexpected argument "now"`},
	} {
		if _, err := parseHedgeFlags(strings.Fields(tt.args), io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("parseHedgeFlags(%s): %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestParseHedgeFlags(t *testing.T) {
	o, err := parseHedgeFlags(strings.Fields("-scenario r1,H1 -policy ours,hand -limit gradient -mode queue -load 0.3,1.3 -seeds 2 -seed 7 -long 2"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.scenarios) != 2 || o.scenarios[0].ID != "H1" || o.scenarios[0].Phases[1].Length.Seconds() != 40 || o.policies[0].Name != "hand" ||
		!o.limits[0].Gradient || len(o.modes) != 1 || len(o.loads) != 2 || o.seeds[1] != 8 {
		t.Errorf("%+v", o)
	}
	if o, err = parseHedgeFlags(nil, io.Discard); err != nil || len(o.scenarios) != 2 || len(o.policies) != 1 || len(o.limits) != 2 || len(o.modes) != 2 || len(o.seeds) != 10 || o.loads != nil {
		t.Errorf("by default: %+v, %v", o, err)
	}
}
