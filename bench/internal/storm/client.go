package storm

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// client is all clients. An attempt is known by its number, which tells how often each layer
// has tried: a digit for each, the outermost the highest, and 0 for the attempt that a call
// begins with.
type client struct {
	layers  []clientLayer
	backoff *Backoff
	now     time.Time // of the tick

	// due is a ring of the ticks to come: how many attempts of each number are to be made.
	due  [][]int
	tick int
}

type clientLayer struct {
	tries  int
	unit   int                // what one try of this layer adds to the number
	budget hedgedlimit.Budget // nil without one
}

func newClient(c *Case) (*client, error) {
	x := &client{backoff: c.Backoff, layers: make([]clientLayer, len(c.Layers))}
	unit := 1
	for i := len(c.Layers) - 1; i >= 0; i-- {
		l := &c.Layers[i]
		x.layers[i] = clientLayer{tries: l.Tries, unit: unit}
		unit *= l.Tries
		if l.Budget == 0 {
			continue
		}
		b, err := hedgedlimit.NewRatioBudget(hedgedlimit.RatioConfig{
			Ratio: l.Budget, PerSecond: -1, Burst: max(1, int(math.Round(l.Budget*float64(c.Load)))),
		})
		if err != nil {
			return nil, err
		}
		x.layers[i].budget = b
	}
	ring := 1
	if c.Backoff != nil {
		ring += c.Backoff.Max
	}
	for range ring {
		x.due = append(x.due, make([]int, unit))
	}
	return x, nil
}

// begin begins a tick.
func (x *client) begin(tick int, now time.Time) { x.tick, x.now = tick, now }

// failed is told of n attempts of a number that failed, and returns how many of their calls
// are not tried again.
func (x *client) failed(number, n int) (given int) {
	for ; n > 0; n-- {
		next, bounded := x.next(number)
		switch {
		case next == 0:
			given++
		case bounded:
			x.again(next, 1)
		default:
			// Nothing has a say in it, so the others go the same way.
			x.again(next, n)
			return given
		}
	}
	return given
}

// next returns the attempt that follows one that failed, and 0 if there is none. The
// innermost layer hears of it first; one that does not try again fails in turn. Bounded tells
// that a budget was asked or paid.
func (x *client) next(number int) (next int, bounded bool) {
	for i := len(x.layers) - 1; i >= 0; i-- {
		l := &x.layers[i]
		if number/l.unit%l.tries == l.tries-1 {
			continue
		}
		if l.budget != nil {
			bounded = true
			if !l.budget.Withdraw(x.now) {
				continue
			}
		}
		return number - number%l.unit + l.unit, x.deposit(x.layers[i+1:]) || bounded
	}
	return 0, bounded
}

// unsent gives back what a retry has cost that was not sent after all. The layer that tried
// is the innermost that is not at its first try.
func (x *client) unsent(number int) {
	for i := len(x.layers) - 1; i >= 0; i-- {
		l := &x.layers[i]
		if number/l.unit%l.tries == 0 {
			continue
		}
		if l.budget != nil {
			l.budget.Refund(x.now)
		}
		return
	}
}

// deposit pays in for a first try of each of the layers, and tells whether any has a budget.
func (x *client) deposit(layers []clientLayer) bool {
	any := false
	for i := range layers {
		if b := layers[i].budget; b != nil {
			b.Deposit(x.now)
			any = true
		}
	}
	return any
}

// again has n attempts of a number made, when their back-off is over.
func (x *client) again(number, n int) {
	if x.backoff == nil {
		x.at(0)[number] += n
		return
	}
	// Any of 0 to most ticks is as likely as another. The remainder goes to the last ones.
	most := x.backoff.wait(number)
	for i := range most + 1 {
		share := n / (most + 1 - i)
		x.at(i)[number] += share
		n -= share
	}
}

// wait is the longest wait before an attempt.
func (b *Backoff) wait(number int) int {
	w := b.Initial
	for range number - 1 {
		if w >= b.Max {
			break
		}
		w *= b.Multiplier
	}
	return min(w, b.Max)
}

// at is what is due in so many ticks from now.
func (x *client) at(ticks int) []int { return x.due[(x.tick+ticks)%len(x.due)] }

// call begins n calls.
func (x *client) call(n int) {
	for range n {
		if !x.deposit(x.layers) {
			break
		}
	}
	x.at(0)[0] += n
}
