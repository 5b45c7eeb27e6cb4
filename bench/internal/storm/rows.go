package storm

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Row is a case and what should come of it.
type Row struct {
	Case
	// Known is what the row has been known to give, as the beginning of Figures.String.
	// It is empty where nothing is known.
	Known string
	// Within is how many seconds after the outage the server should have recovered and answer
	// as many calls as come; FirstTry is the least that Figures.FirstTryPercent should be,
	// and PeakOfTen the most that Figures.PeakOfTen should be, to a hundredth. 0 is no
	// target.
	Within    int
	FirstTry  float64
	PeakOfTen float64
}

// Judgement is what became of a target.
type Judgement struct {
	What  string
	Value string
	Met   bool
}

// highLoad is the row with a load of its own.
const highLoad = "high load"

const (
	// within is what seconds, not minutes, are.
	within = 10
	// firstTry is what a call can count on once retries are kept out of its way.
	firstTry = 90
	// markedFirstTry is what it can count on at a server that knows retries by their header.
	// It is less: where the limit is 1 after the outage, whoever finds nothing in flight comes
	// in, a retry too.
	markedFirstTry = 70
)

// Rows returns all rows. They have targets if the settings are Defaults.
func Rows(s Settings) []Row {
	base := Case{
		Capacity: s.Capacity, Load: s.Load, Timeout: s.Timeout, Start: s.Start, Outage: s.Outage,
		Calls: s.Length, Length: s.Length, Layers: []Layer{{Tries: 1}}, Marked: s.Marked,
	}
	n := attempts(s.Layers, s.Tries)
	layers := func(n int, budget float64) []Layer {
		return slices.Repeat([]Layer{{Tries: s.Tries, Budget: budget}}, n)
	}
	// One budget for all attempts of a call is one layer of them.
	shared := func(budget float64) []Layer { return []Layer{{Tries: n, Budget: budget}} }
	percent := func(x float64) string { return fmt.Sprintf("%.4g %%", 100*x) }

	budgeted := func(x float64) string { return fmt.Sprintf("%d attempts, with one budget of %s", n, percent(x)) }
	each := fmt.Sprintf("%d layers of %d tries, each with a budget of %s", s.Layers, s.Tries, percent(s.Budget))

	var rows []Row
	add := func(name, about string, change func(*Row)) {
		r := Row{Case: base}
		r.Name, r.About = name, about
		change(&r)
		rows = append(rows, r)
	}
	add("no retries", "a call is one attempt", func(r *Row) { r.Known = "after 66 s, 1.0 ×, 2,100, 2.6 %" })
	add("retries", fmt.Sprintf("%d layers of %d tries: %d attempts", s.Layers, s.Tries, n), func(r *Row) {
		r.Layers = layers(s.Layers, 0)
		r.Known = "never, 27.0 ×, 6,290,460, 98.8 %"
	})
	add("budget", budgeted(s.Budget), func(r *Row) {
		r.Layers = shared(s.Budget)
		r.Known = "after 95 s, 1.1 ×, 2,296, 3.7 %"
	})
	add("high budget", budgeted(s.HighBudget), func(r *Row) {
		r.Layers = shared(s.HighBudget)
		r.Known = "after 149 s"
	})
	add(highLoad, fmt.Sprintf("%d calls a second, %s", s.HighLoad, budgeted(s.Budget)), func(r *Row) {
		r.Layers, r.Load = shared(s.Budget), s.HighLoad
		r.Known = "after 2,847 s"
	})
	add("blip", fmt.Sprintf("%d attempts without a budget, after an outage of %d s", n, s.Blip), func(r *Row) {
		r.Layers, r.Outage = layers(s.Layers, 0), s.Blip
		r.Known = "never"
	})

	add("limit", fmt.Sprintf("%d attempts, and a limiter in front of the server", n), func(r *Row) {
		r.Layers, r.Limit, r.Within = layers(s.Layers, 0), AtClient, within
	})
	add("limit + budget", budgeted(s.Budget)+", and a limiter in front of the server", func(r *Row) {
		r.Layers, r.Limit, r.Within, r.FirstTry = shared(s.Budget), AtClient, within, firstTry
	})
	add("budgets", each, func(r *Row) {
		r.Layers, r.PeakOfTen = layers(s.Layers, s.Budget), 1.33
	})
	add("limit + budgets", each+", and a limiter in front of the server", func(r *Row) {
		r.Layers, r.Limit, r.PeakOfTen, r.Within, r.FirstTry = layers(s.Layers, s.Budget), AtClient, 1.33, within, firstTry
	})
	add("server limit", fmt.Sprintf("%d attempts, and a limiter in the server", n), func(r *Row) {
		r.Layers, r.Limit, r.Within = layers(s.Layers, 0), AtServer, within
	})
	add("header", fmt.Sprintf("%d attempts, and a limiter in the server that obeys the attempt header: a retry leaves the reserve free, and from half of the permits on they are at most %s of what comes", n, percent(s.Marked)), func(r *Row) {
		r.Layers, r.Limit, r.Within, r.FirstTry = layers(s.Layers, 0), AtServerMarked, within, markedFirstTry
	})

	add("short queue", fmt.Sprintf("%d attempts, and a queue that holds %d", n, s.MaxQueue), func(r *Row) {
		r.Layers, r.MaxQueue = layers(s.Layers, 0), s.MaxQueue
	})
	add("short queue + budget", fmt.Sprintf("%s, and a queue that holds %d", budgeted(s.Budget), s.MaxQueue), func(r *Row) {
		r.Layers, r.MaxQueue = shared(s.Budget), s.MaxQueue
	})
	backoff := fmt.Sprintf("a back-off of any part of %d s, × %d, at most %d s", s.Backoff.Initial, s.Backoff.Multiplier, s.Backoff.Max)
	add("back-off", fmt.Sprintf("%d attempts, with %s", n, backoff), func(r *Row) {
		r.Layers, r.Backoff = layers(s.Layers, 0), &s.Backoff
	})
	called := fmt.Sprintf("calls for %d s to a server that is gone, %d attempts", s.Herd, n)
	herd := func(r *Row) {
		r.Layers, r.Start, r.Outage, r.Calls = layers(s.Layers, 0), 0, s.Length, s.Herd
	}
	add("herd", called, herd)
	add("herd + back-off", called+", with "+backoff, func(r *Row) {
		herd(r)
		r.Backoff = &s.Backoff
	})
	add("deep", fmt.Sprintf("%d layers of %d tries: %d attempts", s.DeepLayers, s.Tries, attempts(s.DeepLayers, s.Tries)), func(r *Row) {
		r.Layers = layers(s.DeepLayers, 0)
	})

	if s != Defaults() {
		for i := range rows {
			rows[i].Known, rows[i].Within, rows[i].FirstTry, rows[i].PeakOfTen = "", 0, 0, 0
		}
	}
	return rows
}

