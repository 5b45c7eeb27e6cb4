package storm

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// inBubble runs f with the gate of a case in its first tick.
func inBubble(t *testing.T, c Case, f func(gate)) {
	t.Helper()
	err := bubble.Run(func() error {
		g, err := newGate(&c, new(queue))
		if err != nil {
			return err
		}
		g.begin(time.Now())
		f(g)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// offered counts what the gate makes of n attempts, by admission.
func offered(g gate, number, n int) (counts [3]int) {
	for range n {
		counts[g.offer(number)]++
	}
	return counts
}

// The limiter begins with room for 20, and with a reserve of 2.
func TestGates(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   Place
		f    func(gate) [][3]int
		want [][3]int // admitted, refused, unsent
	}{
		{"a client sends nothing beyond its limit", AtClient, func(g gate) [][3]int {
			return [][3]int{offered(g, 0, 15), offered(g, 1, 10)}
		}, [][3]int{{15, 0, 0}, {5, 0, 5}}},
		{"a client's permit ends with its answer, and with its time-out, not with the work", AtClient, func(g gate) [][3]int {
			offered(g, 0, 20)
			g.served(1, true)
			first := offered(g, 0, 2)
			g.timedOut(2)
			second := offered(g, 0, 3)
			g.served(2, false)
			return [][3]int{first, second, offered(g, 0, 1)}
		}, [][3]int{{1, 0, 1}, {2, 0, 1}, {0, 0, 1}}},
		{"a server's permit ends with the work alone", AtServer, func(g gate) [][3]int {
			first := offered(g, 1, 21)
			g.timedOut(20)
			second := offered(g, 0, 1)
			g.served(1, false)
			g.served(1, true)
			return [][3]int{first, second, offered(g, 0, 3)}
		}, [][3]int{{20, 1, 0}, {0, 1, 0}, {2, 1, 0}}},
		{"a marked retry leaves the reserve to calls", AtServerMarked, func(g gate) [][3]int {
			return [][3]int{offered(g, 0, 17), offered(g, 1, 3), offered(g, 0, 3)}
		}, [][3]int{{17, 0, 0}, {1, 2, 0}, {2, 1, 0}}},
		{"from half of the permits on marked retries are three, or a tenth of what comes", AtServerMarked, func(g gate) [][3]int {
			first := offered(g, 1, 15)
			for range 50 {
				g.offer(0)
				g.served(1, true)
			}
			return [][3]int{first, offered(g, 1, 10)}
		}, [][3]int{{13, 2, 0}, {2, 8, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Case{Limit: tt.at, Marked: 0.1}, func(g gate) {
				if got := tt.f(g); !slices.Equal(got, tt.want) {
					t.Errorf("%v were admitted, refused and unsent, want %v", got, tt.want)
				}
			})
		})
	}
}

// Calls that run into their time-out are a drop to a limit in front of the server, not answers that
// took as long: it comes down.
func TestTimeoutsLowerTheLimit(t *testing.T) {
	inBubble(t, Case{Limit: AtClient}, func(g gate) {
		client := g.(*atClient)
		before := client.limiter.Limit()
		for range 20 {
			offered(g, 0, client.limiter.Limit())
			g.wait(time.Now().Add(time.Second))
			g.timedOut(len(client.permits))
		}
		if after := client.limiter.Limit(); after > before/2 {
			t.Errorf("a limit of %d is %d after nothing but time-outs", before, after)
		}
	})
}

// recorder lets everybody pass, or keeps all unsent, and notes when the server was done.
type recorder struct {
	open
	as   admission
	now  time.Time
	done []time.Duration
}

func (r *recorder) wait(until time.Time) { r.now = until }
func (r *recorder) offer(int) admission  { return r.as }
func (r *recorder) served(int, bool)     { r.done = append(r.done, r.now.Sub(time.Time{})) }

// steps runs the ticks of a case with a gate, from the zero Time on.
func steps(t *testing.T, c *Case, g gate) *run {
	t.Helper()
	r, err := newRun(c)
	if err != nil {
		t.Fatal(err)
	}
	r.gate = g
	for r.tick = range c.Length {
		r.step(time.Time{}, true)
	}
	return r
}

// The server takes half a second for each of three in two seconds, and after an outage begins
// anew with what it had begun.
func TestServerWorksOneAfterTheOther(t *testing.T) {
	g := &recorder{}
	steps(t, &Case{Capacity: 2, Load: 3, Timeout: 9, Start: 1, Outage: 2, Calls: 1, Length: 5, Layers: []Layer{{Tries: 1}}}, g)
	if want := []time.Duration{500 * time.Millisecond, time.Second, 3500 * time.Millisecond}; !slices.Equal(g.done, want) {
		t.Errorf("requests were done at %v, want %v", g.done, want)
	}
	g = &recorder{}
	steps(t, &Case{Capacity: 4, Load: 2, Timeout: 9, Calls: 2, Length: 3, Start: 3, Layers: []Layer{{Tries: 1}}}, g)
	if want := []time.Duration{250 * time.Millisecond, 750 * time.Millisecond, 1250 * time.Millisecond, 1750 * time.Millisecond}; !slices.Equal(g.done, want) {
		t.Errorf("requests of an idle server were done at %v, want %v", g.done, want)
	}
}

// What a client keeps back has come nowhere and costs no budget.
func TestUnsentAttempts(t *testing.T) {
	c := &Case{Capacity: 10, Load: 10, Timeout: 1, Start: 10, Calls: 3, Length: 6, Layers: []Layer{{Tries: 2, Budget: 0.1}}}
	r := steps(t, c, &recorder{as: unsent})
	if f := r.figures; f.Came != 0 || f.Refused != f.Attempts || f.Attempts != 33 || f.Served != 0 {
		t.Errorf("%d attempts, of which %d came, %d were refused and %d done", f.Attempts, f.Came, f.Refused, f.Served)
	}
	if b := r.client.layers[0].budget.Balance(r.began); b != 1 {
		t.Errorf("the budget has %v, want 1", b)
	}
}

// Simulate stops at the end of a tick.
func TestSimulateStops(t *testing.T) {
	var stop atomic.Bool
	stop.Store(true)
	row := Rows(Defaults())[0]
	if f, err := Simulate(&row.Case, &stop, new(atomic.Int64)); !errors.Is(err, errStopped) || f != nil {
		t.Errorf("%v, %v", f, err)
	}
}
