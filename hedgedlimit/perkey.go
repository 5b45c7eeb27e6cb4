package hedgedlimit

import (
	"container/list"
	"fmt"
	"sync"
	"time"
)

// PerKey is a delay that learns a quantile for each key that calls are given by Key,
// each as Quantile(config) does. It keeps the maxKeys keys that were used last, about
// 14 KB each; the one that was not used for longest is forgotten for a newcomer, which
// begins to learn anew. It must be 1 at least. A bad field is refused by New.
func PerKey(config QuantileConfig, maxKeys int) Delay {
	return &perKey{config: config, most: maxKeys, byKey: make(map[string]*list.Element), recent: list.New()}
}

// perKey is the delay of no call: each has that of its key.
//
// Invariant: len(byKey) == recent.Len() ≤ most.
type perKey struct {
	// Immutable.
	config QuantileConfig
	most   int

	mu sync.Mutex // a leaf
	// Guarded by mu.

	byKey  map[string]*list.Element
	recent *list.List // of *keyed, the one used last at the front
}

type keyed struct {
	key   string
	delay quantile
}

// of returns the delay of the calls of one key.
func (p *perKey) of(key string) *quantile {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byKey[key]; ok {
		p.recent.MoveToFront(e)
		return &e.Value.(*keyed).delay
	}
	if len(p.byKey) >= p.most {
		// Calls that have it go on with it, and what they teach it is lost.
		last := p.recent.Back()
		delete(p.byKey, p.recent.Remove(last).(*keyed).key)
	}
	k := &keyed{key: key, delay: quantile{config: p.config}}
	p.byKey[key] = p.recent.PushFront(k)
	return &k.delay
}

func (p *perKey) validate() error {
	if p.most < 1 {
		return fmt.Errorf("hedgedlimit: Delay: PerKey keeps %d keys, which must be 1 at least", p.most)
	}
	return (&quantile{config: p.config}).validate()
}

func (p *perKey) next(time.Time, int) (time.Duration, bool) { return 0, false }
func (p *perKey) observe(time.Time, time.Duration, bool)    {}
func (p *perKey) expected() (time.Duration, bool)           { return 0, false }
func (p *perKey) rest(time.Duration) (time.Duration, bool)  { return 0, false }
