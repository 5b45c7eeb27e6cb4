package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// TestMain lets the test binary be the downstream.
func TestMain(m *testing.M) {
	if downstream.IsChild() {
		os.Exit(downstream.Main())
	}
	os.Exit(m.Run())
}

// shortSettings are the settings of a short row.
func shortSettings() settings {
	s := defaultSettings()
	s.Duration = 500 * time.Millisecond
	s.WarmUp = 300
	return s
}

func silent(s settings) *progress { return newProgress(io.Discard, s, 1) }

// readReport reads a file that a run has written.
func readReport[T any](t *testing.T, path string) (r T) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A whole run, and the file that it writes.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	if err := os.WriteFile(path, []byte(strings.Repeat("old ", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	dir := filepath.Join(t.TempDir(), "report")
	args := strings.Fields("-rate 300 -duration 500ms -warmup 120 -json " + path + " -report " + dir)
	code := run(t.Context(), args, &stdout, t.Output())
	if code != exitOK && code != exitMissed { // 150 calls are few, and the machine may be busy
		t.Fatalf("exit code %d; output:\n%s", code, &stdout)
	}
	r := readReport[report](t, path)
	met := true
	for i := range r.Rounds {
		met = met && r.Rounds[i].Verdict.TargetMet
	}
	if met != (code == exitOK) {
		t.Errorf("exit code %d, and the targets were met: %t", code, met)
	}
	if len(r.Rounds) != 2 || r.rows() != 10 || r.Interrupted {
		t.Fatalf("the report has %d rounds and %d rows, interrupted: %t", len(r.Rounds), r.rows(), r.Interrupted)
	}
	for i, protocol := range []string{downstream.HTTP, downstream.GRPC} {
		if got := r.Rounds[i].Protocol; got != protocol {
			t.Errorf("round %d is over %q, want %q", i, got, protocol)
		}
		if pictures, err := filepath.Glob(filepath.Join(dir, protocol+"-honour-*.png")); err != nil || len(pictures) != 3 {
			t.Errorf("%v, %d pictures of the rows over %s, want 3", err, len(pictures), protocol)
		}
		for j := range r.Rounds[i].Rows {
			checkRow(t, protocol, &r.Rounds[i].Rows[j])
		}
	}
	for _, e := range experiments() {
		if n := strings.Count(stdout.String(), "\n  "+e.Name+"  "); n != 4 {
			t.Errorf("the row %q is in %d tables, want 4", e.Name, n)
		}
	}
}

// checkRow holds the figures of a row of 150 calls against each other.
func checkRow(t *testing.T, protocol string, x *row) {
	t.Helper()
	name := protocol + ", " + x.Experiment.Name
	if x.Calls != 150 || x.Errors != 0 {
		t.Errorf("%s: %d calls, %d errors, want 150, 0", name, x.Calls, x.Errors)
	}
	// Each primary comes to the server. A hedge need not: its call may have been
	// decided before it was sent.
	first := x.Requests - x.ExtraRequests
	if first > x.Calls-x.Rejected || x.ExtraRequests > x.Hedges ||
		x.Experiment.Covered && first != x.Calls-x.Rejected {
		t.Errorf("%s: %d + %d requests for %d calls and %d hedges", name, first, x.ExtraRequests, x.Calls, x.Hedges)
	}
	if x.P50 <= 0 || x.P50 > x.P95 || x.P95 > x.P99 || x.P99 > x.P999 || x.P999 > x.Max*1.001 {
		t.Errorf("%s: percentiles %v, %v, %v, %v, %v", name, x.P50, x.P95, x.P99, x.P999, x.Max)
	}
	if x.PeakPermits < 1 || x.ServerPeak < 1 || x.PeakPermits > x.LimitMax || x.OverhangPeak > x.PeakPermits {
		t.Errorf("%s: peaks %d, %d, %d under a limit of %d", name, x.PeakPermits, x.ServerPeak, x.OverhangPeak, x.LimitMax)
	}
	if c := &x.Course; len(c.Latency) == 0 || len(c.Requests) != rowSteps || sum(c.Calls) != x.Calls ||
		sum(c.Requests) > x.Requests || slices.Max(c.Permits) != x.PeakPermits || slices.Max(c.Server) > x.ServerPeak {
		t.Errorf("%s: the course %+v is not that of the row %+v", name, c, x)
	}
	if x.Law.Grants < x.Calls || x.Law.Events < 4*x.Calls || x.Law.GrantsAbove != 0 ||
		x.Law.Looks < 2*x.Calls || x.Law.Bare != 0 || x.Law.PeakAboveLimit != 0 {
		t.Errorf("%s: %+v", name, x.Law)
	}
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// cancelAt cancels a context when a text is written to it.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (c *cancelAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.text) {
		c.cancel()
	}
	return len(p), nil
}

// Ctrl-C leaves the finished rows, in the table and the file.
func TestRunInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name, at string
		rows     int
	}{
		{"in the first warm-up", "row 1/10 no hedging (http, cancel honour): warm-up", 0},
		{"in the second measuring", "row 2/10 conservative (http, cancel honour): measure", 1},
		{"in the first warm-up over gRPC", "row 6/10 no hedging (grpc, cancel honour): warm-up", 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			path := filepath.Join(t.TempDir(), "out.json")
			var stdout strings.Builder
			dir := t.TempDir()
			args := strings.Fields("-duration 200ms -warmup 50 -json " + path + " -report " + dir)
			if code := run(ctx, args, &stdout, &cancelAt{tt.at, cancel}); code != exitInterrupted {
				t.Errorf("exit code %d, want 130", code)
			}
			if got := strings.Contains(stdout.String(), rowNone); got != (tt.rows > 0) {
				t.Errorf("the finished row was printed: %t, want %t:\n%s", got, tt.rows > 0, &stdout)
			}
			var r report
			data, err := os.ReadFile(path)
			if err := errors.Join(err, json.Unmarshal(data, &r)); err != nil {
				t.Fatal(err)
			}
			if r.rows() != tt.rows || !r.Interrupted {
				t.Errorf("the file has %d rows, interrupted: %t, want %d, true", r.rows(), r.Interrupted, tt.rows)
			}
			page, err := os.ReadFile(filepath.Join(dir, pageFile))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(page), "Interrupted") || strings.Contains(string(page), "gRPC service") {
				t.Error("the page has no word on the rows that were not finished, or a round without any")
			}
			for i, e := range experiments() {
				if shown := strings.Contains(string(page), "<td>"+e.Name+"</td>"); shown != (i < tt.rows) {
					t.Errorf("the row %q is on the page: %t, and %d were finished", e.Name, shown, tt.rows)
				}
			}
		})
	}
}

