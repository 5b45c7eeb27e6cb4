package sizing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// steady is a dependency of 20 workers that take 10 ms, or a little more or less.
func steady() *Model { return &Model{Workers: 20, Service: lightTail, Seed: 1} }

func planFor(m *Model, most float64) Plan {
	p := Plan{Rate: 0.4 * m.Capacity(), MaxRate: most * m.Capacity(), Timeout: caseTimeout}
	p.Length = p.lengthFor(20000)
	return p
}

// A sweep finds the capacity and the workers, goes no further than it must, and learns the latency
// from where nothing queues.
func TestSweepFindsTheCapacity(t *testing.T) {
	m := steady()
	p := planFor(m, 4)
	var told []Step
	in, err := Sweep(t.Context(), "model", p, m.Attack(p.Timeout), func(s Step) { told = append(told, s) })
	if err != nil {
		t.Fatal(err)
	}
	near(t, "capacity", in.Capacity, m.Capacity(), 0.03)
	near(t, "mean", in.Latency.Mean(), m.Service.Mean(), 0.03)
	if in.Workers() != 20 || in.Kind != "model" || len(in.Notes) > 0 {
		t.Errorf("%d workers, kind %s, notes %q", in.Workers(), in.Kind, in.Notes)
	}
	if last := told[len(told)-1].Rate; last > stepFactor*1.1*m.Capacity() || len(told) != len(in.Steps) {
		t.Errorf("it went on to %.0f calls a second, of a capacity of %.0f", last, m.Capacity())
	}
}

// From a fourth of the present rate, never above the highest, as long as asked for, one step after
// the other; and what it kept up with is no capacity.
func TestSweepKeepsItsBounds(t *testing.T) {
	m := steady()
	p := planFor(m, 0.8)
	sum := time.Duration(0)
	attack := m.Attack(p.Timeout)
	in, err := Sweep(t.Context(), "model", p, func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error) {
		if rate > p.MaxRate {
			t.Errorf("%v calls a second, at most %v", rate, p.MaxRate)
		}
		sum += length
		return attack(ctx, rate, length)
	}, func(Step) {})
	if err != nil || in.Capacity != 0 || in.Workers() != 0 || !strings.Contains(strings.Join(in.Notes, ""), "it kept up with") {
		t.Fatalf("error %v, input %v", err, in != nil)
	}
	if sum > p.Length || sum < p.Length-time.Microsecond || in.Steps[len(in.Steps)-1].Rate != p.MaxRate {
		t.Errorf("%v of %v, up to %v of %v", sum, p.Length, in.Steps[len(in.Steps)-1].Rate, p.MaxRate)
	}
	var all []Sample
	for _, s := range in.Steps {
		all = append(all, s.samples...)
	}
	ordered := slices.IsSortedFunc(all, func(a, b Sample) int { return cmp.Compare(a.Start, b.Start) })
	if in.Steps[0].Rate != p.Rate/4 || !ordered {
		t.Errorf("the first step has %v calls a second, and the calls are in the order of time: %t", in.Steps[0].Rate, ordered)
	}
}

// Calls that time out in an overloaded step do not hide what was answered before.
func TestSweepWithTimeouts(t *testing.T) {
	m := &Model{Workers: 3, Service: logNormal{0.1, 0.2}, Seed: 1}
	p := planFor(m, 2)
	in, err := Sweep(t.Context(), "model", p, m.Attack(p.Timeout), func(Step) {})
	if err != nil {
		t.Fatal(err)
	}
	if last := in.Steps[len(in.Steps)-1]; last.Failed == 0 {
		t.Fatalf("nothing timed out: %+v", last)
	}
	near(t, "capacity", in.Capacity, m.Capacity(), 0.1)
}

// It ends where calls fail, and what was seen before counts.
func TestSweepEndsAtFailures(t *testing.T) {
	m := steady()
	p := planFor(m, 0.8)
	attack := m.Attack(p.Timeout)
	ouch := errors.New("ouch")
	refuse := func(s []Sample) ([]Sample, error) {
		for i := range s {
			if i%4 == 0 {
				s[i].Failed, s[i].Error = true, "no room"
			}
		}
		return s, nil
	}
	for _, tt := range []struct {
		name  string
		from  int // the step that goes wrong
		wrong func([]Sample) ([]Sample, error)
		err   string // none if it is empty
		known bool   // whether anything is
	}{
		{"refusals", 3, refuse, "", true},
		{"refusals at once", 1, refuse, "363 of 1452 calls (25 %) failed at 191.3 a second already, a fourth of the present rate (the first with: no room)", false},
		{"an error", 3, func(s []Sample) ([]Sample, error) { return s, ouch }, "ouch", true},
		{"an error at once", 1, func(s []Sample) ([]Sample, error) { return s, ouch }, "ouch", false},
	} {
		steps := 0
		in, err := Sweep(t.Context(), "model", p, func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error) {
			samples, err := attack(ctx, rate, length)
			if steps++; steps < tt.from {
				return samples, err
			}
			return tt.wrong(samples)
		}, func(Step) {})
		if steps != tt.from || (in != nil) != tt.known || (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%s: %d steps, anything known: %t, %v", tt.name, steps, in != nil, err)
			continue
		}
		if tt.err == "" {
			near(t, "capacity", in.Capacity, 0.75*in.Steps[2].Rate, 0.1)
			if !strings.Contains(strings.Join(in.Notes, ""), " failed (the first with: no room): that is taken for want of capacity") {
				t.Errorf("%s: notes %q", tt.name, in.Notes)
			}
		}
	}
}

