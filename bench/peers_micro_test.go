package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseBenchmark(t *testing.T) {
	for _, tt := range []struct {
		line string
		want microRow
		ok   bool
	}{
		{"BenchmarkRefusal/permit-2   	28827013	        12.54 ns/op	       8 B/op	       1 allocs/op", microRow{Name: "Refusal/permit", Ns: 12.54, Bytes: 8, Allocs: 1}, true},
		{"BenchmarkHedgedCall/by-hand/goroutines=16   100   1e3 ns/op", microRow{Name: "HedgedCall/by-hand/goroutines=16", Ns: 1000}, true},
		{"BenchmarkHedgedCall/by-hand-8   100   5 ns/op   3 p99-ms", microRow{Name: "HedgedCall/by-hand", Ns: 5}, true},
		{"BenchmarkExperiments/budget-2   1   3 p99-ms", microRow{}, false},
		{"BenchmarkX", microRow{}, false},
		{"ok  	github.com/holdfast-go/holdfast/bench	0.156s", microRow{}, false},
		{"cpu: AMD EPYC with many words", microRow{}, false},
	} {
		got, ok := parseBenchmark(tt.line)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q is %+v, %t", tt.line, got, ok)
		}
	}
}

// Rows are medians, beside the others of their benchmark, and measured by the first of them.
func TestMicroRows(t *testing.T) {
	var m microResults
	for _, round := range [][4]string{{"10", "40", "100", "300"}, {"30", "60", "100", "100"}, {"20", "50", "700", "200"}} {
		for i, name := range []string{"B/ours/n=1", "B/ours/n=2", "B/theirs/n=1", "B/theirs/n=2"} {
			m.add("Benchmark" + name + "-2 5 " + round[i] + " ns/op")
		}
	}
	m.add("BenchmarkA/one-2 5 7 ns/op")
	m.add("BenchmarkC/n=1/impl=ours-2 5 10 ns/op")
	m.add("BenchmarkC/n=1/impl=theirs-2 5 20 ns/op")
	m.add("BenchmarkC/n=2/impl=ours-2 5 30 ns/op")
	m.add("PASS")
	want := []microRow{
		{Name: "A/one", Ns: 7, Ratio: 1, Runs: 1},
		{Name: "B/ours/n=1", Ns: 20, Ratio: 1, Runs: 3}, {Name: "B/theirs/n=1", Ns: 100, Ratio: 5, Runs: 3},
		{Name: "B/ours/n=2", Ns: 50, Ratio: 1, Runs: 3}, {Name: "B/theirs/n=2", Ns: 200, Ratio: 4, Runs: 3},
		{Name: "C/n=1/impl=ours", Ns: 10, Ratio: 1, Runs: 1}, {Name: "C/n=1/impl=theirs", Ns: 20, Ratio: 2, Runs: 1},
		{Name: "C/n=2/impl=ours", Ns: 30, Ratio: 1, Runs: 1},
	}
	if got := m.rows(); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// The benchmarks of this package are found and run, and an end of the context in the midst of them
// leaves those of the rounds before.
func TestRunMicro(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := microSettings{Time: time.Microsecond, Count: 2}
	rows, err := runMicro(ctx, s, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{"AcquireRelease/permit", "AcquireRelease/semaphore", "Refusal/failsafe-limiter", "HedgedCall/failsafe/goroutines=16", "GRPC/goroutines=16/impl=failsafegrpc"}
	for _, goroutines := range []string{"1", "16"} {
		for _, impl := range []string{"holdfast", "plain", "hedgedhttp", "failsafehttp"} {
			wanted = append(wanted, "HTTP/net=null/goroutines="+goroutines+"/impl="+impl)
		}
	}
	for _, want := range wanted {
		if !slices.ContainsFunc(rows, func(r microRow) bool { return r.Name == want && r.Ns > 0 && r.Ratio > 0 && r.Runs == 2 }) {
			t.Errorf("%s is not there, or not twice: %+v", want, rows)
		}
	}
	if i := slices.IndexFunc(rows, func(r microRow) bool { return strings.Contains(r.Name, "loopback") }); i >= 0 {
		t.Errorf("%s is more than a call", rows[i].Name)
	}
	var table strings.Builder
	if err := printMicro(&table, s, rows); err != nil || !strings.Contains(table.String(), "HTTP/net=null/goroutines=1/impl=hedgedhttp ") {
		t.Errorf("%v\n%s", err, &table)
	}
	s.Count = 1000
	rows, err = runMicro(ctx, s, &cancelAt{"round 2/1000", cancel})
	if err == nil || len(rows) == 0 || rows[0].Runs > 2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
