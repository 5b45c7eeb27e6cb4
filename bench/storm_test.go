package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/storm"
)

// Some rows as they are, with what is printed, written and drawn.
func TestStorm(t *testing.T) {
	dir := t.TempDir()
	jsonPath, plotPath := filepath.Join(dir, "out.json"), filepath.Join(dir, "out.png")
	if err := os.WriteFile(plotPath, bytes.Repeat([]byte("old"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	args := []string{"storm", "-row", "budget,no retries,limit + budget", "-json", jsonPath, "-plot", plotPath}
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	r := readReport[stormReport](t, jsonPath)
	if r.Interrupted || len(r.Rows) != 3 || !r.Verdict.Complete || r.Verdict.Targets != 4 || r.Verdict.Met != 4 || r.ElapsedSeconds <= 0 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"no retries", "budget", "limit + budget"} {
		x := &r.Rows[i]
		if x.Name != want || len(x.Figures.Queue) != 3600 || len(x.Figures.Rate) != 3600 || len(x.Figures.Good) != 3600 {
			t.Errorf("row %d is %s with %d seconds, want %s", i, x.Name, len(x.Figures.Queue), want)
		}
		if !strings.Contains(stdout.String(), want+" ") || !strings.Contains(stdout.String(), x.About) {
			t.Errorf("%s is not printed", want)
		}
	}
	for _, want := range []string{"after 95 s", "2,296", "3.7 %", "4 of 4 targets met"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &stdout)
		}
	}
	if !strings.Contains(stderr.String(), "storm: 3 simulations") {
		t.Errorf("no progress: %q", &stderr)
	}
	data, err := os.ReadFile(plotPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil || bytes.HasSuffix(data, []byte("old")) {
		t.Errorf("the picture: %v, with what was in the file: %t", err, bytes.HasSuffix(data, []byte("old")))
	}
}

// STORM.md has what the command prints. Rows with a limiter are left out: their figures belong
// to one version of the limit.
func TestStormTable(t *testing.T) {
	document, err := os.ReadFile("STORM.md")
	if err != nil {
		t.Fatal(err)
	}
	spaces := regexp.MustCompile(`[ \n]+`)
	published := spaces.ReplaceAllString(string(document), " ")
	var stdout strings.Builder
	if code := run(t.Context(), []string{"storm"}, &stdout, io.Discard); code != exitOK {
		t.Fatalf("exit code %d; output:\n%s", code, &stdout)
	}
	compared := 0
	for line := range strings.Lines(stdout.String()) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if strings.Contains(name, "limit") || name == "header" {
			continue
		}
		compared++
		if !strings.Contains(published, spaces.ReplaceAllString(line, " ")) {
			t.Errorf("STORM.md does not have\n%s", line)
		}
	}
	if compared < 26 { // 13 rows, and what each is
		t.Errorf("%d lines were compared", compared)
	}
}

