package limiter

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"weak"
)

// defaultGroupMax is GroupConfig.Max if that is 0. A limiter takes some 20 to 30 KB.
const defaultGroupMax = 256

// maxLooks is how many busy limiters are passed over in search of an idle one.
const maxLooks = 64

// GroupConfig describes a group.
type GroupConfig struct {
	// Config returns the configuration of the limiter of a key, with an Algorithm of its
	// own or nil. It is called when a key comes up, without locks, and once by NewGroup
	// with the key "" for the limiter that the rest share. A Name that is empty becomes
	// the key. Nil means the zero Config for each.
	Config func(key string) Config

	// Max is how many limiters are kept. 0 means 256.
	Max int

	_ struct{}
}

// A Group keeps a limiter for each key: a host, a method, a tenant. It keeps a bounded
// number. A key for which there is no room takes the place of the idle limiter that was
// used least lately; what that one had learnt is forgotten. One with permits out is
// never dropped: if there is no idle one, newcomers share one limiter, the overflow.
//
// All methods may be called from any number of goroutines. A group must be made by
// NewGroup, and starts no goroutine.
type Group struct {
	// Immutable after NewGroup.
	config   GroupConfig
	overflow *Limiter

	mu sync.Mutex // a leaf; no foreign code runs under it
	// Guarded by mu.
	// Invariants: len(byKey) == recent.Len() ≤ config.Max, and no key is in both byKey and
	// dropped.

	byKey  map[string]*list.Element
	recent *list.List // of *member, the one used last at the front
	// dropped are those that have left byKey, for as long as somebody holds them: who has
	// got a limiter and not yet a permit may lose the place in the map, but the key has
	// one limiter all the same.
	dropped map[string]weak.Pointer[Limiter]
	sweep   int // size of dropped at which those that are gone are forgotten
	stats   GroupStats
	closed  bool // never becomes false again
}

type member struct {
	key     string
	limiter *Limiter
}

// GroupStats is a snapshot of a group.
type GroupStats struct {
	// Limiters are the limiters in the map, the one used last first.
	Limiters []KeyStats
	// Overflow is what all keys share that found no room.
	Overflow Stats
	// Overflowed counts the calls of Get that were given Overflow.
	Overflowed uint64
	// Dropped counts the limiters that had to leave.
	Dropped uint64
	// Failed counts the calls of Get that were given Overflow because the Config of the
	// key makes no sense, and Err is the last error.
	Failed uint64
	Err    error
}

// KeyStats is a snapshot of the limiter of a key.
type KeyStats struct {
	Key string
	Stats
}

// NewGroup returns a group that keeps no limiter yet. It returns nil and an error if Max
// is below 0 or the Config of the key "" makes no sense.
func NewGroup(config GroupConfig) (*Group, error) {
	switch {
	case config.Max < 0:
		return nil, fmt.Errorf("limiter: Max %d is negative", config.Max)
	case config.Max == 0:
		config.Max = defaultGroupMax
	}
	if config.Config == nil {
		config.Config = func(string) Config { return Config{} }
	}
	g := &Group{
		config: config, byKey: make(map[string]*list.Element), recent: list.New(),
		dropped: make(map[string]weak.Pointer[Limiter]), sweep: config.Max,
	}
	overflow, err := g.build("")
	if err != nil {
		return nil, err
	}
	g.overflow = overflow
	return g, nil
}

func (g *Group) build(key string) (*Limiter, error) {
	config := g.config.Config(key)
	if config.Name == "" {
		config.Name = key
	}
	return New(config)
}

// Get returns the limiter of a key, which it makes if there is none, or the one that
// all newcomers share. It is never nil. A key has one limiter for as long as somebody
// holds it or a permit of it: better ask for it with each call than keep it, since one
// that is kept may no longer be in the map, and so not in Stats. If the Config of the
// key makes no sense, it is as if there were no room; see GroupStats.Err.
func (g *Group) Get(key string) *Limiter {
	if l := g.find(key, nil); l != nil {
		return l
	}
	fresh, err := g.build(key) // calls the user's function
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stats.Failed++
		g.stats.Err = fmt.Errorf("limiter: Config of %q: %w", key, err)
		return g.overflow
	}
	return g.find(key, fresh)
}

