package hedgearena

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// cases are all policies behind all limits that they are run behind.
func cases(t *testing.T, s *Scenario, load float64) []Case {
	x := Sweep{Scenarios: []Scenario{*s}, Loads: []float64{load}, Limits: Limits(), Modes: []Mode{Refuse, Queue}, Policies: Policies(), Seeds: []uint64{1}}
	var all []Case
	for _, r := range x.Rows() {
		all = append(all, r.Case)
	}
	if len(all) != 7+3*2*4 { // all but one without a limit, and four behind each
		t.Fatalf("%d cases", len(all))
	}
	return all
}

// A seed is a run: the same figures every time, whoever else runs at the same time, and
// others for another seed.
func TestSameSeedSameFigures(t *testing.T) {
	for _, c := range cases(t, find(t, "H3", 500*time.Millisecond), 0.9) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			first := mustSimulate(t, c, 1)
			// Gradient's windows may end a few calls sooner or later; see bench/HEDGING.md.
			if second := mustSimulate(t, c, 1); !c.Limit.Gradient && !reflect.DeepEqual(first, second) {
				t.Errorf("%+v\nand again %+v", first, second)
			}
			if other := mustSimulate(t, c, 2); other.Calls == first.Calls {
				t.Errorf("%d calls with either seed", other.Calls)
			}
		})
	}
}

// Every policy meets the same calls, which come at the same times.
func TestSameCallsForAll(t *testing.T) {
	for _, s := range []*Scenario{find(t, "H2", 500*time.Millisecond), find(t, "T1", 200*time.Millisecond)} {
		var want []int
		for _, c := range cases(t, s, 0.6) {
			_, r := simulated(t, c, 3, nil)
			var got []int
			for _, x := range r.record.ticks {
				got = append(got, x.calls)
			}
			if want == nil {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: calls %v, want %v", c, got, want)
			}
		}
	}
}

// What a policy makes of the primaries is its own, but not how long they take.
func TestSameServiceForAll(t *testing.T) {
	s := find(t, "H1", 2*time.Second)
	type key struct{ call, number int }
	want := map[key]time.Duration{}
	for _, name := range []string{NoneName, "hand", OurName} {
		c := newCase(t, s, 0.3, "none", "", name)
		_, r := simulated(t, c, 1, nil)
		for call := range r.seen {
			for number := 1; number <= 2; number++ {
				k, v := key{call, number}, seconds(r.draws.service(call, number))
				if old, ok := want[k]; ok && old != v {
					t.Fatalf("%s: attempt %v takes %v, and elsewhere %v", name, k, v, old)
				}
				want[k] = v
			}
		}
	}
}

// Each call ends once, in one way, and each attempt has a fate: every run checks that. The
// check is worth something only if it can fail.
func TestBooksAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(*run){
		"a call never ended":             func(r *run) { r.record.ended-- },
		"a call ended in two ways":       func(r *run) { r.record.phases[1].refused++ },
		"an attempt was not counted":     func(r *run) { r.record.phases[1].extra-- },
		"an attempt was lost by a slot":  func(r *run) { r.server.served-- },
		"an attempt is still out":        func(r *run) { r.record.out++ },
		"a permit was not released":      func(r *run) { _, _ = r.limiter.TryAcquire(0) },
		"a call returned something else": func(r *run) { err := errors.New("ouch"); r.strange.Store(&err) },
		"the library's counts disagree": func(r *run) {
			_ = r.caller.do(context.Background(), 0, func(context.Context, int) error { return nil })
		},
	} {
		err := bubble.Run(func() error {
			r, err := newRun(newCase(t, find(t, "H1", time.Second), 0.3, "3x", Refuse, OurName), 1, Options{})
			if err != nil {
				return err
			}
			if err := r.play(); err != nil {
				t.Errorf("%s: %v before it", name, err)
			}
			spoil(r)
			return r.check(0)
		})
		if err == nil || !strings.HasPrefix(err.Error(), "hedgearena: ") {
			t.Errorf("%s: seen as %v", name, err)
		}
	}
}

// Behind a limit, in flight never exceeds it, hedges included.
func TestLimitHolds(t *testing.T) {
	for _, m := range []Mode{Refuse, Queue} {
		f, err := Simulate(newCase(t, find(t, "H3", 3*time.Second), 1.3, "1.5x", m, OurName), 1, Options{Course: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range f.Course.InFlight {
			if n > f.Course.Limit[i] || f.Course.Limit[i] != 60 {
				t.Errorf("%s: %v in flight at a limit of %v", m, n, f.Course.Limit[i])
			}
		}
		if f.Total.Refused == 0 {
			t.Errorf("%s: nothing was refused at 130 %%", m)
		}
	}
}

// Who waits for a permit waits no longer than the bound.
func TestQueueIsBounded(t *testing.T) {
	s := find(t, "N1", 3*time.Second)
	f := mustSimulate(t, newCase(t, s, 1.3, "1.5x", Queue, NoneName), 1)
	if most := maxWaitDelays*17.0 + 60; f.Total.P999 > most {
		t.Errorf("p99.9 %.1f ms, want ≤ %.1f", f.Total.P999, most)
	}
}

func TestStop(t *testing.T) {
	var stop atomic.Bool
	var calls atomic.Int64
	stop.Store(true)
	_, err := Simulate(newCase(t, find(t, "H3", time.Minute), 0.3, "3x", Refuse, OurName), 1, Options{Stop: &stop, Calls: &calls})
	if !errors.Is(err, ErrStopped) || calls.Load() != 2*stopEvery {
		t.Errorf("error %v after %d calls", err, calls.Load())
	}
}

func TestCallsAreCounted(t *testing.T) {
	var calls atomic.Int64
	f, err := Simulate(newCase(t, find(t, "H1", time.Second), 0.6, "3x", Refuse, OurName), 1, Options{Calls: &calls})
	if err != nil || calls.Load() != int64(f.Calls) {
		t.Errorf("%d calls were counted of %d, %v", calls.Load(), f.Calls, err)
	}
}

// Unbounded hedging of work that is served anyway does not come back from where no hedging
// does: the arena can tell harm.
func TestTriggerTellsHarm(t *testing.T) {
	s := find(t, "R1", 4*time.Second)
	none := mustSimulate(t, newCase(t, s, 0.5, "none", "", NoneName), 1)
	hand := mustSimulate(t, newCase(t, s, 0.5, "none", "", "hand"), 1)
	a, b := none.Phases[3], hand.Phases[3]
	if a.RecoverySeconds < 0 || b.RecoverySeconds >= 0 || hand.Total.FailedPercent < none.Total.FailedPercent+20 {
		t.Errorf("after the trigger no hedging was back after %v s and by hand after %v; failed %.1f and %.1f %%",
			a.RecoverySeconds, b.RecoverySeconds, none.Total.FailedPercent, hand.Total.FailedPercent)
	}
}

// Slow replicas and closed slots are as much less capacity.
func TestTroubleIsFelt(t *testing.T) {
	for id, phase := range map[string]int{"C1": 2, "D1": 2, "T1": 2} {
		s := find(t, id, 2*time.Second)
		f := mustSimulate(t, newCase(t, s, 0.85, "none", "", NoneName), 1)
		if before, trouble := f.Phases[1], f.Phases[phase]; trouble.P50 < 2*before.P50 {
			t.Errorf("%s: p50 %.1f ms in trouble, %.1f before", id, trouble.P50, before.P50)
		}
	}
}