// The check is worth something only if it can fail: losers that are cancelled are
// worked on to their end by a server that ignores that, and no permit covers them. Those
// that are drained keep their permits: so there are never more at the server than the
// limit, which says so without a word of the client's log.
func TestCheckSeesUncoveredWork(t *testing.T) {
	cancelled := experiment{
		Name: "cancelled", Covered: true, // a lie
		algorithm: fixedLimit,
		hedging:   fixedDelay(aggressiveDelay),
	}
	drained := experiment{
		Name: "drained", Covered: true,
		// So low that it is often reached, and so high that there are hedges.
		algorithm: func() (gradient.Algorithm, error) { return gradient.NewFixed(6) },
		hedging: func(c *hedgedlimit.Config) error {
			c.Losers = hedgedlimit.Drain(drainBound)
			return fixedDelay(aggressiveDelay)(c)
		},
	}
	s := shortSettings()
	s.Cancel = cancelIgnore
	for _, tt := range []struct {
		experiment
		broken bool
	}{{cancelled, true}, {drained, false}} {
		for _, v := range s.variants() {
			t.Run(v.protocol+"/"+tt.Name, func(t *testing.T) {
				x, err := runRow(t.Context(), tt.experiment, s, v, silent(s))
				if err != nil {
					t.Fatal(err)
				}
				if seen := x.Law.Excess > 0 && x.Law.Violations > 0; seen != tt.broken {
					t.Errorf("uncovered work was seen: %t, want %t: %+v", seen, tt.broken, x.Law)
				}
				if !tt.broken {
					if x.OverhangPeak == 0 || x.ServerPeak > x.LimitMax {
						t.Errorf("up to %d losers held permits, and %d were at the server under a limit of %d", x.OverhangPeak, x.ServerPeak, x.LimitMax)
					}
					return
				}
				r := round{Rows: []row{x}}
				r.judge()
				if len(r.Verdict.Broken) == 0 {
					t.Error("the verdict has no broken law")
				}
			})
		}
	}
}
