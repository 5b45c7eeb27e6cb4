package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
)

// printMatches prints a table for each scenario that has anything to show.
func printMatches(w io.Writer, seeds []uint64, matches []arena.Match) error {
	var b strings.Builder
	for len(matches) > 0 {
		n := 1
		for n < len(matches) && matches[n].Scenario == matches[0].Scenario {
			n++
		}
		if err := printScenario(&b, seeds, matches[:n]); err != nil {
			return err
		}
		matches = matches[n:]
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printScenario prints the matches of one scenario: a row for each limit and phase.
func printScenario(w io.Writer, seeds []uint64, matches []arena.Match) error {
	s := matches[0].Scenario
	matches = slices.DeleteFunc(slices.Clone(matches), func(m arena.Match) bool { return len(m.Finished()) == 0 })
	if len(matches) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s %s", s.ID, s.Name)
	if len(s.Phases) == 1 {
		fmt.Fprintf(w, ": %s\n\n", &s.Phases[0])
	} else {
		fmt.Fprintln(w)
		for i := range s.Phases {
			fmt.Fprintf(w, "  %s: %s\n", s.Phases[i].Name, &s.Phases[i])
		}
		fmt.Fprintln(w)
	}
	names, phases := len("limit"), len("phase")
	for _, m := range matches {
		names = max(names, utf8.RuneCountInString(m.Maker.Name)+len(unfinished(&m, seeds)))
	}
	for i := range s.Phases {
		phases = max(phases, utf8.RuneCountInString(s.Phases[i].Name))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// As in writeTable: cells of one width look as if they were on the left.
	fmt.Fprintf(t, "%-*s\t%-*s\tgood %% min\tmedian\trejected\tp50 ms\tp99\tp99 worst\ts to 90 %%\tlimit\tlast\t", names, "limit", phases, "phase")
	if s.Clients > 1 {
		fmt.Fprint(t, "Jain\t")
	}
	fmt.Fprintln(t, "  target, worst seed")
	for i := range matches {
		m := &matches[i]
		judgements := m.Judge()
		for p := range s.Phases {
			fmt.Fprintf(t, "%-*s\t%-*s\t", names, pick(p == 0, m.Maker.Name+unfinished(m, seeds), ""), phases, s.Phases[p].Name)
			for _, cell := range cells(m, p) {
				fmt.Fprintf(t, "%s\t", cell)
			}
			var words []string
			for _, j := range judgements {
				if j.Target.Phase == p {
					words = append(words, judged(j))
				}
			}
			fmt.Fprintln(t, strings.TrimRight("  "+strings.Join(words, "; "), " "))
		}
	}
	return t.Flush() // which also tells of the errors before
}

// unfinished tells how many seeds of a match there are, if not all.
func unfinished(m *arena.Match, seeds []uint64) string {
	if n := len(m.Finished()); n < len(seeds) {
		return fmt.Sprintf(" (%d of %d seeds)", n, len(seeds))
	}
	return ""
}

// cells are the figures of a row: medians over the seeds unless the head says more.
func cells(m *arena.Match, phase int) []string {
	seeds := m.Finished()
	worst := func(metric arena.Metric, atLeast bool) float64 {
		return arena.Target{Metric: metric, AtLeast: atLeast, Phase: phase}.Worst(seeds)
	}
	mean := 0.0
	for _, f := range seeds {
		mean += f.Phases[phase].LimitMean / float64(len(seeds))
	}
	ideal := seeds[0].Phases[phase].Ideal > 0
	c := []string{
		optional(ideal, fmt.Sprintf("%.2f", worst(arena.GoodPercent, true))),
		optional(ideal, fmt.Sprintf("%.2f", m.Median(arena.GoodPercent, phase))),
		fmt.Sprintf("%.2f %%", m.Median(arena.RejectedPercent, phase)),
		ms(m.Median(arena.P50, phase)), ms(m.Median(arena.P99, phase)), ms(worst(arena.P99, false)),
		optional(ideal, sooner(worst(arena.SecondsTo90, false))),
		fmt.Sprintf("%.1f", mean), strconv.Itoa(int(m.Median(arena.LimitLast, phase))),
	}
	if m.Scenario.Clients > 1 {
		c = append(c, fmt.Sprintf("%.3f", m.Median(arena.Jain, phase)))
	}
	return c
}

// sooner is a time in seconds that may never have come.
func sooner(seconds float64) string {
	return pick(math.IsInf(seconds, 0), "never", fmt.Sprintf("%.1f", seconds))
}

// judged says a target, what it came to, and whether that meets it.
func judged(j arena.Judgement) string {
	return fmt.Sprintf("%s: %s %s", j.Target, figure(j), pick(j.Stretched, "met [met]", pick(j.Met, "met", "MISSED")))
}

// figure is what a target came to.
func figure(j arena.Judgement) string {
	switch {
	case math.IsInf(j.Worst, 0):
		return "never"
	case j.Target.Metric == arena.Jain:
		return fmt.Sprintf("%.3f", j.Worst)
	}
	return fmt.Sprintf("%.2f", j.Worst)
}

// printVerdict prints what the run comes to.
func (r *simReport) printVerdict(w io.Writer) error {
	if len(r.Scales) == 0 {
		return nil
	}
	v := r.Scales[0].Verdict
	var b strings.Builder
	fmt.Fprintf(&b, "\nseeds %d to %d; %.0f s on %s %s/%s, %d CPUs; %s\n", r.Seeds[0], r.Seeds[len(r.Seeds)-1], r.ElapsedSeconds, r.Go, r.OS, r.Arch, r.CPUs, r.Scales[0].Scale)
	if v.Targets > 0 {
		fmt.Fprintf(&b, "targets of %s, on the worst seed: %d of %d met%s\n", arena.OurName, v.Met, v.Targets, pick(v.Complete, "", "; there are seeds that were not finished"))
	}
	for _, m := range v.Missed {
		fmt.Fprintf(&b, "missed: %s\n", m)
	}
	for _, a := range v.Ahead {
		fmt.Fprintf(&b, "ahead in goodput and latency: %s\n", a)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printScales prints goodput under each scale: the least and the median of the seeds.
func printScales(w io.Writer, r *simReport) error {
	if len(r.Scales) == 0 || len(r.Scales[0].Scenarios) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\ngood %%, least and median of %d seeds\n\n", len(r.Seeds))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "scenario\tlimit")
	for _, s := range r.Scales {
		fmt.Fprintf(t, "\t%s", s.Scale)
	}
	fmt.Fprintln(t)
	for i, scenario := range r.Scales[0].Scenarios {
		for j, limit := range scenario.Limits {
			for p, phase := range scenario.Phases {
				name, _, _ := strings.Cut(phase, ":")
				fmt.Fprintf(t, "%s %s\t%s", scenario.ID, name, limit.Name)
				for k := range r.Scales {
					fmt.Fprintf(t, "\t%s", leastAndMedian(r.Scales[k].Scenarios[i].Limits[j].Runs, p))
				}
				fmt.Fprintln(t)
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// leastAndMedian are those of the goodput of a phase.
func leastAndMedian(runs []simRun, phase int) string {
	var x []float64
	for _, r := range runs {
		if r.Phases[phase].Ideal > 0 {
			x = append(x, r.Phases[phase].GoodPercent)
		}
	}
	if len(x) == 0 {
		return "–"
	}
	slices.Sort(x)
	return fmt.Sprintf("%.1f / %.1f", x[0], x[len(x)/2])
}
