package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// column is one column of a table.
type column struct {
	head string
	cell func(*row) string
}

// latencyColumns are about what callers saw and what it took.
var latencyColumns = []column{
	{"p50 ms", func(r *row) string { return ms(r.P50) }},
	{"p95", func(r *row) string { return ms(r.P95) }},
	{"p99", func(r *row) string { return ms(r.P99) }},
	{"p99.9", func(r *row) string { return ms(r.P999) }},
	{"hedge delay", func(r *row) string { return optional(r.DelayMs > 0, ms(r.DelayMs)) }},
	{"calls", func(r *row) string { return strconv.Itoa(r.Calls) }},
	{"requests", func(r *row) string { return strconv.Itoa(r.Requests) }},
	{"extra", func(r *row) string { return percent(r.ExtraPercent) }},
	{"hedges won", func(r *row) string { return optional(r.Hedges > 0, percent(share(r.HedgesWon, r.Hedges))) }},
	{"rejected", func(r *row) string { return strconv.Itoa(r.Rejected) }},
	{"errors", func(r *row) string { return strconv.Itoa(r.Errors) }},
}

// costColumns are about the limit and the server.
var costColumns = []column{
	{"limit", func(r *row) string { return strconv.Itoa(r.LimitFinal) }},
	{"limit max", func(r *row) string { return strconv.Itoa(r.LimitMax) }},
	{"permits peak", func(r *row) string { return strconv.Itoa(r.PeakPermits) }},
	{"server peak", func(r *row) string { return strconv.Itoa(r.ServerPeak) }},
	{"no permit", func(r *row) string { return strconv.Itoa(r.Law.Excess) }},
	{"overhang", func(r *row) string { return strconv.Itoa(r.OverhangPeak) }},
	{"cancel lag p50 ms", func(r *row) string { return optional(r.Losers > 0, ms(r.CancelLagP50)) }},
	{"lag p99", func(r *row) string { return optional(r.Losers > 0, ms(r.CancelLagP99)) }},
	{"server CPU s", func(r *row) string { return optional(r.CPUKnown, fmt.Sprintf("%.2f", r.CPUSeconds)) }},
	{"ms/1000 calls", func(r *row) string { return optional(r.CPUKnown, fmt.Sprintf("%.0f", r.CPUMsPer1000)) }},
	{"server MB", func(r *row) string { return fmt.Sprintf("%.1f", r.MemoryMB) }},
}

// legend explains the second table.
const legend = `
  no permit: the most requests at the server, at once, that no permit covered any more
  overhang: the most permits held by losers; cancel lag: from the loss to the release of the permit

`

// printRound writes the tables and the verdict of a round.
func printRound(w io.Writer, r *report, d *round) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nholdfast bench: %s %s/%s, %d CPUs; %s\n\n", r.Go, r.OS, r.Arch, r.CPUs, strings.Join(d.head(&r.Settings), "\n"))
	if err := writeTable(&b, d.Rows, latencyColumns); err != nil {
		return err
	}
	b.WriteByte('\n')
	if err := writeTable(&b, d.Rows, costColumns); err != nil {
		return err
	}
	b.WriteString(legend)
	for _, line := range d.lines() {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// head says what the rows of a round have in common.
func (d *round) head(s *settings) []string {
	return []string{
		fmt.Sprintf("seed %d; %g calls/s for %v a row after %d to warm up", s.Seed, s.Rate, s.Duration, s.WarmUp),
		fmt.Sprintf("%s service: %d replicas × %d slots, %v ± %v, %g %% of the requests ×%g; cancellation: %s; load without hedges %.0f %%",
			d.protocolName(), s.Replicas, s.Slots, s.Profile.Mean, s.Profile.Deviation, 100*s.Profile.StragglerShare, s.Profile.StragglerFactor,
			pick(d.Cancel == cancelHonour, "honoured", "ignored"), 100*s.offeredLoad()),
	}
}

// protocolName is that of people.
func (d *round) protocolName() string { return pick(d.Protocol == downstream.GRPC, "gRPC", "HTTP") }

// nameHead is the head of the column of names.
const nameHead = "experiment"

// writeTable writes one line for each row: its name on the left, and the columns
// aligned on the right.
func writeTable(w io.Writer, rows []row, columns []column) error {
	width := len(nameHead)
	for i := range rows {
		width = max(width, utf8.RuneCountInString(rows[i].Experiment.Name))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// The writer aligns all cells on the right; names of one width look as if
	// they were on the left.
	fmt.Fprintf(t, "%-*s\t", width, nameHead)
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.head)
	}
	fmt.Fprintln(t)
	for i := range rows {
		fmt.Fprintf(t, "%-*s\t", width, rows[i].Experiment.Name)
		for _, c := range columns {
			fmt.Fprintf(t, "%s\t", c.cell(&rows[i]))
		}
		fmt.Fprintln(t)
	}
	return t.Flush() // which also tells of the errors before
}

func ms(x float64) string { return fmt.Sprintf("%.1f", x) }

func percent(x float64) string { return fmt.Sprintf("%.1f %%", x) }

func share(part, whole int) float64 { return 100 * float64(part) / float64(whole) }

// optional returns the text if it means anything, and a dash otherwise.
func optional(known bool, text string) string { return pick(known, text, "–") }