// find returns the limiter of a key, or the one to use in its stead. If there is none
// but there is room, it puts fresh there, or returns nil if that is nil.
func (g *Group) find(key string, fresh *Limiter) *Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.byKey[key]; e != nil {
		g.recent.MoveToFront(e)
		return e.Value.(*member).limiter
	}
	old := g.dropped[key].Value() // nil if there is none, or nobody holds it
	idle := g.idleLocked()
	switch {
	case g.closed || old == nil && idle == nil && len(g.byKey) >= g.config.Max:
		if old != nil {
			return old // closed too
		}
		g.stats.Overflowed++
		return g.overflow
	case old != nil:
		fresh = old
	case fresh == nil:
		return nil
	}
	if len(g.byKey) >= g.config.Max {
		if idle == nil {
			return fresh // somebody holds it, and so it stays what it is
		}
		g.dropLocked(idle)
	}
	delete(g.dropped, key)
	g.byKey[key] = g.recent.PushFront(&member{key, fresh})
	return fresh
}

// idleLocked returns the idle limiter that was used least lately, if the map is full
// and there is one. mu must be held, as for all that follow.
func (g *Group) idleLocked() *list.Element {
	if len(g.byKey) < g.config.Max {
		return nil
	}
	looks := 0
	for e := g.recent.Back(); e != nil && looks < maxLooks; e = e.Prev() {
		// Whoever waits does so because permits are out.
		if e.Value.(*member).limiter.InFlight() == 0 {
			return e
		}
		looks++
	}
	if looks == maxLooks { // so that others are looked at next time
		for range looks {
			g.recent.MoveToFront(g.recent.Back())
		}
	}
	return nil
}

func (g *Group) dropLocked(e *list.Element) {
	m := g.recent.Remove(e).(*member)
	delete(g.byKey, m.key)
	g.dropped[m.key] = weak.Make(m.limiter)
	g.stats.Dropped++
	if len(g.dropped) < g.sweep {
		return
	}
	for key, l := range g.dropped {
		if l.Value() == nil {
			delete(g.dropped, key)
		}
	}
	g.sweep = max(g.config.Max, 2*len(g.dropped)) // so that a sweep costs little for each
}

// Stats returns a snapshot: of at most Max limiters, and of what they share. Each
// limiter is of an instant of its own.
func (g *Group) Stats() GroupStats {
	g.mu.Lock()
	s := g.stats
	members := make([]*member, 0, g.recent.Len())
	for e := g.recent.Front(); e != nil; e = e.Next() {
		members = append(members, e.Value.(*member))
	}
	g.mu.Unlock()
	s.Limiters = make([]KeyStats, len(members))
	for i, m := range members {
		s.Limiters[i] = KeyStats{Key: m.key, Stats: m.limiter.Stats()}
	}
	s.Overflow = g.overflow.Stats()
	return s
}

// Close closes every limiter of the group, those included that are held though they
// have left it, and waits until all their permits have been released. It returns nil
// then, or ctx.Err() if ctx ends before. Keys that come up later get a limiter that is
// closed.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	all := []*Limiter{g.overflow}
	for e := g.recent.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*member).limiter)
	}
	for _, l := range g.dropped {
		if l := l.Value(); l != nil {
			all = append(all, l)
		}
	}
	g.mu.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, l := range all {
		_ = l.Close(ended) // first all are closed, and only then waited for
	}
	var errs error
	for _, l := range all {
		errs = errors.Join(errs, l.Close(ctx))
	}
	if errs != nil {
		return ctx.Err()
	}
	return nil
}
