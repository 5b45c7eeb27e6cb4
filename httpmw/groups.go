package httpmw

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	defaultMaxWaiting = 64
	// defaultMaxWait is four times the 95th percentile of a host that answers in
	// 25 ms: longer than a hedge would take, a wait only piles up.
	defaultMaxWait = 100 * time.Millisecond
	// defaultDrain is how long a loser may go on where no hedge delay is known, and
	// maxDrain where that is long: a host that slow has worse to fear than a connection.
	defaultDrain = 100 * time.Millisecond
	maxDrain     = time.Second
	// maxDelayKeys is for how many keys of DelayBy a group learns: 14 KB each.
	maxDelayKeys = 32
	// maxKey is the longest key in bytes. A host name has 253 at most.
	maxKey = 300
)

// group is what the requests with one key share: those to one host, unless LimitBy
// says otherwise.
type group struct {
	// Immutable.
	name   string
	hedger *hedgedlimit.Hedger

	// protocol is the major version of HTTP of the latest answer, 0 before any. It is
	// atomic: the losers of a call are dealt with by what its winner has said.
	protocol atomic.Int32

	// calls counts those that have not returned. It is atomic, and negative once the group
	// has left the map: no call begins from there on.
	calls atomic.Int64

	// Guarded by groups.mu.
	element *list.Element // in groups.recent; nil for a group that is not in the map
}

