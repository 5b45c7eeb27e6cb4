package storm

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// rowsByName runs all rows with the defaults, once for all tests.
func rowsByName(t *testing.T) map[string]*Figures {
	t.Helper()
	s := &Sweep{Rows: Rows(Defaults()), Parallel: 2}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, share := s.Progress(); n != len(s.Rows) || share != 1 {
		t.Errorf("%d rows and %v of the ticks are over, want %d and all", n, share, len(s.Rows))
	}
	byName := map[string]*Figures{}
	for i, f := range s.Figures {
		r := &s.Rows[i]
		byName[r.Name] = f
		for _, j := range r.Judge(f) {
			if !j.Met {
				t.Errorf("%s: %s: %s", r.Name, j.What, j.Value)
			}
		}
		sent := f.Attempts
		if r.Limit == AtClient {
			sent -= f.Refused
		}
		if f.Came != sent || f.Answered+f.Wasted != f.Served || f.Answered+f.Failed > f.Calls {
			t.Errorf("%s: the counts do not add up: %d attempts, %d came, %d refused; %d served, %d answered, %d wasted; %d calls, %d failed",
				r.Name, f.Attempts, f.Came, f.Refused, f.Served, f.Answered, f.Wasted, f.Calls, f.Failed)
		}
	}
	return byName
}

func TestRows(t *testing.T) {
	f := rowsByName(t)

	// What the model must give exactly. -1 is never, and a peak of 0 is not known.
	for _, known := range []struct {
		row       string
		recovered int
		peak      float64
		queue     int
		wasted    string
	}{
		{"no retries", 66, 1, 2100, "2.6"},
		{"retries", -1, 27, 6290460, "98.8"},
		{"budget", 95, 1.1, 2296, "3.7"},
		{"high budget", 149, 0, 0, ""},
		{"high load", 2847, 0, 0, ""},
		{"blip", -1, 0, 0, ""},
	} {
		x := f[known.row]
		recovered := -1
		if x.Recovered != nil {
			recovered = *x.Recovered
		}
		if recovered != known.recovered {
			t.Errorf("%s: recovered after %d s, want %d", known.row, recovered, known.recovered)
		}
		if known.peak != 0 && (x.Peak != known.peak || x.PeakQueue != known.queue || fmt.Sprintf("%.1f", x.WastedPercent) != known.wasted) {
			t.Errorf("%s: %v ×, %d, %.1f %%, want %v", known.row, x.Peak, x.PeakQueue, x.WastedPercent, known)
		}
	}

	t.Run("a limit in front keeps the queue of the server within a time-out", func(t *testing.T) {
		for _, name := range []string{"limit", "limit + budget", "limit + budgets", "server limit", "header"} {
			if x := f[name]; x.PeakQueue > 100 || x.Refused == 0 {
				t.Errorf("%s: a queue of %d with %d refused", name, x.PeakQueue, x.Refused)
			}
		}
	})
	t.Run("the header keeps retries out of the way of calls", func(t *testing.T) {
		if with, without := f["header"].FirstTryPercent, f["server limit"].FirstTryPercent; with < markedFirstTry || without > 50 {
			t.Errorf("%.1f %% of the calls were answered at once, and %.1f %% without", with, without)
		}
	})
	t.Run("a budget for each layer multiplies by 1.1 thrice", func(t *testing.T) {
		x := f["budgets"]
		// The accounts hold what is not a whole retry for the next second.
		if most := 1.331*float64(x.Calls) + 27; float64(x.Attempts) > most || x.PeakOfTen < 1.3 {
			t.Errorf("%d attempts for %d calls, and %.3f × in ten seconds", x.Attempts, x.Calls, x.PeakOfTen)
		}
	})
	t.Run("a short queue ends no storm by itself", func(t *testing.T) {
		if x := f["short queue"]; x.PeakQueue != 500 || x.Recovered != nil || x.Refused == 0 {
			t.Errorf("%v", x)
		}
		if x := f["short queue + budget"]; x.PeakQueue != 500 || x.Recovered == nil || *x.Recovered >= *f["budget"].Recovered {
			t.Errorf("%v", x)
		}
	})
	t.Run("a back-off lowers the peak and not the count of attempts", func(t *testing.T) {
		with, without := f["herd + back-off"], f["herd"]
		if with.Peak > without.Peak/2 || with.Attempts != without.Attempts || with.Attempts != 27*2100 {
			t.Errorf("peak %.1f × of %d attempts, and %.1f × of %d without", with.Peak, with.Attempts, without.Peak, without.Attempts)
		}
		if x := f["back-off"]; x.Most != 27 || x.Recovered != nil {
			t.Errorf("%v with at most %d attempts for a call", x, x.Most)
		}
	})
	t.Run("five layers of three tries make 243 attempts", func(t *testing.T) {
		if x := f["deep"]; x.Most != 243 || x.Peak != 243 || x.Recovered != nil {
			t.Errorf("%v with at most %d attempts for a call", x, x.Most)
		}
	})
}

