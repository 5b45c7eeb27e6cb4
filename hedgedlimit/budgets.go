package hedgedlimit

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// InFlightBudget bounds the extra attempts that run, by their work and not by their
// callers, to a share of the primaries that run, and at least a floor. A share of what
// is in flight rounds to nothing where little is, hence the floor. It must be made by
// NewInFlightBudget and may be used by any number of goroutines and hedgers.
type InFlightBudget struct {
	ratio float64 // immutable
	floor int     // immutable

	mu sync.Mutex // a leaf
	// Guarded by mu.

	primaries, extras int // whose work has not ended
}

// NewInFlightBudget returns a budget for extra attempts of at most ratio, from 0 to 1,
// of the primaries in flight, or floor if that is more. On a bad number it returns nil
// and an error with the number.
func NewInFlightBudget(ratio float64, floor int) (*InFlightBudget, error) {
	if math.IsNaN(ratio) || ratio < 0 || ratio > 1 {
		return nil, fmt.Errorf("hedgedlimit: InFlightBudget: ratio %v is not between 0 and 1", ratio)
	}
	if floor < 0 || floor > maxTokens {
		return nil, fmt.Errorf("hedgedlimit: InFlightBudget: floor %d is not between 0 and %d", floor, maxTokens)
	}
	return &InFlightBudget{ratio: ratio, floor: floor}, nil
}

// Deposit counts a primary that starts.
func (b *InFlightBudget) Deposit(time.Time) { b.count(&b.primaries, 1) }

// Withdraw counts an extra attempt if there is room for one.
func (b *InFlightBudget) Withdraw(time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mostLocked()-b.extras < 1 {
		return false
	}
	b.extras++
	return true
}

// Refund takes one extra attempt back that was not started.
func (b *InFlightBudget) Refund(time.Time) { b.count(&b.extras, -1) }

// Balance returns how many extra attempts there is room for.
func (b *InFlightBudget) Balance(time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(max(0, b.mostLocked()-b.extras))
}

// Answered does nothing.
func (b *InFlightBudget) Answered(time.Time, Answer) {}

// Ended counts an attempt out.
func (b *InFlightBudget) Ended(_ time.Time, extra bool) {
	if extra {
		b.count(&b.extras, -1)
		return
	}
	b.count(&b.primaries, -1)
}

func (b *InFlightBudget) count(n *int, by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*n += by
}

func (b *InFlightBudget) mostLocked() int {
	return max(b.floor, int(b.ratio*float64(b.primaries)))
}

// AllOf is the budget that allows what each of the given budgets does. It takes from
// all of them or from none: what was withdrawn before one said no is paid back. It
// may be shared as far as they may. A nil among them is refused by New.
func AllOf(budgets ...Budget) Budget { return &allOf{slices.Clone(budgets)} }

type allOf struct{ budgets []Budget } // immutable

func (a *allOf) validate() error {
	for i, b := range a.budgets {
		if b == nil || isNilPointer(b) {
			return fmt.Errorf("hedgedlimit: Budget: number %d of AllOf is nil", i+1)
		}
		if inner, ok := b.(*allOf); ok {
			if err := inner.validate(); err != nil {
				return fmt.Errorf("%w, in number %d of another", err, i+1)
			}
		}
	}
	return nil
}

// each calls f for one budget after the other, for the rest of them also if it panics or
// calls Goexit for one: they have books of their own to keep.
func each(budgets []Budget, f func(Budget)) {
	if len(budgets) == 0 {
		return
	}
	defer each(budgets[1:], f)
	f(budgets[0])
}

func (a *allOf) Deposit(now time.Time) {
	each(a.budgets, func(b Budget) { b.Deposit(now) })
}

func (a *allOf) Withdraw(now time.Time) bool {
	taken := 0
	defer func() {
		if taken < len(a.budgets) { // one has said no, or panicked
			refund(now, a.budgets[:taken])
		}
	}()
	for _, b := range a.budgets {
		if !b.Withdraw(now) {
			return false
		}
		taken++
	}
	return true
}

func (a *allOf) Refund(now time.Time) { refund(now, a.budgets) }

func refund(now time.Time, budgets []Budget) {
	each(budgets, func(b Budget) { b.Refund(now) })
}

// Balance returns the least of the balances.
func (a *allOf) Balance(now time.Time) float64 {
	least := math.Inf(1)
	for _, b := range a.budgets {
		least = min(least, b.Balance(now))
	}
	return least
}

func (a *allOf) Answered(now time.Time, answer Answer) {
	each(a.budgets, func(b Budget) {
		if f, ok := b.(Follower); ok {
			f.Answered(now, answer)
		}
	})
}

func (a *allOf) Ended(now time.Time, extra bool) {
	each(a.budgets, func(b Budget) {
		if f, ok := b.(Follower); ok {
			f.Ended(now, extra)
		}
	})
}
