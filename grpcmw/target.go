package grpcmw

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	defaultMaxWaiting = 64
	// defaultMaxWait is four times the 95th percentile of a server that answers in 25 ms:
	// longer than a hedge would take, a wait only piles up.
	defaultMaxWait = 100 * time.Millisecond
	// defaultMaxKeys is for how many methods of a target a delay is learnt.
	defaultMaxKeys = 64
)

// target is what the calls to one target have in common.
type target struct {
	// Immutable.
	name     string
	limiter  *limiter.Limiter
	throttle *hedgedlimit.Throttle // nil if the service config has none
	hedgers  hedgers

	// calls is 2 for each call that has not returned, and 1 if the target was dropped: it
	// is entered without a lock, and never after it was dropped.
	calls atomic.Int64

	element *list.Element // in targets.recent; guarded by targets.mu; nil for overflow
}

// enter lets a call begin, unless the target was dropped; leave must follow then.
func (t *target) enter() bool {
	if t.calls.Add(2)&1 == 0 {
		return true
	}
	t.leave()
	return false
}

// leave ends a call. Attempts of it may still hold permits.
func (t *target) leave() { t.calls.Add(-2) }

// drop forbids calls to enter, if the target is idle. A permit that is out when the last
// call has left can only come back.
func (t *target) drop() bool {
	if !t.calls.CompareAndSwap(0, 1) {
		return false
	}
	if t.limiter.InFlight() == 0 {
		return true
	}
	t.calls.Add(-1)
	return false
}

// ended tells the throttle how an RPC has ended that no hedger saw the end of, h being the
// hedger of its method, or nil.
func (t *target) ended(err error, c *cells, h *hedger) {
	if t.throttle != nil {
		t.throttle.Answered(time.Time{}, answer(err, c, h)) // it needs no clock
	}
}

// targets keeps a bounded number of targets, and drops idle ones for new ones.
//
// Invariants: len(byName) == recent.Len() ≤ options.maxTargets; a target leaves the map
// only while it has no call and none of its permits is out.
type targets struct {
	// Immutable after newTargets.
	options  *options
	overflow *target // serves the targets for which there is no room

	// last is the target that was entered last, which spares most calls the lock. It may
	// have been dropped.
	last   atomic.Pointer[target]
	closed atomic.Bool // never becomes false again; set under mu

	mu sync.Mutex // a leaf but for the locks of the limiters
	// Guarded by mu.

	byName     map[string]*target
	recent     *list.List // of *target, the one used last at the front
	overflowed uint64     // calls that overflow served
	dropped    uint64     // targets dropped for newcomers
}

func newTargets(o *options) (*targets, error) {
	overflow, err := newTarget(o, "")
	if err != nil {
		return nil, err
	}
	return &targets{options: o, overflow: overflow, byName: make(map[string]*target), recent: list.New()}, nil
}

// enter returns the target for a call that begins; leave must follow. It returns
// limiter.ErrClosed after close, or the error of the user's configuration.
func (ts *targets) enter(name string) (*target, error) {
	if ts.closed.Load() {
		return nil, limiter.ErrClosed
	}
	if t := ts.last.Load(); t != nil && t.name == name && t.enter() {
		return t, nil
	}
	found, err := ts.find(name, nil)
	if found != nil || err != nil {
		return found, err
	}
	fresh, err := newTarget(ts.options, name) // calls the user's function, so no lock is held
	if err != nil {
		return nil, err
	}
	return ts.find(name, fresh)
}

// find returns the target of that name, entered, or the one to use in its stead. If there
// is none but there is room, it puts fresh there, or returns nil if that is nil.
func (ts *targets) find(name string, fresh *target) (*target, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed.Load() {
		return nil, limiter.ErrClosed
	}
	found := ts.byName[name]
	switch {
	case found != nil:
	case fresh == nil && (len(ts.byName) < ts.options.maxTargets || ts.idleLocked()):
		return nil, nil
	case fresh != nil && (len(ts.byName) < ts.options.maxTargets || ts.dropLocked()):
		fresh.element = ts.recent.PushFront(fresh)
		ts.byName[name] = fresh
		found = fresh
	default:
		ts.overflowed++
		found = ts.overflow
	}
	found.enter() // It is not dropped: that takes the lock.
	if found.element != nil {
		ts.recent.MoveToFront(found.element)
		ts.last.Store(found)
	}
	return found, nil
}

// idleLocked reports whether some target could be dropped. ts.mu must be held.
func (ts *targets) idleLocked() bool {
	for e := ts.recent.Back(); e != nil; e = e.Prev() {
		if t := e.Value.(*target); t.calls.Load() == 0 && t.limiter.InFlight() == 0 {
			return true
		}
	}
	return false
}

// dropLocked forgets the idle target that was used least lately, and reports whether there
// was one. ts.mu must be held.
func (ts *targets) dropLocked() bool {
	for e := ts.recent.Back(); e != nil; e = e.Prev() {
		if t := e.Value.(*target); t.drop() {
			ts.recent.Remove(e)
			delete(ts.byName, t.name)
			ts.dropped++
			return true
		}
	}
	return false
}

// snapshot returns the targets, the one used last first, and the counts.
func (ts *targets) snapshot() (all []*target, overflowed, dropped uint64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for e := ts.recent.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*target))
	}
	return all, ts.overflowed, ts.dropped
}

// close lets no call enter any more, and returns the targets.
func (ts *targets) close() []*target {
	ts.mu.Lock()
	ts.closed.Store(true)
	ts.mu.Unlock()
	all, _, _ := ts.snapshot()
	return append(all, ts.overflow)
}
