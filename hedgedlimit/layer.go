package hedgedlimit

import (
	"context"
	"reflect"
	"sync/atomic"
)

// layer is the context that the attempts of a call have in common. It hands a count
// down: a hedger that runs inside an attempt of another must not multiply what that
// one does, so all of them count their extra attempts together, and a hedger sends
// one only while the count, with the first attempt, is below its own MaxAttempts. So
// the innermost work runs at most as often as the largest of the numbers says, and
// not as their product does.
//
// It is not a record's, since a user may keep the contexts of attempts for ever.
type layer struct {
	context.Context // the caller's
	extra           *atomic.Int32
	// hedger tells whose budget the call has paid into.
	hedger *Hedger
	own    atomic.Int32 // extra points here if the call is not nested
	// pays tells that the primary is a new call, for which the budget gets its
	// deposit: it is no extra attempt of a layer outside, nor has one of them paid
	// into the same budget.
	pays bool
}

// layerKey finds the innermost layer in a context.
type layerKey struct{}

// Value returns the layer for its own key, and the caller's values otherwise.
func (l *layer) Value(key any) any {
	if key == (layerKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// newLayer returns the layer of a call of h within ctx.
func newLayer(ctx context.Context, h *Hedger) *layer {
	l := &layer{Context: ctx, hedger: h, pays: true}
	l.extra = &l.own
	if outer, ok := ctx.Value(layerKey{}).(*layer); ok {
		l.extra = outer.extra
		l.pays = outer.extra.Load() == 0 && (h.comparable == nil || h.comparable != outer.hedger.comparable)
	}
	return l
}

// room reports whether one more extra attempt is allowed where at most so many
// attempts are.
func (l *layer) room(most int) bool { return int(l.extra.Load())+1 < most }

// take counts one extra attempt, or returns false if that is one too many.
func (l *layer) take(most int) bool {
	for {
		n := l.extra.Load()
		if int(n)+1 >= most {
			return false
		}
		if l.extra.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// give takes back what take counted, for an attempt that was not started.
func (l *layer) give() { l.extra.Add(-1) }

// comparableBudget returns b if it can be compared with others, and nil otherwise.
func comparableBudget(b Budget) Budget {
	if b == nil || !reflect.ValueOf(b).Comparable() {
		return nil
	}
	return b
}