// What was over at the end, but for too short a time to tell, is told apart from what was not.
func TestNotTold(t *testing.T) {
	seven := 7
	for _, tt := range []struct {
		f    Figures
		want string
	}{
		{Figures{}, "never never"},
		{Figures{Healthy: 59, Unfailing: 1}, "not told not told"},
		{Figures{Healthy: 60, Unfailing: 60, Recovered: &seven, Failing: new(int)}, "after 7 s after 0 s"},
	} {
		if got := tt.f.Recovery() + " " + tt.f.LastFailure(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.f, got, tt.want)
		}
	}
}

// A server that is overloaded for good may have a short queue in the last seconds of a run, as here
// behind a limit: that is not the end of the trouble.
func TestOverloadIsNotOverAtTheEnd(t *testing.T) {
	s := Defaults()
	s.Load, s.Capacity, s.Length = 20, 1, 600
	rows := slices.DeleteFunc(Rows(s), func(r Row) bool { return r.Limit != AtClient })
	sweep := &Sweep{Rows: rows, Parallel: 2}
	if err := sweep.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	short := 0
	for i, f := range sweep.Figures {
		if f.Recovered != nil || f.Failing != nil {
			t.Errorf("%s: recovered %s, last failure %s, with %d of %d calls failed", rows[i].Name, f.Recovery(), f.LastFailure(), f.Failed, f.Calls)
		}
		if f.Healthy > 0 {
			short++
		}
	}
	if short == 0 {
		t.Error("no row has a short queue at its end")
	}
}

// What is counted beforehand is not less than what is then looked at.
func TestOneByOneBoundsTheWork(t *testing.T) {
	for _, load := range []int{70, 300} {
		s := Defaults()
		s.Load, s.HighLoad, s.Length = load, load, 300
		sweep := &Sweep{Rows: Rows(s), Parallel: 2}
		if err := sweep.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, f := range sweep.Figures {
			r := &sweep.Rows[i]
			bound := r.oneByOne()
			if bound == 0 {
				if r.detailed() {
					t.Errorf("%s: no bound", r.Name)
				}
				continue
			}
			// A full budget is a second's worth.
			if most := bound + float64(len(r.Layers)*r.Load); float64(f.Attempts) > most {
				t.Errorf("%s: %d attempts, and at most %.0f were expected", r.Name, f.Attempts, most)
			}
		}
	}
}

// A row is the same on every run, whatever runs beside it.
func TestRowsAreTheSameOnEveryRun(t *testing.T) {
	s := Defaults()
	s.Length = 300
	var runs [2][]*Figures
	for i, parallel := range []int{1, 4} {
		sweep := &Sweep{Rows: Rows(s), Parallel: parallel}
		if err := sweep.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		runs[i] = sweep.Figures
	}
	if !reflect.DeepEqual(runs[0], runs[1]) {
		t.Error("two runs differ")
	}
}

// A sweep that is stopped keeps what is over.
func TestSweepStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Sweep{Rows: Rows(Defaults()), Parallel: 1}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) || len(s.Figures) != len(s.Rows) {
		t.Errorf("%v, with room for %d rows of %d", err, len(s.Figures), len(s.Rows))
	}
}

