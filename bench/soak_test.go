package main

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/soak"
)

// Ctrl-C leaves what there was, judged, in the print and the file. The names of the fields
// are what others read.
func TestSoakInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	timer := time.AfterFunc(200*time.Millisecond, cancel)
	defer timer.Stop()
	path := filepath.Join(t.TempDir(), "out.json")
	var stdout, stderr strings.Builder
	if code := run(ctx, strings.Fields("soak -time 1h -capacity 2 -seed 7 -json "+path), &stdout, &stderr); code != exitInterrupted {
		t.Errorf("exit code %d, want 130", code)
	}
	for _, want := range []string{"INTERRUPTED after ", " of 1h0m0s\nnothing has stayed behind"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, &stdout)
		}
	}
	if !strings.Contains(stderr.String(), "bench: interrupted after ") {
		t.Errorf("stderr: %q", &stderr)
	}
	r := readReport[soakReport](t, path)
	if r.Settings != (soakSettings{Time: time.Hour, Capacity: 2, Seed: 7}) || !r.Interrupted || r.Result == nil || r.Result.Last.Calls == 0 || r.ElapsedSeconds <= 0 {
		t.Errorf("%+v", r)
	}
	report := readReport[map[string]any](t, path)
	result := report["result"].(map[string]any)
	for _, tt := range []struct {
		name   string
		object any
		want   string
	}{
		{"the report", report, "arch command commit cpus elapsed_seconds go interrupted machine os result settings started"},
		{"settings", report["settings"], "capacity seed time_ns"},
		{"result", result, "first_heap_bytes kinds last last_heap_bytes wrong"},
		{"last", result["last"], "answered broken calls elapsed_ns failed goroutines heap_bytes hedged in_flight lost_bodies panicked refused"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(tt.object.(map[string]any))), " "); got != tt.want {
			t.Errorf("%s has %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if wrong, ok := result["wrong"].([]any); !ok || len(wrong) > 0 {
		t.Errorf("wrong is %v, want an empty list", result["wrong"])
	}
}

// What has stayed behind is told last and makes the exit code, whether or not the soak was
// interrupted.
func TestSoakVerdict(t *testing.T) {
	leak := []string{"1 permits are in flight"}
	for _, tt := range []struct {
		result soak.Result
		code   int
		last   string
	}{
		{soak.Result{}, exitOK, "nothing has stayed behind: no permit, no goroutine, no open body, no memory\n"},
		{soak.Result{Interrupted: true}, exitInterrupted, "no open body, no memory\n"},
		{soak.Result{Wrong: leak}, exitFailed, "\nWRONG: 1 permits are in flight\n"},
		{soak.Result{Wrong: leak, Interrupted: true}, exitFailed, "\nWRONG: 1 permits are in flight\n"},
	} {
		var out strings.Builder
		if err := (&soakReport{Result: &tt.result}).print(&out); err != nil || !strings.HasSuffix(out.String(), tt.last) {
			t.Errorf("%+v: %v, want %q at the end of\n%s", tt.result, err, tt.last, &out)
		}
		if code := soakCode(tt.result); code != tt.code {
			t.Errorf("%+v: exit code %d, want %d", tt.result, code, tt.code)
		}
	}
}

// Each error names the flag and the value that was given.
func TestParseSoakFlagsErrors(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-time 0s", "bench: -time 0s is too short to judge by: 5s at least"},
		{"-time 4999ms", "bench: -time 4.999s is too short to judge by: 5s at least"},
		{"-capacity 0", "bench: -capacity 0 is not between 1 and 100000"},
		{"-capacity 100001", "bench: -capacity 100001 is not between 1 and 100000"},
		{"-unknown", "bench: flag provided but not defined: -unknown"},
		{"more", `bench: unexpected argument "more"`},
	} {
		if _, err := parseSoakFlags(strings.Fields(tt.args), io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("parseSoakFlags(%s): %v, want %s", tt.args, err, tt.want)
		}
	}
}
