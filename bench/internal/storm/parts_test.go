package storm

import (
	"slices"
	"testing"
	"time"
)

func newTestClient(t *testing.T, c Case) *client {
	t.Helper()
	x, err := newClient(&c)
	if err != nil {
		t.Fatal(err)
	}
	x.begin(0, time.Unix(0, 0))
	return x
}

// The innermost layer tries again first, and one above it when those below have given up.
func TestLayersTryFromTheInside(t *testing.T) {
	x := newTestClient(t, Case{Load: 1, Layers: []Layer{{Tries: 2}, {Tries: 3}, {Tries: 2}}})
	var numbers []int
	for n, more := 0, true; more; {
		n, _ = x.next(n)
		more = n != 0
		numbers = append(numbers, n)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0}; !slices.Equal(numbers, want) {
		t.Errorf("%v, want %v", numbers, want)
	}
	// With an empty account below, the middle layer tries at once, and skips what is left there.
	x = newTestClient(t, Case{Load: 10, Layers: []Layer{{Tries: 2}, {Tries: 3}, {Tries: 2, Budget: 0.1}}})
	for _, step := range []struct{ from, want int }{{0, 1}, {0, 2}, {2, 4}, {4, 6}} {
		if got, _ := x.next(step.from); got != step.want {
			t.Errorf("after %d comes %d, want %d", step.from, got, step.want)
		}
	}
}

// A budget is what calls pay in: an hour without any brings nothing.
func TestTimePaysNothingIn(t *testing.T) {
	x := newTestClient(t, Case{Load: 10, Layers: []Layer{{Tries: 9, Budget: 0.1}}})
	for n, _ := x.next(0); n != 0; n, _ = x.next(0) { // until it is empty
	}
	x.begin(3600, x.now.Add(time.Hour))
	if n, _ := x.next(0); n != 0 {
		t.Errorf("after an hour without a call comes %d", n)
	}
}

// Each first try that a retry above leads to pays in, also where nobody asks what it costs.
func TestRetriesPayInBelow(t *testing.T) {
	x := newTestClient(t, Case{Load: 10, Layers: []Layer{{Tries: 2}, {Tries: 2, Budget: 0.1}}})
	x.layers[1].budget.Withdraw(x.now)
	if given := x.failed(1, 10); given != 0 {
		t.Errorf("%d calls are given up", given)
	}
	if b := x.layers[1].budget.Balance(x.now); b != 1 {
		t.Errorf("ten tries of a tenth paid in %v", b)
	}
}

// A retry that was not sent costs the layer nothing that tried.
func TestUnsentRetryIsPaidBack(t *testing.T) {
	x := newTestClient(t, Case{Load: 10, Layers: []Layer{{Tries: 2, Budget: 0.1}, {Tries: 2, Budget: 0.1}}})
	balances := func() (b [2]float64) {
		for i := range b {
			b[i] = x.layers[i].budget.Balance(x.now)
		}
		return b
	}
	for _, tt := range []struct {
		from, to int
		spent    [2]float64
	}{{0, 1, [2]float64{1, 0}}, {1, 2, [2]float64{0, 1}}} {
		before := balances()
		if got, _ := x.next(tt.from); got != tt.to {
			t.Fatalf("after %d comes %d, want %d", tt.from, got, tt.to)
		}
		if got := balances(); got != tt.spent {
			t.Errorf("balances %v after attempt %d, want %v", got, tt.to, tt.spent)
		}
		x.unsent(tt.to)
		if got := balances(); got != before {
			t.Errorf("balances %v after attempt %d was not sent, want %v", got, tt.to, before)
		}
	}
	x.unsent(0) // a call
	if got := balances(); got != [2]float64{1, 1} {
		t.Errorf("balances %v after a call was not sent", got)
	}
}

func TestBackoffSpreadsEvenlyAndLosesNothing(t *testing.T) {
	b := &Backoff{Initial: 2, Multiplier: 3, Max: 10}
	for number, most := range map[int]int{1: 2, 2: 6, 3: 10, 20: 10} {
		for _, n := range []int{1, 5, 100} {
			x := newTestClient(t, Case{Load: 1, Layers: []Layer{{Tries: 30}}, Backoff: b})
			x.again(number, n)
			sum, least, greatest := 0, n, 0
			for ticks := range len(x.due) {
				got := x.at(ticks)[number]
				sum += got
				if ticks <= most {
					least, greatest = min(least, got), max(greatest, got)
				} else if got > 0 {
					t.Errorf("attempt %d comes after %d ticks, want at most %d", number, ticks, most)
				}
			}
			if sum != n || greatest-least > 1 {
				t.Errorf("attempt %d: %d of %d, from %d to %d a tick", number, sum, n, least, greatest)
			}
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 6290460: "6,290,460"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}
