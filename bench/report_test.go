package main

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/bench/internal/sweep"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sampleReport is a report with two rows whose figures are made up.
func sampleReport() *report {
	s := defaultSettings()
	s.Duration = 6 * time.Second
	r := newReport(options{settings: s}, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	r.Go, r.OS, r.Arch, r.CPUs = "go1.25.0", "linux", "amd64", 2
	r.Machine, r.Commit, r.Command = "A processor", "0123456789ab", "go run ./bench -cancel ignore"
	d := round{Protocol: downstream.HTTP, Cancel: cancelIgnore, Rows: []row{
		{
			Experiment: experiments()[0], Calls: 3600, P50: 5.91, P95: 21.3, P99: 67.62, P999: 109.66, Max: 140.1,
			LimitFinal: 1000, LimitMax: 1000, PeakPermits: 16, Requests: 3600, ServerPeak: 16,
			CPUKnown: true, CPUSeconds: 0.471, CPUMsPer1000: 130.8, MemoryMB: 14.96, MemorySource: "peak resident",
			Law: law{Looks: 11_200, Enforced: true, Events: 22_400, Grants: 5600},
		},
		{
			Experiment: experiments()[2], Calls: 3600, P50: 5.9, P95: 11.6, P99: 14.4, P999: 48, Max: 60,
			DelayMs: 6, Hedges: 1240, HedgesWon: 239, Losers: 1240, CancelLagP50: 0.04, CancelLagP99: 0.21,
			LimitFinal: 1000, LimitMax: 1000, PeakPermits: 16, OverhangPeak: 4,
			Requests: 4823, ExtraRequests: 1223, ExtraPercent: 34, ServerPeak: 20, MemoryMB: 15,
			Law: law{Looks: 14_900, Events: 30_000, Excess: 10, Violations: 2000, Grants: 7500},
		},
		{
			Experiment: experiments()[4], Calls: 3600, P50: 6, P95: 14.9, P99: 19.4, P999: 49.2, Max: 55,
			DelayMs: 10.5, Hedges: 349, HedgesWon: 197, Losers: 349, CancelLagP50: 12.3, CancelLagP99: 94,
			LimitFinal: 20, LimitMax: 30, PeakPermits: 20, OverhangPeak: 7,
			Requests: 3949, ExtraRequests: 349, ExtraPercent: 9.694, ServerPeak: 18, Rejected: 2,
			CPUKnown: true, CPUSeconds: 0.61, CPUMsPer1000: 169.4, MemoryMB: 15.02, MemorySource: "peak resident",
			Law: law{Looks: 12_200, Enforced: true, Events: 24_500, Grants: 6100},
		},
	}}
	d.judge()
	r.Rounds = []round{d}
	return r
}

func TestPrintRoundGolden(t *testing.T) {
	var b strings.Builder
	r := sampleReport()
	if err := printRound(&b, r, &r.Rounds[0]); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "round.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the output has changed; if that is meant, run with -update. Got:\n%s\nwant:\n%s", &b, want)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(line)); n > 200 {
			t.Errorf("a line is %d columns wide: %s", n, line)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	want := sampleReport()
	path := filepath.Join(t.TempDir(), "out.json")
	f, err := createJSON(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.write(want); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	var got report
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	// How an experiment is set up is code, and not written.
	for i := range want.Rounds[0].Rows {
		e := &want.Rounds[0].Rows[i].Experiment
		e.algorithm, e.hedging = nil, nil
	}
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("read back\n%+v\nwant\n%+v", &got, want)
	}
}

