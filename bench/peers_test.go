package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// All clients on both workloads, short, with what is printed and written. Whether ours is ahead is
// not for a test of a second.
func TestPeers(t *testing.T) {
	dir := t.TempDir()
	jsonPath, document := filepath.Join(dir, "out.json"), filepath.Join(dir, "RESULTS.md")
	var stdout, stderr strings.Builder
	args := strings.Fields("peers -calls 600 -warmup 500 -blocks 2 -delay 6ms -micro=false -json " + jsonPath + " -markdown " + document)
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK && code != exitMissed {
		t.Fatalf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	r := readReport[peersReport](t, jsonPath)
	if r.Interrupted || len(r.Workloads) != 2 || len(r.Micro) != 0 || r.Settings.Delay != 6*time.Millisecond {
		t.Fatalf("%+v", r)
	}
	for _, w := range r.Workloads {
		if len(w.Rows) != len(contenders()) || len(w.Compared) != len(w.Rows)-1 {
			t.Fatalf("%s: %d rows, %d comparisons", w.Name, len(w.Rows), len(w.Compared))
		}
		for _, x := range w.Rows {
			name := w.Name + ": " + x.Contender.Name
			// On a busy machine a first attempt may lose to its hedge before it is sent.
			first := x.Requests - x.ExtraRequests
			late := x.Calls - x.Rejected - first
			if x.Calls != w.Calls || x.Errors != 0 || late < 0 || late > x.ExtraRequests || x.P50 <= 0 || x.P50 > x.P99 || x.P99 > x.P999 {
				t.Errorf("%s: %+v", name, x)
			}
			if (w.Name == workPublished) != (x.BestP99 > 0) {
				t.Errorf("%s: best p99 %.1f ms", name, x.BestP99)
			}
			// Those with a delay of their own may not have learnt it yet.
			switch x.Contender.Name {
			case peerPlain:
				if x.ExtraRequests > 0 || x.BestP99 > 1.01*x.P99 {
					t.Errorf("%s sent %d extra requests, with %.1f ms of %.1f in the service", name, x.ExtraRequests, x.BestP99, x.P99)
				}
			case "hedgedhttp", "failsafe", "failsafe-limiter":
				if x.ExtraRequests == 0 {
					t.Errorf("%s sent no extra request", name)
				}
			}
			if !strings.Contains(stdout.String(), x.Contender.Name+" ") {
				t.Errorf("%s is not printed", name)
			}
		}
	}
	data, err := os.ReadFile(document)
	if err != nil || !strings.Contains(string(data), strings.Trim(stdout.String(), "\n")) {
		t.Errorf("the document does not have what was printed: %v\n%s", err, data)
	}
	if !strings.Contains(stderr.String(), "published: block 2/2: failsafe, 800 calls") {
		t.Errorf("no progress: %q", &stderr)
	}
	for b, first := range []string{contenders()[0].Name, contenders()[1].Name} { // none is always the first
		_, rest, _ := strings.Cut(stderr.String(), fmt.Sprintf("published: block %d/2: ", b+1))
		if !strings.HasPrefix(rest, first+",") {
			t.Errorf("block %d begins with %.20q, want %s", b+1, rest, first)
		}
	}
}

// Ctrl-C leaves the blocks that all rows have finished.
func TestPeersInterrupted(t *testing.T) {
	for _, tt := range []struct {
		at        string
		workloads int
	}{
		{"learning the delay", 0}, {"published: block 2/2: plain", 1},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		path := filepath.Join(t.TempDir(), "out.json")
		args := strings.Fields("peers -calls 200 -warmup 500 -blocks 2 -json " + path)
		if code := run(ctx, args, io.Discard, &cancelAt{tt.at, cancel}); code != exitInterrupted {
			t.Errorf("%s: exit code %d, want 130", tt.at, code)
		}
		r := readReport[peersReport](t, path)
		if !r.Interrupted || len(r.Workloads) != tt.workloads || r.Workloads == nil {
			t.Fatalf("%s: %+v", tt.at, r)
		}
		if tt.workloads > 0 && r.Settings.Delay <= 0 {
			t.Errorf("%s: no delay was learnt", tt.at)
		}
		for _, w := range r.Workloads {
			if n := w.Rows[0].Calls; n != 100 && n != 200 || w.Rows[len(w.Rows)-1].Calls != n {
				t.Errorf("%s: %d calls of the first row", tt.at, n)
			}
		}
	}
}

// The names of the fields are what others read.
func TestPeersSchema(t *testing.T) {
	r := newPeersReport(peersOptions{}, time.Unix(0, 0))
	r.Workloads = []peersWorkload{{Rows: []peerRow{{FirstError: "x"}}, Compared: []comparison{{}}}}
	r.Micro = []microRow{{}}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	first := func(list any) any { return list.([]any)[0] }
	w := first(report["workloads"]).(map[string]any)
	for _, tt := range []struct {
		name   string
		object any
		want   string
	}{
		{"report", report, "arch command commit cpus elapsed_seconds go interrupted machine micro os settings started workloads"},
		{"settings", report["settings"], "blocks calls concurrency delay_ns seed warm_up_calls"},
		{"workload", w, "about blocks calls compared concurrency name profile rate replicas rows slots warm_up_calls"},
		{"row", first(w["rows"]), "best_p99_ms calls contender errors extra_percent extra_requests first_error p50_ms p95_ms p99_9_ms p99_ms rejected requests"},
		{"comparison", first(w["compared"]), "met more_extra_percent more_failed_percent name own p99_ratio standing target"},
		{"micro", first(report["micro"]), "allocs_per_op bytes_per_op name ns_per_op ratio runs"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(tt.object.(map[string]any))), " "); got != tt.want {
			t.Errorf("%s has %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestStanding(t *testing.T) {
	for _, tt := range []struct {
		ratio, extra, failed float64
		want                 string
	}{
		{1, 0, 0, standsLevel},
		{1.02, 0.4, 0.05, standsLevel},
		{0.9, 0, 0, standsAhead},
		{0.9, 0.4, 0, standsAhead},
		{1, -5, 0, standsAhead},
		{1, 0, -1, standsAhead},
		{0.9, 1, 0, standsTrades},
		{1.1, -1, 0, standsTrades},
		{0.5, -5, 0.2, standsTrades},
		{1.1, 0, 0, standsBehind},
		{1, 1, 0, standsBehind},
		{0, -5, 0, standsUnlike},
	} {
		c := comparison{P99Ratio: tt.ratio, MoreExtra: tt.extra, MoreFailed: tt.failed}
		if got := c.standing(); got != tt.want {
			t.Errorf("%+v is %s, want %s", c, got, tt.want)
		}
	}
}

// A plain client is beaten by half of its tail at an eighth more requests, one that has paid for
// its tail with requests has no target, and where workers are few only the defaults are judged:
// they must do no harm.
func TestPeersJudge(t *testing.T) {
	row := func(name string, p99, extra float64, rejected int) peerRow {
		return peerRow{Contender: contender{Name: name}, Calls: 1000, P99: p99, ExtraPercent: extra, Rejected: rejected}
	}
	harmless := row(peerDefault, 66, 20, 1)
	for _, tt := range []struct {
		name          string
		work          string
		own, defaults peerRow
		met           []bool // plain, peer, the defaults
	}{
		{"ahead", workPublished, row(peerOurs, 18, 9, 0), harmless, []bool{true, true, true}},
		{"a long tail", workPublished, row(peerOurs, 40, 10, 0), harmless, []bool{false, false, true}},
		{"a long tail for few requests", workPublished, row(peerOurs, 40, 2, 0), harmless, []bool{false, true}},
		{"a long tail for few requests, and refusals", workPublished, row(peerOurs, 40, 2, 2), harmless, []bool{false, false, true}},
		{"where workers are few", workCrowded, row(peerOurs, 64, 9, 9), harmless, []bool{true}},
		{"many requests", workPublished, row(peerOurs, 18, 13, 0), harmless, []bool{false, false, true}},
		{"refusals", workPublished, row(peerOurs, 18, 9, 2), harmless, []bool{false, false, true}},
		{"defaults with a long tail", workCrowded, row(peerOurs, 18, 9, 0), row(peerDefault, 68, 0, 0), []bool{false}},
		{"defaults that refuse", workCrowded, row(peerOurs, 18, 9, 0), row(peerDefault, 30, 0, 2), []bool{false}},
		{"defaults that answer nothing", workCrowded, row(peerOurs, 18, 9, 0), row(peerDefault, 0, 0, 0), []bool{false}},
	} {
		w := peersWorkload{workload: workload{Name: tt.work}, Rows: []peerRow{row(peerPlain, 65, 0, 0), row("peer", 20, 10, 0), tt.own, tt.defaults}}
		w.judge()
		r := peersReport{Workloads: []peersWorkload{w}}
		var met []bool
		for _, c := range w.Compared {
			if c.Target {
				met = append(met, c.Met)
			}
		}
		if len(w.Compared) != 3 || !slices.Equal(met, tt.met) || r.met() == slices.Contains(met, false) {
			t.Errorf("%s: %+v", tt.name, w.Compared)
		}
	}
}

// Each attempt has a number of its own, which goes to the replica after the last one's, and the
// request of the caller is not changed.
func TestStamperNumbersAttempts(t *testing.T) {
	var got []string
	s := &stamper{seed: 1, addresses: []string{"a", "b", "c"}, base: transportFunc(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.Header.Get(downstream.AttemptHeader)+r.URL.Host)
		return nil, errors.New("no answer")
	})}
	ctx := context.WithValue(t.Context(), attemptsKey{}, new(atomic.Int64))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, serviceURL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(downstream.CallHeader, "7")
	for range 3 {
		_, _ = s.RoundTrip(r)
	}
	if !slices.Equal(got, []string{"1a", "2b", "3c"}) && !slices.Equal(got, []string{"1b", "2c", "3a"}) && !slices.Equal(got, []string{"1c", "2a", "3b"}) {
		t.Errorf("attempts %q", got)
	}
	if r.Header.Get(downstream.AttemptHeader) != "" || r.URL.Host != "downstream.test" {
		t.Errorf("the caller's request is %+v", r)
	}
	if _, err := s.RoundTrip(r.WithContext(t.Context())); err == nil {
		t.Error("without the context of the call there is no number")
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Callers wait for their answers: there are never more calls than callers, and each number is
// called once.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, peak, done atomic.Int64
		var called [50]atomic.Int64
		l := closedLoop{callers: 4, do: func(_ context.Context, call uint64) error {
			n := running.Add(1)
			peak.Store(max(peak.Load(), n))
			called[call-100].Add(1)
			time.Sleep(time.Minute)
			running.Add(-1)
			return nil
		}}
		samples, err := l.run(t.Context(), 100, 50, &done)
		if err != nil || len(samples) != 50 || done.Load() != 50 || peak.Load() != 4 {
			t.Errorf("%d samples, %d done, %d at once, %v", len(samples), done.Load(), peak.Load(), err)
		}
		for i := range called {
			if called[i].Load() != 1 || samples[i].latency != time.Minute {
				t.Errorf("call %d was made %d times, in %v", i, called[i].Load(), samples[i].latency)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.run(ctx, 100, 50, &done); !errors.Is(err, context.Canceled) || done.Load() != 50 {
			t.Errorf("after the end of the context: %v, %d done", err, done.Load())
		}
	})
}

func TestParsePeersFlags(t *testing.T) {
	o, err := parsePeersFlags(strings.Fields("-seed 2 -calls 1000 -concurrency 5 -warmup 600 -blocks 4 -delay 9ms -micro=false -benchtime 1s -count 3 -json a.json -markdown b.md"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := peersSettings{Seed: 2, Calls: 1000, Concurrency: 5, WarmUp: 600, Blocks: 4, Delay: 9 * time.Millisecond}
	if o.settings != want || o.micro || o.Time != time.Second || o.Count != 3 || o.jsonPath != "a.json" || o.markdownPath != "b.md" {
		t.Errorf("%+v", o)
	}
	var out bytes.Buffer
	if _, err := parsePeersFlags([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "usage: go run ./bench peers") {
		t.Errorf("-h: %v\n%s", err, &out)
	}
	// Each error names the flag and the value that was given.
	for _, tt := range []struct{ args, want string }{
		{"-calls 99", "bench: -calls 99 is not between 100 and 5000000"},
		{"-concurrency 0", "bench: -concurrency 0 is not between 1 and 1024"},
		{"-warmup 499", "bench: -warmup 499 is not between 500, for the delay must be learnt, and 5000000"},
		{"-blocks 0", "bench: -blocks 0 is not between 1 and -calls 50000"},
		{"-delay -1s", "bench: -delay -1s is negative"},
		{"-benchtime 0", "bench: -benchtime 0s is not positive"},
		{"-count 0", "bench: -count 0 is not between 1 and 1000"},
		{"now", `bench: unexpected argument "now"`},
	} {
		if _, err := parsePeersFlags(strings.Fields(tt.args), io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("parsePeersFlags(%s): %v, want %s", tt.args, err, tt.want)
		}
	}
}