// There are targets for the defaults alone, and each can be missed.
func TestJudge(t *testing.T) {
	changed := Defaults()
	changed.MaxQueue++
	for _, r := range Rows(changed) {
		if n := len(r.Judge(&Figures{})); n > 0 {
			t.Errorf("%s: %d targets", r.Name, n)
		}
	}
	ten, eleven := 10, 11
	good := Figures{Recovered: &ten, Answering: &ten, FirstTryPercent: 90, Peak: 1.1, PeakOfTen: 1.334, PeakQueue: 1234, WastedPercent: 3.74}
	row := Row{Known: "after 10 s, 1.1 ×, 1,234, 3.7 %", Within: 10, FirstTry: 90, PeakOfTen: 1.33}
	for _, tt := range []struct {
		name   string
		change func(*Figures)
		missed int
	}{
		{"good", func(*Figures) {}, 0},
		{"recovered late", func(f *Figures) { f.Recovered = &eleven }, 2},
		{"never recovered", func(f *Figures) { f.Recovered = nil }, 2},
		{"answers late", func(f *Figures) { f.Answering = &eleven }, 1},
		{"never answers", func(f *Figures) { f.Answering = nil }, 1},
		{"first tries", func(f *Figures) { f.FirstTryPercent = 89.9 }, 1},
		{"peak", func(f *Figures) { f.PeakOfTen = 1.336 }, 1},
		{"another queue", func(f *Figures) { f.PeakQueue++ }, 1},
		{"more waste", func(f *Figures) { f.WastedPercent = 3.76 }, 1},
	} {
		f := good
		tt.change(&f)
		missed := 0
		for _, j := range row.Judge(&f) {
			if !j.Met {
				missed++
			}
		}
		if missed != tt.missed {
			t.Errorf("%s: %d targets missed, want %d: %+v", tt.name, missed, tt.missed, row.Judge(&f))
		}
	}
	// The beginning of what came of a row is not the beginning of a number in it.
	if r := (Row{Known: "after 10 s, 1.1 ×, 1"}); r.Judge(&good)[0].Met {
		t.Error("1 is taken for the beginning of 1,234")
	}
}

// What is worked out of the seconds, where the time-out is two of them.
func TestFigures(t *testing.T) {
	c := &Case{Capacity: 5, Load: 4, Timeout: 2, Start: 2, Outage: 3, Calls: 100, Length: 100}
	three, four, six := 3, 4, 6
	late, later := 32, 35
	for _, tt := range []struct {
		name                          string
		queue, good                   map[int]int // by second
		lastFailure                   int
		recovered, answering, failing *int
	}{
		{"a queue that fits into a time-out is none", map[int]int{8: 10, 7: 11}, map[int]int{1: 4, 7: 3, 9: 4, 10: 3}, 11, &three, &four, &six},
		{"a queue that comes back counts until the last second", map[int]int{6: 11, 8: 9, 10: 11}, map[int]int{8: 5}, 9, &six, &three, &four},
		{"what lasts until the end is never over", map[int]int{99: 11}, nil, 97, nil, nil, nil},
		{"a minute without it is long enough to tell", map[int]int{39: 11}, nil, 37, &later, nil, &late},
		{"less than a minute is not", map[int]int{40: 11}, nil, 38, nil, nil, nil},
		{"what was over before the outage ended is over at once", map[int]int{4: 11}, map[int]int{5: 4}, 3, new(int), new(int), new(int)},
	} {
		f := newFigures(c)
		for tick, n := range tt.queue {
			f.Queue[tick] = n
		}
		for tick, n := range tt.good {
			f.Good[tick] = n
		}
		f.lastFailure = tt.lastFailure
		f.Rate[3], f.Rate[12], f.Rate[13] = 40, 44, 36
		f.finish(c)
		if !reflect.DeepEqual([]*int{f.Recovered, f.Answering, f.Failing}, []*int{tt.recovered, tt.answering, tt.failing}) {
			t.Errorf("%s: recovered %s, answers %s, last failure %s", tt.name, After(f.Recovered), After(f.Answering), After(f.Failing))
		}
		if f.Peak != 11 || f.PeakOfTen != 2.1 {
			t.Errorf("%s: peaks of %v and %v", tt.name, f.Peak, f.PeakOfTen)
		}
	}
}