// What fails at any rate is no want of capacity, be it more than may be missing: where the lowest
// rate has too few calls to tell, the sweep goes on, and a note says what was left out.
func TestSweepOfOneThatAlwaysFailsSome(t *testing.T) {
	m := steady()
	p := planFor(m, 4)
	p.Rate = 0.004 * m.Capacity() // at a fourth of which there are few calls
	p.Length = p.lengthFor(40000)
	attack := m.Attack(p.Timeout)
	n := 0
	in, err := Sweep(t.Context(), "model", p, func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error) {
		samples, err := attack(ctx, rate, length)
		for i := range samples {
			if n++; n%8 == 0 {
				samples[i].Failed, samples[i].Error = true, "out of order"
			}
		}
		return samples, err
	}, func(Step) {})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "capacity", in.Capacity, 7.0/8*m.Capacity(), 0.05)
	if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, "% of the calls failed (the first with: out of order) and are left out") || strings.Contains(notes, "want of capacity") {
		t.Errorf("notes %q", in.Notes)
	}
	if in.Steps[0].FirstError != "out of order" {
		t.Errorf("the first error of the first step is %q", in.Steps[0].FirstError)
	}
}

// What counts of a step is what is answered once its queues have filled, up to its end, or to the
// first call that timed out.
func TestStepCountsWhatIsSteady(t *testing.T) {
	// calls are n of them, from a number on, so many seconds apart; each takes longer than the last.
	calls := func(from, n int, apart, latency, slower float64) (samples []Sample) {
		for i := from; i < from+n; i++ {
			samples = append(samples, Sample{Start: seconds(float64(i) * apart), Latency: seconds(latency + float64(i)*slower)})
		}
		return samples
	}
	failed := func(samples []Sample, which func(Sample) bool, after time.Duration) []Sample {
		for i := range samples {
			if which(samples[i]) {
				samples[i].Failed, samples[i].Latency = true, after
			}
		}
		return samples
	}
	const timeout = 15 * time.Second
	for _, tt := range []struct {
		name     string
		rate     float64
		samples  []Sample
		answered float64
		keptUp   bool
	}{
		{"all is answered", 1, calls(0, 40, 1, 0.1, 0), 1, true},
		{"in the first fourth nothing is", 1, calls(10, 30, 1, 0.1, 0), 1, true},
		{"half is answered in time, and the rest later", 10, calls(0, 400, 0.1, 0.05, 0.1), 5, false},
		{"the rest times out", 10, failed(calls(0, 400, 0.1, 0.05, 0.1), func(s Sample) bool { return s.Latency > timeout }, timeout), 5, false},
		{"half fails at once", 10, failed(calls(0, 400, 0.1, 0.05, 0), func(s Sample) bool { return s.Start%(200*time.Millisecond) == 0 }, time.Millisecond), 5, false},
		{"all of a few fail at once", 0.1, failed(calls(0, 4, 10, 0.1, 0), func(Sample) bool { return true }, time.Millisecond), 0, false},
	} {
		s := newStep(tt.rate, 40*time.Second, timeout, 0, tt.samples)
		near(t, tt.name+": answers a second", s.Answered, tt.answered, 0.02)
		if s.keptUp != tt.keptUp {
			t.Errorf("%s: kept up %t", tt.name, s.keptUp)
		}
	}
}

// A step that is over before it is answered tells nothing.
func TestSweepTooShort(t *testing.T) {
	m := steady()
	p := planFor(m, 2)
	p.Length = 100 * time.Millisecond
	if _, err := Sweep(t.Context(), "model", p, m.Attack(p.Timeout), func(Step) {}); err == nil || !strings.HasPrefix(err.Error(), "100ms is too short for calls that take") {
		t.Errorf("error %v", err)
	}
}

// Where low rates have too few calls, those of higher ones are taken, and a note says so.
func TestSweepWithFewCalls(t *testing.T) {
	m := &Model{Workers: 1, Service: exponential(0.01), Seed: 1}
	p := Plan{Rate: 50, MaxRate: 90, Length: 10 * time.Second, Timeout: caseTimeout}
	in, err := Sweep(t.Context(), "model", p, m.Attack(p.Timeout), func(Step) {})
	if err != nil || in.Answers < minSamples || !strings.Contains(strings.Join(in.Notes, ""), "there were few calls at low rates") {
		t.Fatalf("error %v, input %v", err, in != nil)
	}
}
