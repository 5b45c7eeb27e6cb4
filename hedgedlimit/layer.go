package hedgedlimit

import (
	"context"
	"reflect"
	"sync"
)

// layer is the context that the attempts of a call have in common. It lets calls inside
// attempts find the calls around them, since layers that try again must not multiply:
// the extra attempts of a call and of the calls around it are counted together, and a
// hedger sends one only while their number, with the first attempt, is below its own
// MaxAttempts. So the work of one chain of calls is done at most as often as the largest
// of the numbers says, and not as often as their product does.
//
// Calls side by side in one attempt, such as those of a fan-out, are different work: one
// does not use up the attempts of the other. The call around them counts the most that
// any of them used. Calls in different attempts of the same call are the same work, and
// are added up.
//
// It is not a record's, since a user may keep the contexts of attempts for ever.
type layer struct {
	context.Context // the caller's

	// Immutable.
	hedger *Hedger
	outer  *layer // nil if there is none
	root   *layer // the outermost, itself included
	at     int8   // in which attempt of outer, from 0
	first  bool   // all attempts around it are primaries
	// pays tells that the primary is a new call, for which the budget gets its
	// deposit: it is first, and the call around it has not paid into the same budget.
	pays bool

	// Guarded by root.mu, which is a leaf.

	own    int8                 // extra attempts of this call
	inside [maxMaxAttempts]int8 // those of the calls inside each attempt, the most of any

	mu sync.Mutex
}

// place is an attempt of a call.
type place struct {
	layer *layer
	at    int8 // from 0
}

// placeKey finds the innermost place in a context.
type placeKey struct{}

// Value returns the place of the primary for placeKey, and the caller's values
// otherwise.
func (l *layer) Value(key any) any {
	if key == (placeKey{}) {
		return place{l, 0}
	}
	return l.Context.Value(key)
}

// extraContext is the parent of the context of an attempt other than the primary.
type extraContext struct {
	context.Context // the layer
	place           place
}

func (c *extraContext) Value(key any) any {
	if key == (placeKey{}) {
		return c.place
	}
	return c.Context.Value(key)
}

// Apart returns a context for work that is not that of the attempt which ctx is of, such as
// the fetch of a token on the way: the attempts of calls in it are not counted together with
// those of the calls around, and budgets get their deposit for it.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, placeKey{}, nil) }

// newLayer returns the layer of a call of h within ctx.
func newLayer(ctx context.Context, h *Hedger) *layer {
	l := &layer{Context: ctx, hedger: h, first: true, pays: true}
	l.root = l
	if p, ok := ctx.Value(placeKey{}).(place); ok {
		l.outer, l.root, l.at = p.layer, p.layer.root, p.at
		l.first = p.layer.first && p.at == 0
		l.pays = l.first && (h.comparable == nil || h.comparable != p.layer.hedger.comparable)
	}
	return l
}

// of returns the parent of the context of an attempt.
func (l *layer) of(number int) context.Context {
	if number == 1 {
		return l
	}
	return &extraContext{l, place{l, int8(number - 1)}}
}

// room reports whether one more extra attempt is allowed where at most so many
// attempts are.
func (l *layer) room(most int) bool {
	l.root.mu.Lock()
	defer l.root.mu.Unlock()
	return l.roomLocked(most)
}

func (l *layer) roomLocked(most int) bool {
	n := 1 + l.usedLocked()
	for x := l; x.outer != nil; x = x.outer {
		n += x.outer.usedLocked() - int(x.outer.inside[x.at])
	}
	return n < most
}

// usedLocked is how many extra attempts this call and those inside it have used.
func (l *layer) usedLocked() int {
	n := int(l.own)
	for _, m := range l.inside {
		n += int(m)
	}
	return n
}

// take counts one extra attempt, or returns false if that is one too many.
func (l *layer) take(most int) bool {
	l.root.mu.Lock()
	defer l.root.mu.Unlock()
	if !l.roomLocked(most) {
		return false
	}
	l.own++
	for x := l; x.outer != nil; x = x.outer {
		x.outer.inside[x.at] = max(x.outer.inside[x.at], int8(x.usedLocked()))
	}
	return true
}

// give takes back what take counted, for an attempt that was not started. The calls
// around it may keep it counted.
func (l *layer) give() {
	l.root.mu.Lock()
	defer l.root.mu.Unlock()
	l.own--
}

// comparableBudget returns b if it can be compared with others, and nil otherwise.
func comparableBudget(b Budget) Budget {
	if b == nil || !reflect.ValueOf(b).Comparable() {
		return nil
	}
	return b
}
