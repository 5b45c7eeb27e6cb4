package arena

import (
	"errors"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// short is the scenario with its phases cut to a length.
func short(t *testing.T, id string, length time.Duration) *Scenario {
	s := find(t, id)
	for i := range s.Phases {
		s.Phases[i].Length = min(s.Phases[i].Length, length)
	}
	return s
}

// A seed is a run: the same figures every time, for every contender, whoever else
// runs at the same time, and others for another seed.
func TestSameSeedSameFigures(t *testing.T) {
	for _, m := range Makers() {
		for _, s := range []*Scenario{short(t, "S2", 3*time.Second), short(t, "S13e", 3*time.Second)} {
			t.Run(m.Name+" "+s.ID, func(t *testing.T) {
				t.Parallel()
				first := mustSimulate(t, s, &m, 1)
				if second := mustSimulate(t, s, &m, 1); !reflect.DeepEqual(first, second) {
					t.Errorf("%+v\nand again %+v", first, second)
				}
				if other := mustSimulate(t, s, &m, 2); other.Calls == first.Calls {
					t.Errorf("%d calls with either seed", other.Calls)
				}
			})
		}
	}
}

func mustSimulate(t *testing.T, s *Scenario, m *Maker, seed uint64) *Figures {
	t.Helper()
	f, err := Simulate(s, m, seed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The figures of a day, so that a change of the simulator is seen. The limit is a
// constant, so that a change of an algorithm is not.
func TestFiguresAreThoseOfEveryDay(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("figures are the same on machines of one architecture: see the package comment")
	}
	f := mustSimulate(t, short(t, "S2", 5*time.Second), limitedTo(24), 1)
	var got [][4]int
	for _, p := range f.Phases {
		got = append(got, [4]int{p.Offered, p.Admitted, p.Refused, p.Good})
	}
	want := [][4]int{{7533, 7478, 55, 7478}, {7403, 2516, 4887, 2516}, {7580, 7485, 95, 7485}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("offered, admitted, refused, good: %v, want %v", got, want)
	}
}

// Every contender meets the same calls.
func TestSameCallsForAll(t *testing.T) {
	s := short(t, "S9", 2*time.Second)
	var calls []int
	for _, m := range Makers() {
		calls = append(calls, mustSimulate(t, s, &m, 3).Calls)
	}
	for _, n := range calls {
		if n != calls[0] {
			t.Fatalf("calls: %v", calls)
		}
	}
}

// In an outage every call ends late and none is good; what a limit makes of it is
// another matter.
func TestOutage(t *testing.T) {
	s := short(t, "S12", 20*time.Second)
	f := mustSimulate(t, s, limitedTo(10), 1)
	p := f.Phases[1]
	if p.Good != 0 || p.Ideal != 0 || p.SecondsTo90 != -1 || p.LimitLate != 10 {
		t.Errorf("%+v", p)
	}
	near(t, "p50", p.P50, 1000, 0.001)
	near(t, "admitted", float64(p.Admitted), 10*20, 0.05)
	if back := f.Phases[2]; back.SecondsTo80 > 1.1 || back.LimitBack != 0 {
		t.Errorf("after the outage: %+v", back)
	}
}

// Clients of a fleet come out alike under equal limits.
func TestFleetIsFair(t *testing.T) {
	f := mustSimulate(t, short(t, "S13e", 10*time.Second), limitedTo(2), 1)
	if f.Jain < 0.995 {
		t.Errorf("Jain's index %v", f.Jain)
	}
}

func TestJain(t *testing.T) {
	for _, tt := range []struct {
		x    []int
		want float64
	}{{[]int{3, 3, 3}, 1}, {[]int{1, 0, 0, 0}, 0.25}, {[]int{0, 0}, 0}, {[]int{5}, 1}} {
		if got := jain(tt.x); got != tt.want {
			t.Errorf("jain(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
}

func TestStop(t *testing.T) {
	var stop atomic.Bool
	var calls atomic.Int64
	stop.Store(true)
	_, err := Simulate(find(t, "S1"), limitedTo(20), 1, Options{Stop: &stop, Calls: &calls})
	if !errors.Is(err, ErrStopped) || calls.Load() != stopEvery {
		t.Errorf("error %v after %d calls", err, calls.Load())
	}
}

func TestCallsAreCounted(t *testing.T) {
	var calls atomic.Int64
	f, err := Simulate(short(t, "S1", 3*time.Second), limitedTo(20), 1, Options{Calls: &calls})
	if err != nil || calls.Load() != int64(f.Calls) {
		t.Errorf("%d calls were counted of %d, %v", calls.Load(), f.Calls, err)
	}
}

// The course is of the same run as the figures.
func TestCourse(t *testing.T) {
	s := short(t, "S2", 5*time.Second)
	f, err := Simulate(s, limitedTo(24), 1, Options{Course: true})
	if err != nil {
		t.Fatal(err)
	}
	c := f.Course
	if n := 150; len(c.Seconds) < n || len(c.Seconds) > n+2 || len(c.P99) != len(c.Seconds) {
		t.Fatalf("%d points of 15 s", len(c.Seconds))
	}
	good := 0.0
	for i := range c.Seconds {
		good += c.Good[i] * tick.Seconds()
		if c.InFlight[i] > c.Limit[i] || c.P50[i] > c.P99[i] {
			t.Errorf("at %v s: %v in flight under %v, p50 %v, p99 %v", c.Seconds[i], c.InFlight[i], c.Limit[i], c.P50[i], c.P99[i])
		}
	}
	sum := 0
	for _, p := range f.Phases {
		sum += p.Good
	}
	near(t, "good", good, float64(sum), 0.002) // the last calls end after the last point
	if s.Ideal(2) != 1500 || s.Ideal(7) != 500 || s.Ideal(100) != 1500 {
		t.Errorf("ideal %v, %v, %v", s.Ideal(2), s.Ideal(7), s.Ideal(100))
	}
}

// The books are checked at the end of each run; that is worth something only if the
// check can fail.
func TestBooksAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(*run){
		"a call was forgotten":   func(r *run) { r.record.inFlight++ },
		"a latency is too short": func(r *run) { r.record.sojourn-- },
		"the clock is behind":    func(r *run) { r.now++ },
		"a worker is missing":    func(r *run) { r.busy++ },
	} {
		err := bubble.Run(func() error {
			r, err := newRun(short(t, "S7", time.Second), limitedTo(3), 1, Options{})
			if err != nil {
				return err
			}
			if err := r.play(); err != nil {
				t.Errorf("%s: %v before it", name, err)
			}
			spoil(r)
			return r.check()
		})
		if err == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}
