package httpmw

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	defaultMaxWaiting = 64
	// defaultMaxWait is four times the 95th percentile of a host that answers in
	// 25 ms: longer than a hedge would take, a wait only piles up.
	defaultMaxWait = 100 * time.Millisecond
	defaultDrain   = 100 * time.Millisecond
)

// host is what the requests to one host share.
type host struct {
	// Immutable.
	name   string
	hedger *hedgedlimit.Hedger

	// Guarded by hosts.mu.
	calls   int           // calls that have not returned
	element *list.Element // in hosts.recent; nil for a host that is not in the map
}

// hosts keeps a bounded number of hosts, and drops idle ones for new ones.
//
// Invariants: len(byName) == recent.Len() ≤ max; a host leaves the map only while
// calls == 0 and none of its permits is out.
type hosts struct {
	// Immutable after newHosts.
	options *options
	max     int
	// shared is the only host if WithHedger was given; byName stays empty then.
	shared *host
	// overflow serves hosts for which there is no room. Nil if shared is not.
	overflow *host

	mu sync.Mutex // a leaf but for the locks of the limiters
	// Guarded by mu.

	byName     map[string]*host
	recent     *list.List // of *host, the one used last at the front
	overflowed uint64     // calls that overflow served
	dropped    uint64     // hosts dropped for newcomers
	closed     bool       // never becomes false again
}

func newHosts(o *options) (*hosts, error) {
	h := &hosts{options: o, max: o.maxHosts, byName: make(map[string]*host), recent: list.New()}
	if o.hedger != nil {
		h.shared = &host{hedger: o.hedger}
		return h, nil
	}
	overflow, err := h.build("")
	if err != nil {
		return nil, err
	}
	h.overflow = overflow
	return h, nil
}

// build makes the hedger of a host. It calls the user's function, so no lock may
// be held.
func (h *hosts) build(name string) (*host, error) {
	config := hedgedlimit.Config{Losers: hedgedlimit.Drain(defaultDrain)}
	if h.options.config != nil {
		if err := h.options.config(name, &config); err != nil {
			return nil, err
		}
	}
	if config.Limiter == nil {
		l, err := limiter.New(limiter.Config{Name: name, MaxWaiting: defaultMaxWaiting, MaxWait: defaultMaxWait})
		if err != nil {
			return nil, err
		}
		config.Limiter = l
	}
	hedger, err := hedgedlimit.New(config)
	if err != nil {
		return nil, err
	}
	return &host{name: name, hedger: hedger}, nil
}

// enter returns the host for a call that begins; leave must follow. It returns
// limiter.ErrClosed after close, or the error of the user's configuration.
func (h *hosts) enter(name string) (*host, error) {
	name = strings.ToLower(name)
	found, err := h.find(name, nil)
	if found != nil || err != nil {
		return found, err
	}
	fresh, err := h.build(name)
	if err != nil {
		return nil, err
	}
	return h.find(name, fresh)
}

// find returns the host of that name, or the one to use in its stead. If there is
// none but there is room, it puts fresh there, or returns nil if that is nil.
func (h *hosts) find(name string, fresh *host) (*host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, limiter.ErrClosed
	}
	found := h.shared
	if found == nil {
		found = h.byName[name]
	}
	switch {
	case found != nil:
	case len(h.byName) >= h.max && h.idleLocked() == nil:
		h.overflowed++
		found = h.overflow
	case fresh == nil:
		return nil, nil
	default:
		if len(h.byName) >= h.max {
			h.dropLocked(h.idleLocked())
		}
		fresh.element = h.recent.PushFront(fresh)
		h.byName[name] = fresh
		found = fresh
	}
	found.calls++
	if found.element != nil {
		h.recent.MoveToFront(found.element)
	}
	return found, nil
}

// leave ends a call of the host. Attempts of it may still hold permits.
func (h *hosts) leave(x *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x.calls--
}

// idleLocked returns the idle host that was used least lately, or nil. h.mu must
// be held, so that no call can enter the host until it is dropped.
func (h *hosts) idleLocked() *host {
	for e := h.recent.Back(); e != nil; e = e.Prev() {
		// Without a call nobody can take a permit, only give one back.
		if x := e.Value.(*host); x.calls == 0 && x.hedger.Limiter().InFlight() == 0 {
			return x
		}
	}
	return nil
}

// dropLocked forgets a host. h.mu must be held.
func (h *hosts) dropLocked(x *host) {
	h.recent.Remove(x.element)
	delete(h.byName, x.name)
	h.dropped++
}

// snapshot returns the hosts, the one used last first, and the counts.
func (h *hosts) snapshot() (all []*host, overflowed, dropped uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shared != nil {
		return []*host{h.shared}, 0, 0
	}
	for e := h.recent.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*host))
	}
	return all, h.overflowed, h.dropped
}

// close lets no call enter any more.
func (h *hosts) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}