// Judge returns what became of the targets of the row.
func (r *Row) Judge(f *Figures) []Judgement {
	var all []Judgement
	if r.Known != "" {
		met := strings.HasPrefix(f.String()+", ", r.Known+", ")
		all = append(all, Judgement{What: "as known: " + r.Known, Value: f.String(), Met: met})
	}
	if r.Within > 0 {
		met := f.Recovered != nil && *f.Recovered <= r.Within && f.Answering != nil && *f.Answering <= r.Within
		value := "recovered " + f.Recovery() + ", answers " + After(f.Answering)
		all = append(all, Judgement{What: fmt.Sprintf("recovered and answers within %d s", r.Within), Value: value, Met: met})
	}
	if r.FirstTry > 0 {
		what := fmt.Sprintf("answered by the first try ≥ %v %%", r.FirstTry)
		all = append(all, Judgement{What: what, Value: fmt.Sprintf("%.1f %%", f.FirstTryPercent), Met: f.FirstTryPercent >= r.FirstTry})
	}
	if r.PeakOfTen > 0 {
		met := math.Round(100*f.PeakOfTen) <= math.Round(100*r.PeakOfTen)
		all = append(all, Judgement{What: fmt.Sprintf("peak of ten seconds ≤ %.2f ×", r.PeakOfTen), Value: fmt.Sprintf("%.2f ×", f.PeakOfTen), Met: met})
	}
	return all
}
