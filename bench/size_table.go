package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
	"github.com/holdfast-go/holdfast/bench/internal/sizing"
)

// printTables prints what is known, and each stage that was reached.
func (r *sizeReport) printTables(w io.Writer) error {
	var b strings.Builder
	r.Input.print(&b)
	if rec := r.Recommendation; rec != nil {
		if rec.Limit != nil {
			printLimit(&b, rec.Limit)
		}
		if rec.Waiting != nil {
			printEffects(&b, "Without hedging, behind that limit as a fixed one", []effectsRow{
				{"refused", rec.Waiting.Refused, ""},
				{fmt.Sprintf("waits up to %.4g ms", rec.Waiting.MaxWaitMS), rec.Waiting.Waited, ""},
			})
		}
		if rec.Hedging != nil {
			printHedges(&b, rec)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (x *sizeInput) print(b *strings.Builder) {
	fmt.Fprintf(b, "\nDependency: %s", x.Kind)
	if x.Answers+x.Failed > 0 {
		fmt.Fprintf(b, ", %s, %s", brief.Count(x.Answers, "answer"), brief.Count(x.Failed, "failure"))
	}
	printSteps(b, x.Steps)
	if x.Tail == "" {
		fmt.Fprintf(b, "\n  latency ms   not known\n")
		return
	}
	fmt.Fprintf(b, "\n  latency ms   p50 %.4g, p90 %.4g, p95 %.4g, p99 %.4g, p99.9 %.4g, mean %.4g\n  tail         %s\n", x.P50, x.P90, x.P95, x.P99, x.P999, x.Mean, x.Tail)
	fmt.Fprintf(b, "  load         %.4g calls/s now, %.4g at 1.5 ×\n", x.Rate, 1.5*x.Rate)
	if x.Capacity > 0 {
		fmt.Fprintf(b, "  capacity     %.4g answers/s, %d at a time; %.0f %% in use now, %.0f %% at 1.5 ×\n", x.Capacity, x.Workers, 100*x.Rate/x.Capacity, 150*x.Rate/x.Capacity)
	} else {
		fmt.Fprintf(b, "  capacity     not known: -workers tells it, or load does; it is taken for plenty\n")
	}
	if c := &x.Correlation; c.Known {
		word := "by chance"
		if c.Correlated {
			word = "together"
		}
		fmt.Fprintf(b, "  slow calls   %s: of the calls one hedge delay after a slow one, %.1f %% are slow too (5 %% by chance, ± %.1f; autocorrelation %.2f)\n",
			word, 100*c.Together, 100*c.Error, c.Autocorrelation)
	} else {
		fmt.Fprintf(b, "  slow calls   not known whether they come together: that takes an order in time\n")
	}
	for _, n := range x.Notes {
		fmt.Fprintf(b, "  note         %s\n", n)
	}
}

// printSteps prints the steps of the load that were over.
func printSteps(b *strings.Builder, steps []sizing.Step) {
	if len(steps) == 0 {
		return
	}
	b.WriteString("\n\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "calls/s\tseconds\tanswered/s\tp50 ms\tp99 ms\tfailed\tof\t\n")
	for _, s := range steps {
		p50, p99 := "–", "–"
		if s.Failed < s.Calls {
			p50, p99 = fmt.Sprintf("%.4g", s.P50), fmt.Sprintf("%.4g", s.P99)
		}
		fmt.Fprintf(t, "%.4g\t%.1f\t%.4g\t%s\t%s\t%d\t%d\t%s\n", s.Rate, s.Seconds, s.Answered, p50, p99, s.Failed, s.Calls, spaced(sizing.TellCauses(s.Causes)))
	}
	_ = t.Flush() // a Builder does not fail
}

// spaced puts two spaces before a text that ends a row.
func spaced(text string) string {
	if text == "" {
		return ""
	}
	return "  " + text
}

func printLimit(b *strings.Builder, l *sizing.Limit) {
	if !l.Found {
		fmt.Fprintf(b, "\nLimit: %d to start with, by Little's law at 1.5 × the load, since the capacity is not known\n", l.Limit)
		return
	}
	fmt.Fprintf(b, "\nLimit: %d, the smallest with 99 %% of the answers at 1.5 × the capacity\n\n", l.Limit)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "limit\tanswers %%\tp50 ms\tp99 ms\tfailed %%\t\n")
	for _, r := range l.Rows {
		fmt.Fprintf(t, "%d\t%.1f\t%.1f\t%.1f\t%.2f\t\n", r.Limit, r.GoodPercent, r.P50, r.P99, r.FailedPercent)
	}
	_ = t.Flush() // a Builder does not fail
}

// effectsRow is a set-up at both loads.
type effectsRow struct {
	name string
	sizing.Effects
	note string
}

func printEffects(b *strings.Builder, title string, rows []effectsRow) {
	fmt.Fprintf(b, "\n%s\n\n", title)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	names := 0
	for _, r := range rows {
		names = max(names, len(r.name))
	}
	// As in writeTable: cells of one width look as if they were on the left.
	fmt.Fprintf(t, "%-*s\tnow: p50 ms\tp99 ms\textra %%\tfailed %%\tat 1.5 ×: p50 ms\tp99 ms\textra %%\tfailed %%\t\n", names, "")
	for _, r := range rows {
		fmt.Fprintf(t, "%-*s\t", names, r.name)
		for _, e := range []*sizing.Effect{&r.Present, &r.Heavier} {
			fmt.Fprintf(t, "%.1f\t%.1f\t%.1f\t%.2f\t", e.P50, e.P99, e.ExtraPercent, e.FailedPercent)
		}
		fmt.Fprintf(t, "%s\n", r.note)
	}
	_ = t.Flush() // a Builder does not fail
}

func printHedges(b *strings.Builder, rec *sizing.Recommendation) {
	h := rec.Hedging
	rows := []effectsRow{{"no hedging", h.None, ""}}
	for i := range h.Rows {
		x := &h.Rows[i]
		name := fmt.Sprintf("p%g, budget %g %%", 100*x.Quantile, 100*x.Ratio)
		if x.GRPC {
			name = fmt.Sprintf("gRPC policy, %.4g ms", x.DelayMS)
		}
		note := ""
		switch {
		case h.Chosen != nil && *x == *h.Chosen || h.GRPC != nil && *x == *h.GRPC:
			note = "  chosen"
		case !x.Harmless:
			note = "  does harm"
		}
		rows = append(rows, effectsRow{name, x.Effects, note})
	}
	printEffects(b, "Hedging, behind the same", rows)
	if rec.Complete() {
		printEffects(b, "As recommended, behind the limit that moves", []effectsRow{
			{"no hedging", *rec.Unhedged, ""}, {"as recommended", *rec.AsRecommended, ""},
		})
	}
	if h.Recommended {
		fmt.Fprintf(b, "\nHedging helps: p99 is %.0f %% lower now\n", h.Chosen.GainPercent)
	} else {
		fmt.Fprintf(b, "\nHedging will not help\n")
	}
	for _, reason := range h.Reasons {
		fmt.Fprintf(b, "  - %s\n", reason)
	}
}

// printText prints what is to be pasted.
func (r *sizeReport) printText(w io.Writer) error {
	if r.GoText == "" {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n--- Go: limiter.Config and hedgedlimit.Config ---\n\n%s\n--- gRPC service config, for grpcmw.ParseServiceConfig ---\n\n%s\n", r.GoText, r.ServiceConfigText)
	for _, line := range r.ServiceConfigEvidence {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printCases prints the cases, and returns whether the targets were met.
func (r *sizeReport) printCases(w io.Writer) (met bool, err error) {
	limits, within, hedging, right := 0, 0, 0, 0
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	names := 0
	for i := range r.Cases {
		names = max(names, len(r.Cases[i].Name))
	}
	fmt.Fprintf(t, "%-*s\tworkers\tfound\tbest limit\trecommended\toff %%\thedging\t\n", names, "case")
	for i := range r.Cases {
		x := &r.Cases[i]
		word := ""
		if x.HedgingWanted == nil {
			limits++
			if x.LimitMet {
				within++
			}
		} else {
			hedging++
			word = "refused"
			if *x.Hedging {
				word = "recommended"
			}
			if x.HedgingMet() {
				right++
			} else {
				word += ", wrongly"
			}
		}
		fmt.Fprintf(t, "%-*s\t%d\t%d\t%d\t%d\t%+.1f\t%s\t\n", names, x.Name, x.Workers, x.Found, x.Best, x.Recommended, x.OffPercent, word)
	}
	_ = t.Flush() // a Builder does not fail
	fmt.Fprintf(&b, "\n%d of %d limits within 15 %% of the best, hedging right in %d of %d\n", within, limits, right, hedging)
	for i := range r.Cases {
		for _, reason := range r.Cases[i].Reasons {
			fmt.Fprintf(&b, "  %s: %s\n", r.Cases[i].Name, reason)
		}
	}
	_, err = io.WriteString(w, b.String())
	// One of ten may be off.
	return 10*within >= 9*limits && right == hedging, err
}