// enter counts a call that begins, unless the group has left the map.
func (x *group) enter() bool {
	for {
		n := x.calls.Load()
		if n < 0 {
			return false
		}
		if x.calls.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends a call of the group. Attempts of it may still hold permits.
func (x *group) leave() { x.calls.Add(-1) }

// groups keeps a bounded number of groups, and drops idle ones for new ones.
//
// Invariants: len(byName) == recent.Len() ≤ max; a group leaves the map only while
// calls == 0 and none of its permits is out.
type groups struct {
	// Immutable after newGroups.
	options *options
	max     int
	// shared is the only group if WithHedger was given; byName stays empty then.
	shared *group
	// overflow serves keys for which there is no room. Nil if shared is not.
	overflow *group

	// latest is the group at the front of recent, or shared; nil before any and after close.
	// Written under mu. Most calls go where the one before them went, and need neither mu
	// nor the map, which were 2 % of a call over a transport that answers at once (profile of
	// BenchmarkHTTP in bench/).
	latest atomic.Pointer[group]

	mu sync.Mutex // a leaf but for the locks of the limiters
	// Guarded by mu.

	byName     map[string]*group
	recent     *list.List    // of *group, the one used last at the front
	looked     *list.Element // where idleLocked has stopped; nil for the back of recent
	overflowed uint64        // calls that overflow served
	dropped    uint64        // groups dropped for newcomers
	closed     bool          // never becomes false again
}

func newGroups(o *options) (*groups, error) {
	g := &groups{options: o, max: o.maxHosts, byName: make(map[string]*group), recent: list.New()}
	if o.hedger != nil {
		g.shared = &group{hedger: o.hedger}
		return g, nil
	}
	overflow, err := g.build("")
	if err != nil {
		return nil, err
	}
	g.overflow = overflow
	return g, nil
}

// build makes a group with its hedger. It calls the user's function, so no lock may
// be held.
func (g *groups) build(name string) (*group, error) {
	x := &group{name: name}
	config := hedgedlimit.Config{Losers: hedgedlimit.ChooseLosers(x.losers), Pushback: g.options.pushback}
	if g.options.config != nil {
		if err := g.options.config(name, &config); err != nil {
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
	if g.options.delayBy != nil && config.Delay == nil && config.Retry == nil {
		config.Delay = hedgedlimit.PerKey(hedgedlimit.QuantileConfig{}, maxDelayKeys)
	}
	hedger, err := hedgedlimit.New(config)
	if err != nil {
		return nil, err
	}
	x.hedger = hedger
	return x, nil
}

// spoke notes the protocol of an answer.
func (x *group) spoke(major int) {
	if v := int32(major); x.protocol.Load() != v { // a store would take the cache line from all others
		x.protocol.Store(v)
	}
}

// losers is the default policy. Cancelling a request of HTTP/1 costs its connection, so
// a loser may go on for as long as it took to send the hedge; it is unlikely to be
// there before that, and a limit full of losers helps nobody. In HTTP/2 and above a
// stream is cancelled alone.
func (x *group) losers(delay time.Duration) hedgedlimit.LoserPolicy {
	if x.protocol.Load() >= 2 {
		return hedgedlimit.Cancel()
	}
	if delay <= 0 {
		delay = defaultDrain
	}
	return hedgedlimit.Drain(min(delay, maxDrain))
}

// key is what the group of a request is found by. It calls the user's function.
func (g *groups) key(r *http.Request) string {
	if f := g.options.limitBy; f != nil {
		if key := f(r); key != "" {
			return bounded(key)
		}
	}
	return bounded(strings.ToLower(r.URL.Host))
}

// bounded returns a key that takes little room: a long one is cut off, and told from
// others that begin like it by a hash of the whole.
func bounded(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return strings.ToValidUTF8(key[:maxKey-1-hex.EncodedLen(len(sum))], "") + "#" + hex.EncodeToString(sum[:])
}

// enter returns the group for a call that begins; its leave must follow. It returns
// limiter.ErrClosed after close, or the error of the user's configuration.
func (g *groups) enter(name string) (*group, error) {
	if x := g.latest.Load(); x != nil && (x == g.shared || x.name == name) && x.enter() {
		return x, nil
	}
	found, err := g.find(name, nil)
	if found != nil || err != nil {
		return found, err
	}
	fresh, err := g.build(name)
	if err != nil {
		return nil, err
	}
	return g.find(name, fresh)
}

// find returns the group of that name, or the one to use in its stead. If there is
// none but there is room, it puts fresh there, or returns nil if that is nil.
func (g *groups) find(name string, fresh *group) (*group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, limiter.ErrClosed
	}
	found := g.shared
	if found == nil {
		found = g.byName[name]
	}
	var idle *group
	full := len(g.byName) >= g.max
	if found == nil && full {
		idle = g.idleLocked()
	}
	switch {
	case found != nil:
	case full && idle == nil:
		g.overflowed++
		found = g.overflow
	case fresh == nil:
		if full {
			idle.reopen() // to be found again when fresh is there
		}
		return nil, nil
	default:
		if full {
			g.dropLocked(idle)
		}
		fresh.element = g.recent.PushFront(fresh)
		g.byName[name] = fresh
		found = fresh
	}
	found.enter() // cannot fail: it is in the map, or never was
	if found.element != nil {
		g.recent.MoveToFront(found.element)
	}
	if found != g.overflow {
		g.latest.Store(found)
	}
	return found, nil
}

// maxLooks bounds how many groups a newcomer looks at, under the lock of all, from the back
// of the list, and again from where the last one has stopped.
const maxLooks = 8

// idleLocked returns an idle group that it has shut, or nil if it has seen none: it looks at
// those that were used least lately, and then at some more, not the same ones in each call.
// So it costs the same however many groups there are, and of them an idle one is found sooner
// or later, be those at the back busy for ever. g.mu must be held.
func (g *groups) idleLocked() *group {
	e := g.recent.Back()
	for n := 0; e != nil && n < maxLooks; n++ {
		if x := e.Value.(*group); x.shut() {
			return x
		}
		e = e.Prev()
	}
	if e == nil {
		return nil
	}
	for range maxLooks {
		if g.looked == nil {
			g.looked = e
		}
		if x := g.looked.Value.(*group); x.shut() {
			return x // which the same call will look at again
		}
		g.looked = g.looked.Prev()
	}
	return nil
}

// shut lets no call into a group that is idle, and reports whether it is. groups.mu must be
// held.
func (x *group) shut() bool {
	if !x.calls.CompareAndSwap(0, math.MinInt64) {
		return false
	}
	// No call can enter from here on, and without one nobody can take a permit, only
	// give one back.
	if x.hedger.Limiter().InFlight() == 0 {
		return true
	}
	x.reopen()
	return false
}

// reopen undoes shut. Who has tried to enter meanwhile waits for groups.mu.
func (x *group) reopen() { x.calls.Store(0) }

// dropLocked forgets a group that was shut. g.mu must be held.
func (g *groups) dropLocked(x *group) {
	if g.looked == x.element {
		g.looked = nil
	}
	g.recent.Remove(x.element)
	delete(g.byName, x.name)
	g.dropped++
}

// snapshot returns the groups, the one used last first, and the counts.
func (g *groups) snapshot() (all []*group, overflowed, dropped uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shared != nil {
		return []*group{g.shared}, 0, 0
	}
	for e := g.recent.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*group))
	}
	return all, g.overflowed, g.dropped
}

// close lets no call enter any more.
func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.latest.Store(nil)
}
