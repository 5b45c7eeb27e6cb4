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
			title := "Without hedging, behind that limit as a fixed one"
			if !rec.Limit.Found {
				title = "Without hedging, behind a limit that moves"
			}
			printEffects(&b, title, []effectsRow{
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
	x.printCorrelation(b)
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

func (x *sizeInput) printCorrelation(b *strings.Builder) {
	c := &x.Correlation
	if !c.Known {
		fmt.Fprintf(b, "  slow calls   not known whether they come together: that takes times, or the order in time and -rate\n")
		return
	}
	word := "together, though too few to be in the way of hedging"
	switch {
	case c.Correlated:
		word = "together"
	case c.ByChance():
		word = fmt.Sprintf("by chance, as far as %d of them tell", c.Slow)
	}
	fmt.Fprintf(b, "  slow calls   %s: of the calls one hedge delay after a slow one, %.1f %% are slow too; by chance it is 5 %%, and up to %.1f %% in so few\n",
		word, 100*c.Together, 100*c.MostByChance())
}

func printLimit(b *strings.Builder, l *sizing.Limit) {
	if !l.Found {
		if l.Limit > l.InFlight {
			fmt.Fprintf(b, "\nLimit: %d to start with, which is the least: the capacity is not known, and 1.5 × the load holds no more than %d in flight by Little's law\n", l.Limit, l.InFlight)
		} else {
			fmt.Fprintf(b, "\nLimit: %d to start with, by Little's law at 1.5 × the load, since the capacity is not known\n", l.Limit)
		}
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
			fmt.Fprintf(t, "%.1f\t%s\t%.1f\t%.2f\t", e.P50, ofSeeds(e), e.ExtraPercent, e.FailedPercent)
		}
		fmt.Fprintf(t, "%s\n", r.note)
	}
	_ = t.Flush() // a Builder does not fail
}

// disagree is by which factor the p99 of seeds may differ before both are printed.
const disagree = 1.25

// ofSeeds is the p99, and its least and most if seeds disagree.
func ofSeeds(e *sizing.Effect) string {
	if e.HighP99 > disagree*e.LowP99 {
		return fmt.Sprintf("%.1f (%.1f–%.1f)", e.EqualP99, e.LowP99, e.HighP99)
	}
	return fmt.Sprintf("%.1f", e.EqualP99)
}

func printHedges(b *strings.Builder, rec *sizing.Recommendation) {
	h := rec.Hedging
	rows := []effectsRow{{"no hedging", h.None, ""}}
	for i := range h.Rows {
		x := &h.Rows[i]
		rows = append(rows, effectsRow{x.Name(), x.Effects, rowNote(h, x)})
	}
	printEffects(b, "Hedging, behind the same. As many calls are within a p99 as without hedging, so that refused ones do not make it lower", rows)
	if rec.Complete() {
		rows := []effectsRow{{"no hedging", *rec.Unhedged, ""}}
		if h.Chosen != nil {
			rows = append(rows, effectsRow{"Go: " + h.Chosen.Name(), *rec.AsRecommended, ""})
		}
		if h.GRPC != nil {
			rows = append(rows, effectsRow{h.GRPC.Name(), *rec.ServiceConfig, ""})
		}
		printEffects(b, "As recommended, behind the limit that moves", rows)
		printVerdict(b, rec)
	}
	for _, reason := range h.Reasons {
		fmt.Fprintf(b, "  - %s\n", reason)
	}
}

// rowNote is what is said of a row at its end.
func rowNote(h *sizing.Hedging, x *sizing.HedgeRow) string {
	switch {
	case x == h.Chosen || x == h.GRPC:
		return "  chosen"
	case !x.Harmless:
		return "  does harm"
	case x.NoRoom:
		return "  no room without gates"
	case x.Correlated:
		return "  slow together"
	case x.Dropped && x.AsPasted != nil:
		return "  not when the limit moves"
	case x.Present.HeldPercent > mostlyHeld:
		return fmt.Sprintf("  gates hold %.0f %% back", x.Present.HeldPercent)
	}
	return ""
}

// mostlyHeld is from which percentage on the gates are told to hold hedges back.
const mostlyHeld = 50

// printVerdict says of Go and of gRPC whether hedging helps.
func printVerdict(b *strings.Builder, rec *sizing.Recommendation) {
	h := rec.Hedging
	switch {
	case h.Recommended:
		fmt.Fprintf(b, "\nHedging helps\n")
	case h.TooFew:
		fmt.Fprintf(b, "\nWhether hedging helps is not known\n")
	default:
		fmt.Fprintf(b, "\nHedging will not help\n")
	}
	if !h.Recommended {
		return
	}
	one := func(who string, r *sizing.HedgeRow, e *sizing.Effects) {
		if r == nil {
			fmt.Fprintf(b, "  %s no hedging\n", who)
			return
		}
		fmt.Fprintf(b, "  %s %s: p99 is %.0f %% lower now, at %+.1f %% calls\n", who, r.Short(),
			100*(1-e.Present.EqualP99/rec.Unhedged.Present.EqualP99), e.Present.ExtraPercent)
	}
	one("Go:  ", h.Chosen, rec.AsRecommended)
	one("gRPC:", h.GRPC, rec.ServiceConfig)
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
