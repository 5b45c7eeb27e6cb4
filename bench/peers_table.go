package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// printWorkload prints the table of a workload, what its rows are, and how ours compares.
func (r *peersReport) printWorkload(w io.Writer, x *peersWorkload) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s\nhedge delay of those that have to be told one: %.1f ms; seed %d\n\n", x.Name, x.About, milliseconds(r.Settings.Delay), r.Settings.Seed)
	width := 0
	for i := range x.Rows {
		width = max(width, utf8.RuneCountInString(x.Rows[i].Contender.Name))
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	// As in writeTable: cells of one width look as if they were on the left.
	fmt.Fprintf(t, "%-*s\tp50 ms\tp95\tp99\tp99.9\tbest p99\tcalls\trequests\textra\trejected\terrors\t\n", width, "client")
	for i := range x.Rows {
		p := &x.Rows[i]
		fmt.Fprintf(t, "%-*s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t\n", width, p.Contender.Name,
			ms(p.P50), ms(p.P95), ms(p.P99), ms(p.P999), pick(p.BestP99 > 0, ms(p.BestP99), "–"), p.Calls, p.Requests, percent(p.ExtraPercent), p.Rejected, p.Errors)
	}
	if err := t.Flush(); err != nil { // which also tells of the errors before
		return err
	}
	if slices.ContainsFunc(x.Rows, func(p peerRow) bool { return p.BestP99 > 0 }) {
		b.WriteString("\n  best p99: that of one hedge after a fixed delay with as many extra requests, if nothing but the service takes time\n")
	}
	b.WriteByte('\n')
	for i := range x.Rows {
		fmt.Fprintf(&b, "%-*s  %s\n", width, x.Rows[i].Contender.Name, x.Rows[i].Contender.About)
	}
	b.WriteByte('\n')
	for i := range x.Compared {
		fmt.Fprintln(&b, x.Compared[i].line())
	}
	for i := range x.Rows {
		if p := &x.Rows[i]; p.FirstError != "" {
			fmt.Fprintf(&b, "note: %s: %d errors, the first: %s\n", p.Contender.Name, p.Errors, p.FirstError)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printMicro prints the table of the micro-benchmarks.
func printMicro(w io.Writer, s microSettings, rows []microRow) error {
	fmt.Fprintf(w, "\nmicro-benchmarks, medians of %d rounds of %v each; the ratio is that to the first row of the same benchmark\n\n", s.Count, s.Time)
	width := 0
	for i := range rows {
		width = max(width, utf8.RuneCountInString(rows[i].Name))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%-*s\tns/op\tratio\tB/op\tallocs/op\t\n", width, "benchmark")
	for i := range rows {
		m := &rows[i]
		fmt.Fprintf(t, "%-*s\t%.4g\t%.2f ×\t%.0f\t%.0f\t\n", width, m.Name, m.Ns, m.Ratio, m.Bytes, m.Allocs)
	}
	return t.Flush()
}
