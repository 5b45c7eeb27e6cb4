package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// printRows prints a table for each scenario that has anything to show.
func printRows(w io.Writer, rows []*hedgearena.Row) error {
	var b strings.Builder
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Scenario == rows[0].Scenario {
			n++
		}
		if err := printHedging(&b, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printHedging prints the rows of one scenario: medians of the seeds, and the median
// differences from the base with their standard errors.
func printHedging(w io.Writer, rows []*hedgearena.Row) error {
	s := rows[0].Scenario
	rows = slices.DeleteFunc(slices.Clone(rows), func(r *hedgearena.Row) bool { return len(r.Finished()) == 0 })
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s %s: %s\n\n", s.ID, s.Name, s)
	limits, policies := len("limit"), len("policy")
	for _, r := range rows {
		limits = max(limits, utf8.RuneCountInString(limitAndMode(r)))
		policies = max(policies, utf8.RuneCountInString(r.Policy.Name+missing(r)))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// As in writeTable: cells of one width look as if they were on the left.
	fmt.Fprintf(t, "load\t%-*s\t%-*s\tp50 ms\tp99\tp99.9\tfailed %%\textra %%\twon\tΔ failed\tΔ p99 %%\t%s  skipped; targets\n", limits, "limit", policies, "policy", pick(s.Troubled(), "s to 95 %\t", ""))
	for i, r := range rows {
		load := ""
		if i == 0 || rows[i-1].Load != r.Load {
			load = fmt.Sprintf("%g %%", 100*r.Load)
		}
		limit := ""
		if i == 0 || load != "" || limitAndMode(rows[i-1]) != limitAndMode(r) {
			limit = limitAndMode(r)
		}
		fmt.Fprintf(t, "%s\t%-*s\t%-*s\t", load, limits, limit, policies, r.Policy.Name+missing(r))
		for _, cell := range hedgeCells(r) {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t, strings.TrimRight("  "+strings.Join(hedgeNotes(r), "; "), " "))
	}
	return t.Flush() // which also tells of the errors before
}

func limitAndMode(r *hedgearena.Row) string {
	if r.Limit.None() {
		return r.Limit.Name
	}
	return r.Limit.Name + " " + string(r.Mode)
}

// missing tells how many seeds of a row there are, if not all.
func missing(r *hedgearena.Row) string {
	if n := len(r.Finished()); n < len(r.Figures) {
		return fmt.Sprintf(" (%d of %d seeds)", n, len(r.Figures))
	}
	return ""
}

// hedgeCells are the figures of a row.
func hedgeCells(r *hedgearena.Row) []string {
	m := func(of func(*hedgearena.PhaseFigures) float64) float64 { return r.Median(of) }
	extra := m(func(f *hedgearena.PhaseFigures) float64 { return float64(f.Extra) })
	won := m(func(f *hedgearena.PhaseFigures) float64 { return share(int(f.Won), max(f.Extra, 1)) })
	d, ok := r.Difference()
	c := []string{
		ms(m(func(f *hedgearena.PhaseFigures) float64 { return f.P50 })),
		ms(m(func(f *hedgearena.PhaseFigures) float64 { return f.P99 })),
		ms(m(func(f *hedgearena.PhaseFigures) float64 { return f.P999 })),
		fmt.Sprintf("%.2f", m(func(f *hedgearena.PhaseFigures) float64 { return f.FailedPercent })),
		fmt.Sprintf("%.2f", m(func(f *hedgearena.PhaseFigures) float64 { return f.ExtraPercent })),
		optional(won > 0 && extra > 0, fmt.Sprintf("%.0f %%", won)),
		optional(ok, fmt.Sprintf("%+.2f ±%.2f", d.Failed, d.FailedError)),
		optional(ok, fmt.Sprintf("%+.1f ±%.1f", d.P99, d.P99Error)),
	}
	if r.Scenario.Troubled() {
		last := func(f *hedgearena.Figures) float64 { return hedgearena.Recovery.Of(f, "") }
		c = append(c, sooner(r.MedianOf(last)))
	}
	return c
}

// hedgeNotes are the reasons of the hedges that were not sent, as shares of those that
// were due, and the targets.
func hedgeNotes(r *hedgearena.Row) []string {
	var notes []string
	skipped := map[string]uint64{}
	due := uint64(0)
	for _, f := range r.Finished() {
		due += f.Total.Due
		for reason, n := range f.Total.Skipped {
			skipped[reason] += n
		}
	}
	var reasons []string
	for reason, n := range skipped {
		reasons = append(reasons, fmt.Sprintf("%s %.1f %%", reason, 100*float64(n)/float64(due)))
	}
	slices.Sort(reasons)
	if reasons != nil {
		notes = append(notes, strings.Join(reasons, ", "))
	}
	for _, j := range r.Judge() {
		switch {
		case !j.Met:
			notes = append(notes, fmt.Sprintf("%s: %s MISSED", j.What, hedgeValue(j)))
		case !j.Law: // the law is in the columns before
			notes = append(notes, fmt.Sprintf("%s: %s %s", j.What, hedgeValue(j), pick(j.Stretched, "met [met]", "met")))
		}
	}
	return notes
}

// hedgeValue is what a target came to.
func hedgeValue(j hedgearena.Judgement) string {
	switch {
	case math.IsInf(j.Value, 0):
		return "never"
	case j.Law:
		return fmt.Sprintf("%+.2f ± %.2f", j.Value, j.Error)
	}
	return fmt.Sprintf("%.2f ± %.2f", j.Value, j.Error)
}

// printVerdict prints what the run comes to.
func (r *hedgeReport) printVerdict(w io.Writer) error {
	var b strings.Builder
	v := r.Verdict
	fmt.Fprintf(&b, "\nseeds %d to %d; %.0f s on %s %s/%s, %d CPUs\n", r.Seeds[0], r.Seeds[len(r.Seeds)-1], r.ElapsedSeconds, r.Go, r.OS, r.Arch, r.CPUs)
	if v.Targets > 0 {
		fmt.Fprintf(&b, "targets of %s, on the median of the seeds: %d of %d met%s\n", hedgearena.OurName, v.Met, v.Targets, pick(v.Complete, "", "; there are seeds that were not finished"))
	}
	if len(v.Missed) > 0 {
		fmt.Fprintf(&b, "%d of %d missed by more than two standard errors\n", v.ClearlyMissed, len(v.Missed))
	}
	for _, m := range v.Missed {
		fmt.Fprintf(&b, "missed: %s\n", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