// The names of the fields are what others read.
func TestStormSchema(t *testing.T) {
	var stdout bytes.Buffer
	if code := run(t.Context(), []string{"storm", "-row", "no retries", "-length", "200s", "-json", "-"}, &stdout, io.Discard); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	var report map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	row := report["rows"].([]any)[0].(map[string]any)
	for _, tt := range []struct {
		name   string
		object any
		want   string
	}{
		{"report", report, "arch command commit cpus elapsed_seconds go interrupted machine os rows started verdict"},
		{"verdict", report["verdict"], "complete met missed targets"},
		{"row", row, "about backoff calls_seconds capacity figures layers length_seconds limit load marked_share max_queue name outage_seconds start_seconds targets timeout_seconds"},
		{"layer", row["layers"].([]any)[0], "budget tries"},
		{"figures", row["figures"], "answered answering_seconds attempts calls came failed failing_seconds first_try_percent good healthy_seconds most_attempts peak peak_of_ten peak_queue queue rate recovered_seconds refused served unfailing_seconds wasted wasted_percent"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(tt.object.(map[string]any))), " "); got != tt.want {
			t.Errorf("%s has %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// A row that did not finish is left out, and without it the run is not complete.
func TestStormReportOfSome(t *testing.T) {
	s := &storm.Sweep{Rows: storm.Rows(storm.Defaults())[:2]}
	s.Figures = []*storm.Figures{nil, {Calls: 1}}
	r := newStormReport(time.Unix(0, 0))
	r.add(s)
	if len(r.Rows) != 1 || r.Rows[0].Name != "retries" || r.Verdict.Complete || r.Verdict.Targets != 1 || len(r.Verdict.Missed) != 1 {
		t.Errorf("%+v", r)
	}
	var b strings.Builder
	if err := errors.Join(r.printTable(&b), r.printVerdict(&b)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "missed: as known: never, 27.0 ×") || strings.Contains(b.String(), "no retries") {
		t.Errorf("the table is\n%s", &b)
	}
}

// Ctrl-C leaves a report that says so.
func TestStormInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	args := []string{"storm", "-json", path, "-plot", filepath.Join(dir, "out.svg")}
	if code := run(ctx, args, io.Discard, &cancelAt{"storm: 18 simulations", cancel}); code != exitInterrupted {
		t.Errorf("exit code %d, want 130", code)
	}
	if r := readReport[stormReport](t, path); !r.Interrupted || r.Verdict.Complete || r.Rows == nil {
		t.Errorf("%+v", r)
	}
}

func TestParseStormFlags(t *testing.T) {
	o, err := parseStormFlags(strings.Fields("-capacity 10 -load 7 -timeout 2s -start 1m -outage 20s -length 2h -layers 2 -tries 4 -budget 0.2 -high-budget 0.4"+
		" -high-load 9 -blip 3s -queue 50 -backoff 2s -backoff-factor 3 -backoff-max 1m -herd 10s -deep-layers 4 -marked 0.3"+
		" -row retries -parallel 3 -json a.json -plot a.svg"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := storm.Settings{
		Capacity: 10, Load: 7, Timeout: 2, Start: 60, Outage: 20, Length: 7200, Layers: 2, Tries: 4, Budget: 0.2, HighBudget: 0.4,
		HighLoad: 9, Blip: 3, MaxQueue: 50, Backoff: storm.Backoff{Initial: 2, Multiplier: 3, Max: 60}, Herd: 10, DeepLayers: 4,
		Marked: 0.3,
	}
	if o.settings != want || len(o.rows) != 1 || o.rows[0].Name != "retries" || o.parallel != 3 || o.jsonPath != "a.json" || o.plotPath != "a.svg" {
		t.Errorf("%+v", o)
	}
	if o, err = parseStormFlags(nil, io.Discard); err != nil || o.settings != storm.Defaults() || len(o.rows) != len(storm.Rows(o.settings)) {
		t.Errorf("nothing is %+v, %v", o, err)
	}
}

// Each error names the flag and the value that was given.
func TestParseStormFlagsErrors(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-capacity 0", "bench: -capacity 0 is not between 1 and 10000"},
		{"-load 10001", "bench: -load 10001 is not between 1 and 10000"},
		{"-high-load 0", "bench: -high-load 0 is not between 1 and 10000"},
		{"-timeout 0", "bench: -timeout 0s is not between 1s and 86400s"},
		{"-timeout 1500ms", `bench: invalid value "1500ms" for flag -timeout: not a whole number of seconds`},
		{"-timeout 1", `bench: invalid value "1" for flag -timeout: time: missing unit in duration "1"`},
		{"-start -1s", "bench: -start -1s is not between 0s and 86400s"},
		{"-outage -1s", "bench: -outage -1s is not between 0s and 86400s"},
		{"-outage 1h", "bench: -start 60s and -outage 3600s leave nothing of -length 3600s"},
		{"-blip 1h", "bench: -start 60s and -blip 3600s leave nothing of -length 3600s"},
		{"-length 25h", "bench: -length 90000s is not between 1s and 86400s"},
		{"-layers 0", "bench: -layers 0 is not between 1 and 9"},
		{"-layers 7", "bench: -layers 7 with -tries 3 makes more than 1000 attempts"},
		{"-deep-layers 6 -length 24h", "bench: -deep-layers 6 with -tries 3 makes 729 attempts, too many for -length 86400s"},
		{"-tries 0", "bench: -tries 0 is not between 1 and 1000"},
		{"-budget 0", "bench: -budget 0 is not above 0 and at most 1"},
		{"-budget NaN", "bench: -budget NaN is not above 0 and at most 1"},
		{"-high-budget 1.5", "bench: -high-budget 1.5 is not above 0 and at most 1"},
		{"-queue 0", "bench: -queue 0 is not between 1 and 1000000000"},
		{"-backoff -1s", "bench: -backoff -1s is not between 0s and 3600s"},
		{"-backoff-factor 0", "bench: -backoff-factor 0 is not between 1 and 10"},
		{"-backoff 10s -backoff-max 5s", "bench: -backoff-max 5s is less than -backoff 10s"},
		{"-herd 2h", "bench: -herd 7200s is longer than -length 3600s"},
		{"-load 10000 -capacity 10000", `bench: -load 10000 for -length 3600s, with -layers 3 of -tries 3, makes up to 972000000 attempts in the row "limit", more than 50000000`},
		{"-marked 2", "bench: -marked 2 is not above 0 and at most 1"},
		{"-parallel 0", "bench: -parallel 0 is not between 1 and 1024"},
		{"-plot out.pdf", `bench: -plot "out.pdf" ends in neither .png nor .svg`},
		{"now", `bench: unexpected argument "now"`},
	} {
		if _, err := parseStormFlags(strings.Fields(tt.args), io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("parseStormFlags(%s): %v, want %s", tt.args, err, tt.want)
		}
	}
	// What would take hours is refused in the rows that are to be run, and with the load that is theirs.
	for _, tt := range []struct{ rows, want string }{
		{"no retries,retries,blip,herd,deep", ""},
		{"high load,retries", `bench: -high-load 10000 for -length 5000s, with -layers 3 of -tries 3, makes up to 55000000 attempts in the row "high load", more than 50000000`},
		{"short queue + budget", ""}, // 9000 × 1.1 × 5000
	} {
		args := strings.Fields("-load 9000 -high-load 10000 -length 5000s -row")
		_, err := parseStormFlags(append(args, tt.rows), io.Discard)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("-row %s: %v, want %q", tt.rows, err, tt.want)
		}
	}
	if _, err := parseStormFlags([]string{"-row", "hail"}, io.Discard); err == nil || !strings.HasPrefix(err.Error(), `bench: -row "hail" is none of no retries, retries, `) {
		t.Errorf("-row hail: %v", err)
	}
}

func TestParseStormFlagsHelp(t *testing.T) {
	var out bytes.Buffer
	if _, err := parseStormFlags([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("parseStormFlags(-h): %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"usage: go run ./bench storm", "-timeout duration", "(default 1h0m0s)", "limit + budget"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("usage does not mention %s:\n%s", name, &out)
		}
	}
}
