package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// microPackage has the benchmarks beside the rivals, of which microPattern are those of single
	// calls: of those over HTTP, the ones that leave out the network.
	microPackage = "github.com/holdfast-go/holdfast/bench"
	microPattern = "^Benchmark(AcquireRelease|Refusal|HedgedCall|GRPC)$|^BenchmarkHTTP$/^net=null$"
)

// microSettings says how long the micro-benchmarks are run.
type microSettings struct {
	Time  time.Duration
	Count int
}

// microRow is the medians of one benchmark, by its name without what testing adds to it.
type microRow struct {
	Name string `json:"name"`
	// Ns is nanoseconds for each operation, and Ratio that to the first row of the same benchmark:
	// judge by it, and within one run only.
	Ns     float64 `json:"ns_per_op"`
	Ratio  float64 `json:"ratio"`
	Bytes  float64 `json:"bytes_per_op"`
	Allocs float64 `json:"allocs_per_op"`
	// Runs is how many rounds have a result.
	Runs int `json:"runs"`
}

// runMicro builds the benchmarks of this package by go test, and runs all of them as many times
// as is asked for, one round after the other. It returns what has results, also with an error.
func runMicro(ctx context.Context, s microSettings, stderr io.Writer) (rows []microRow, err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "bench.test")
	fmt.Fprintf(stderr, "peers: micro: go test -c %s\n", microPackage)
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, microPackage)
	build.Stderr = stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("go test -c: %w", err)
	}
	results := microResults{}
	for round := range s.Count {
		fmt.Fprintf(stderr, "peers: micro: round %d/%d\n", round+1, s.Count)
		if err := results.round(ctx, s, binary, stderr); err != nil {
			return results.rows(), err
		}
	}
	return results.rows(), nil
}

// microResults collects rounds. The zero value is empty.
type microResults struct {
	names   []string // in the order of the first round
	results map[string][]microRow
}

// round runs each benchmark once.
func (m *microResults) round(ctx context.Context, s microSettings, binary string, stderr io.Writer) error {
	run := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", microPattern, "-test.benchtime", s.Time.String())
	run.Stderr = stderr
	out, err := run.StdoutPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		m.add(lines.Text())
	}
	if err := run.Wait(); err != nil {
		return fmt.Errorf("the benchmarks: %w", err)
	}
	return lines.Err()
}

// add enters a line of the output, if it is a result.
func (m *microResults) add(line string) {
	row, ok := parseBenchmark(line)
	if !ok {
		return
	}
	if m.results == nil {
		m.results = map[string][]microRow{}
	}
	if m.results[row.Name] == nil {
		m.names = append(m.names, row.Name)
	}
	m.results[row.Name] = append(m.results[row.Name], row)
}

// parseBenchmark reads a line such as "BenchmarkX/y-2  100  12.5 ns/op  0 B/op  0 allocs/op".
func parseBenchmark(line string) (row microRow, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return row, false
	}
	row.Name, ok = strings.CutPrefix(fields[0], "Benchmark")
	if !ok {
		return row, false
	}
	if i := strings.LastIndexByte(row.Name, '-'); i >= 0 {
		if _, err := strconv.Atoi(row.Name[i+1:]); err == nil {
			row.Name = row.Name[:i] // the number of processors
		}
	}
	timed := false
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return row, false
		}
		switch fields[i+1] {
		case "ns/op":
			row.Ns, timed = value, true
		case "B/op":
			row.Bytes = value
		case "allocs/op":
			row.Allocs = value
		}
	}
	return row, timed
}

// rows returns the medians. Rows of one benchmark are next to each other.
func (m *microResults) rows() []microRow {
	rows := []microRow{}
	for _, name := range m.names {
		list := m.results[name]
		median := func(figure func(*microRow) float64) float64 {
			values := make([]float64, len(list))
			for i := range list {
				values[i] = figure(&list[i])
			}
			slices.Sort(values)
			return values[len(values)/2]
		}
		rows = append(rows, microRow{
			Name: name, Runs: len(list),
			Ns:     median(func(r *microRow) float64 { return r.Ns }),
			Bytes:  median(func(r *microRow) float64 { return r.Bytes }),
			Allocs: median(func(r *microRow) float64 { return r.Allocs }),
		})
	}
	slices.SortStableFunc(rows, func(a, b microRow) int { return strings.Compare(a.group(), b.group()) })
	first := map[string]float64{}
	for i := range rows {
		group := rows[i].group()
		if _, ok := first[group]; !ok {
			first[group] = rows[i].Ns
		}
		rows[i].Ratio = rows[i].Ns / first[group]
	}
	return rows
}

// group is the name without the rival, which is called impl, or else is the second part.
func (r *microRow) group() string {
	parts := strings.Split(r.Name, "/")
	rival := slices.IndexFunc(parts, func(part string) bool { return strings.HasPrefix(part, "impl=") })
	if rival < 0 {
		rival = 1
	}
	if rival < len(parts) {
		parts = slices.Delete(parts, rival, rival+1)
	}
	return strings.Join(parts, "/")
}
