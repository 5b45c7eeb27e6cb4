package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/bench/internal/storm"
)

// printTable prints the rows that are over, and what each of them is.
func (r *stormReport) printTable(w io.Writer) error {
	if len(r.Rows) == 0 {
		return nil
	}
	first := &r.Rows[0].Case
	fmt.Fprintf(w, "\n%d a second at most, time-out %d s, well for %d s, %d s in all; %d calls a second and %d s without capacity unless a row says otherwise\n\n",
		first.Capacity, first.Timeout, first.Start, first.Length, first.Load, first.Outage)
	names := 0
	for i := range r.Rows {
		names = max(names, utf8.RuneCountInString(r.Rows[i].Name))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// As in writeTable: cells of one width look as if they were on the left.
	fmt.Fprintf(t, "%-*s\trecovered\tanswers again\tfirst try\tlast failure\tpeak\tpeak queue\twasted\tcalls failed\tattempts\trefused\t\n", names, "row")
	for i := range r.Rows {
		x := &r.Rows[i]
		f := x.Figures
		fmt.Fprintf(t, "%-*s\t%s\t%s\t%.1f %%\t%s\t%.1f ×\t%s\t%.1f %%\t%.1f %%\t%s\t%s\t%s\n", names, x.Name,
			f.Recovery(), storm.After(f.Answering), f.FirstTryPercent, f.LastFailure(), f.Peak, storm.Grouped(f.PeakQueue), f.WastedPercent,
			100*float64(f.Failed)/float64(f.Calls), storm.Grouped(f.Attempts), storm.Grouped(f.Refused), x.missed())
	}
	if err := t.Flush(); err != nil { // which also tells of the errors before
		return err
	}
	var b strings.Builder
	b.WriteString("\n")
	for i := range r.Rows {
		fmt.Fprintf(&b, "%-*s  %s\n", names, r.Rows[i].Name, r.Rows[i].About)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// missed names the targets of the row that were missed.
func (x *stormRow) missed() string {
	var notes []string
	for _, t := range x.Targets {
		if !t.Met {
			notes = append(notes, "  missed: "+t.Target)
		}
	}
	return strings.Join(notes, ";")
}

// printVerdict prints what became of the targets.
func (r *stormReport) printVerdict(w io.Writer) error {
	v := &r.Verdict
	if v.Targets == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d of %d targets met\n", v.Met, v.Targets)
	for _, m := range v.Missed {
		fmt.Fprintf(&b, "  missed: %s\n", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