// Whatever is in the file stays until there is something better.
func TestCreateJSONKeepsTheOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := createJSON(path)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
		t.Errorf("the file has %q, %v before it is written", data, err)
	}
	if err := f.write(&report{}); err != nil {
		t.Error(err)
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(rows []row)
		met    bool
		broken int
		line   string
	}{
		{name: "all is well", change: func([]row) {}, met: true, line: "server count ≤ permits: yes"},
		{name: "tail not cut", change: func(r []row) { r[2].P99 = 40 }, line: "MISSED"},
		{name: "too many requests", change: func(r []row) { r[2].ExtraPercent = 12.1 }, line: "MISSED"},
		{name: "more refused", change: func(r []row) { r[2].Rejected = 72 }, line: "note: adaptive: 2.0 % of the calls were refused or failed"},
		{name: "as many refused", change: func(r []row) { r[0].Errors, r[2].Rejected = 360, 360 }, met: true, line: "and 0.0 % more failures"},
		{name: "more failed, and most in both", change: func(r []row) { r[0].Errors, r[2].Rejected = 2000, 2100 }, line: "MISSED"},
		{name: "most failed in both", change: func(r []row) { r[0].Errors, r[2].Rejected = 361, 361 }, line: "not to be judged: no hedging: 10.0 % of the calls were refused or failed"},
		{name: "fewer failed than without", change: func(r []row) { r[0].Errors = 361 }, line: "NOT JUDGED"},
		{name: "nobody answered", change: func(r []row) {
			for i := range r {
				r[i].Errors, r[i].Rejected, r[i].P99, r[i].GeneratorLateP99 = r[i].Calls, 0, 0, 1
			}
		}, line: "not to be judged: no hedging: 100.0 % of the calls were refused or failed"},
		{name: "nobody answered in the adaptive row", change: func(r []row) { r[2].Errors, r[2].Rejected, r[2].P99 = 3600, 0, 0 }, line: "MISSED"},
		{name: "starved without hedging", change: func(r []row) { r[0].P99, r[0].GeneratorLateP99 = 1035, 566 }, line: "not to be judged: no hedging: the generator was late by 566.0 ms in 1 % of the calls, where p99 is 1035.0 ms"},
		{name: "starved in the adaptive row", change: func(r []row) { r[2].GeneratorLateP99 = 4 }, line: "not to be judged: adaptive: the generator was late by 4.0 ms"},
		{name: "starved, and more refused", change: func(r []row) { r[2].GeneratorLateP99, r[2].Rejected = 4, 72 }, line: "NOT JUDGED"},
		{name: "no adaptive row", change: func(r []row) { r[2].Experiment.Name = "x" }, line: "errors: 0 of 10800 calls; rejected: 2"},
		{name: "no permit in a row that cancels", change: func(r []row) { r[1].Law.Bare, r[1].Law.BareMost = 7, 3 }, met: true, broken: 1, line: "LAW BROKEN: aggressive: attempts were under way without a permit, up to 3 at once, at 7 of 14900 looks"},
		{name: "no permit is told beside the server's count", change: func(r []row) { r[0].Law.Bare, r[0].Law.BareMost = 7, 3 }, met: true, broken: 1, line: "server count ≤ permits: NO"},
		{name: "nothing came to the server", change: func(r []row) { r[0].Requests, r[2].Requests = 0, 0 }, met: true, line: "server count ≤ permits: not shown"},
		{name: "server beyond permits", change: func(r []row) { r[2].Law.Excess = 1 }, met: true, broken: 1, line: "server count ≤ permits: NO"},
		{name: "grant above limit", change: func(r []row) { r[1].Law.GrantsAbove = 3 }, met: true, broken: 1, line: "each grant below its limit: NO"},
		{name: "peak above limit", change: func(r []row) { r[2].Law.PeakAboveLimit = 2 }, met: true, broken: 1, line: "LAW BROKEN: adaptive: the attempts under way exceeded the highest limit 30 by 2"},
		{name: "clock", change: func(r []row) { r[0].Law.ClockStepped = true }, met: true, broken: 1, line: "LAW BROKEN: no hedging: the wall clock was changed"},
		{name: "late generator", change: func(r []row) { r[0].GeneratorLateP99 = 3.5 }, met: true, line: "note: no hedging: 1 % of the calls were started more than 3.5 ms late"},
		{name: "errors", change: func(r []row) { r[0].Errors, r[0].FirstError = 2, "boom" }, met: true, line: "note: no hedging: 2 errors, the first: boom"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &sampleReport().Rounds[0]
			tt.change(r.Rows)
			r.judge()
			if r.Verdict.TargetMet != tt.met || len(r.Verdict.Broken) != tt.broken {
				t.Errorf("target met: %t, broken: %q, want %t and %d", r.Verdict.TargetMet, r.Verdict.Broken, tt.met, tt.broken)
			}
			if text := strings.Join(r.lines(), "\n"); !strings.Contains(text, tt.line) {
				t.Errorf("the verdict does not say %q:\n%s", tt.line, text)
			}
		})
	}
}

