// Package sweep proves, from two logs and after the fact, that one count never
// exceeded another: the work that a server saw inside it, and what its client held at
// the same instant, be it permits or attempts that it knows to be covered by them.
//
// The proof is worth as much as the stamps. If the client stamps what it held from
// before it sent anything until after all had been answered, and the server
// stamps what is truly inside, then in a sound system each visit lies within what
// was held for it, and so count(inside) ≤ count(held) at every instant. Both must read
// the same clock.
package sweep

import (
	"cmp"
	"slices"
)

// An Interval is a stay from Start to End, in nanoseconds of a clock shared by
// all intervals that are compared.
type Interval struct {
	Start, End int64
}

// Finding is what Compare found.
type Finding struct {
	// Events is how many beginnings and ends were looked at.
	Events int
	// Excess is the largest inside − held at any instant, 0 if it was never
	// above 0. The law holds ⇔ Excess == 0.
	Excess int
	// At is the first instant with inside > held, 0 if there is none.
	At int64
	// Violations counts the beginnings and ends after which inside > held.
	Violations int
}

// event is one end of an interval. Of events in the same instant the true order
// is not known, and the one in which the law holds is assumed: a permit begins
// before a visit ends or begins, and ends after. A coarse clock must not accuse.
type event struct {
	at     int64
	order  uint8 // among events of the same instant
	held   int8  // change of the permits held
	inside int8  // change of the visits inside
}

// Compare sweeps over both logs at once.
func Compare(held, inside []Interval) Finding {
	events := make([]event, 0, 2*(len(held)+len(inside)))
	for _, i := range held {
		events = append(events, event{i.Start, 0, +1, 0}, event{i.End, 3, -1, 0})
	}
	for _, i := range inside {
		events = append(events, event{i.Start, 2, 0, +1}, event{i.End, 1, 0, -1})
	}
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	f := Finding{Events: len(events)}
	excess := 0
	for _, e := range events {
		excess += int(e.inside) - int(e.held)
		if excess <= 0 {
			continue
		}
		if f.Violations == 0 {
			f.At = e.at
		}
		f.Violations++
		f.Excess = max(f.Excess, excess)
	}
	return f
}

// Peak returns how many of the intervals overlap at most. One that ends in the
// instant in which another begins does not overlap it.
func Peak(list []Interval) int {
	starts := make([]int64, 0, len(list))
	ends := make([]int64, 0, len(list))
	for _, i := range list {
		starts = append(starts, i.Start)
		ends = append(ends, i.End)
	}
	slices.Sort(starts)
	slices.Sort(ends)
	peak, over := 0, 0
	for begun, start := range starts {
		for over < len(ends) && ends[over] <= start {
			over++
		}
		peak = max(peak, begun+1-over)
	}
	return peak
}