// A row made of a small log that can be counted by hand.
func TestMeasurementRow(t *testing.T) {
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	ns := func(ms int) int64 { return at(ms).UnixNano() }
	grant := permit.Grant{InFlight: 1, Limit: 2}
	m := &measurement{
		experiment: experiment{Name: "x", Covered: true},
		firstCall:  1, begin: begin, maxLimit: 2,
		samples: []sample{
			{latency: 30 * time.Millisecond},
			{latency: time.Millisecond, err: limiter.ErrLimitExceeded},
			{latency: time.Millisecond, err: errors.New("boom")},
		},
		attempts: []hedgedlimit.AttemptEvent{
			{Number: 1, Won: true, Grant: grant, Granted: at(-20), Ended: at(-1)}, // warm-up
			{Number: 1, Grant: grant, Granted: at(0), Ended: at(60), Lost: true, Decided: at(30)},
			{Number: 2, Kind: limiter.Hedge, Won: true, Grant: permit.Grant{InFlight: 3, Limit: 2}, Granted: at(20), Ended: at(31)},
		},
		underWay: underWayLog{
			attempts: []sweep.Interval{{Start: ns(-20), End: ns(-1)}, {Start: ns(0), End: ns(60)}, {Start: ns(20), End: ns(31)}},
			looks:    7, bare: 2, most: 1,
		},
		report: &downstream.Report{
			Visits: []downstream.Visit{
				{Call: 0, Attempt: 1, Enter: ns(-19), Exit: ns(-2)},
				{Call: 1, Attempt: 1, Enter: ns(1), Exit: ns(59)},
				{Call: 1, Attempt: 2, Enter: ns(21), Exit: ns(40)}, // 9 ms too long
			},
			Usage: downstream.Usage{CPU: 4 * time.Second, CPUKnown: true, Memory: 3e6},
		},
		before: downstream.Usage{CPU: time.Second, CPUKnown: true},
	}
	r := m.row()
	if r.Calls != 3 || r.Rejected != 1 || r.Errors != 1 || r.FirstError != "boom" || int(r.P50) != 30 {
		t.Errorf("calls: %+v", r)
	}
	if r.Hedges != 1 || r.HedgesWon != 1 || r.Losers != 1 || int(r.CancelLagP50) != 30 || r.OverhangPeak != 1 || r.PeakPermits != 2 {
		t.Errorf("attempts: %+v", r)
	}
	if r.Requests != 2 || r.ExtraRequests != 1 || r.ExtraPercent != 100 || r.ServerPeak != 2 || r.CPUSeconds != 3 || r.MemoryMB != 3 {
		t.Errorf("requests: %+v", r)
	}
	want := law{Looks: 7, Bare: 2, BareMost: 1, Enforced: true, Events: 12, Excess: 1, Violations: 1, Grants: 3, GrantsAbove: 1}
	if r.Law != want {
		t.Errorf("law = %+v, want %+v", r.Law, want)
	}
}

func TestQuantile(t *testing.T) {
	h := newHistogram()
	if got := quantile(h, 50); got != 0 {
		t.Errorf("the quantile of nothing is %v, want 0", got)
	}
	for i := range 1000 {
		record(h, time.Duration(i+1)*time.Millisecond)
	}
	for _, tt := range []struct{ q, want float64 }{{50, 500}, {95, 950}, {99.9, 999}} {
		if got := quantile(h, tt.q); got < tt.want*0.999 || got > tt.want*1.002 {
			t.Errorf("quantile(%v) = %v, want %v", tt.q, got, tt.want)
		}
	}
	for _, d := range []time.Duration{-time.Second, 0, time.Hour} {
		record(h, d)
	}
	if h.TotalCount() != 1003 {
		t.Errorf("%d samples are in, want 1003", h.TotalCount())
	}
}
