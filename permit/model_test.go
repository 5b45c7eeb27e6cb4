package permit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/permit"
)

// caller is one goroutine that asks for a permit. Its fields below result are
// written by that goroutine and read by the test after synctest.Wait.
type caller struct {
	n      int // permits wanted
	since  time.Time
	cancel context.CancelFunc
	result permit.Permit
	err    error
	done   bool
}

// model is a naive ledger: two lists and two numbers. The pool under test is
// compared with it whenever everything has settled.
type model struct {
	t    *rapid.T
	pool *permit.Pool

	limit    int
	lifo     time.Duration // Config.LIFOAfter
	closed   bool
	held     []*caller // in the order of their grants
	overhang []*caller
	waiting  []*caller // oldest first
	granted  int
	refused  int
	released [permit.NumOutcomes]int
	asked    []*caller       // everyone who ever asked in a goroutine
	returned []permit.Permit // handles that must do nothing any more
}

// size is how many permits the callers of a list hold or want.
func size(list []*caller) (n int) {
	for _, c := range list {
		n += c.n
	}
	return n
}

func (m *model) inFlight() int { return size(m.held) }

func (m *model) hold(c *caller) {
	m.held = append(m.held, c)
	m.granted += c.n
}

// next is the place in the queue of who is served next: the oldest, or the newest if the
// oldest has waited for too long and nobody wants more than one.
func (m *model) next() int {
	heavy := slices.ContainsFunc(m.waiting, func(c *caller) bool { return c.n > 1 })
	if m.lifo > 0 && !heavy && time.Since(m.waiting[0].since) > m.lifo {
		return len(m.waiting) - 1
	}
	return 0
}

// grant moves whoever fits from the queue to the holders, in the order of the queue.
func (m *model) grant() {
	for len(m.waiting) > 0 {
		i := m.next()
		c := m.waiting[i]
		if m.inFlight()+c.n > m.limit {
			return
		}
		m.hold(c)
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
}

// ask starts an Acquire in a goroutine of its own.
func (m *model) ask(n int, acquire func(context.Context) (permit.Permit, error)) *caller {
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{n: n, since: time.Now(), cancel: cancel}
	m.asked = append(m.asked, c)
	go func() {
		c.result, c.err = acquire(ctx)
		c.done = true
	}()
	synctest.Wait()
	return c
}

func (m *model) refuse(c *caller, err error) {
	m.want(c, err)
	m.refused++
}

func (m *model) acquire(t *rapid.T) {
	m.enter(m.ask(1, m.pool.Acquire), -1)
}

func (m *model) acquireN(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "n")
	m.enter(m.ask(n, func(ctx context.Context) (permit.Permit, error) { return m.pool.AcquireN(ctx, n) }), -1)
}

func (m *model) acquireWithin(t *rapid.T) {
	maxWaiting := rapid.IntRange(0, 3).Draw(t, "max waiting")
	m.enter(m.ask(1, func(ctx context.Context) (permit.Permit, error) { return m.pool.AcquireWithin(ctx, maxWaiting) }), maxWaiting)
}

// enter says what must have become of a caller who has just asked.
func (m *model) enter(c *caller, maxWaiting int) {
	switch {
	case m.closed:
		m.refuse(c, permit.ErrClosed)
	case c.n > m.limit:
		m.refuse(c, permit.ErrTooMany)
	case len(m.waiting) == 0 && m.inFlight()+c.n <= m.limit:
		m.hold(c)
		m.granting(c)
	case maxWaiting >= 0 && len(m.waiting) >= maxWaiting:
		m.refuse(c, permit.ErrQueueFull)
	default:
		m.waiting = append(m.waiting, c)
	}
}

// granting compares what a permit says of its grant with what the model knows, at the
// time of the grant.
func (m *model) granting(c *caller) {
	want := permit.Grant{InFlight: m.inFlight(), Limit: m.limit}
	if got := c.result.Grant(); got != want {
		m.t.Fatalf("Grant() = %+v, want %+v", got, want)
	}
}

func (m *model) want(c *caller, err error) {
	if !c.done || !errors.Is(c.err, err) {
		m.t.Fatalf("Acquire: done %v, error %v, want %v", c.done, c.err, err)
	}
	if c.result != (permit.Permit{}) {
		m.t.Fatalf("Acquire returned a permit beside the error %v", err)
	}
}

func (m *model) try(t *rapid.T, reserve int) {
	p, ok := m.pool.TryAcquireLeaving(reserve)
	want := !m.closed && len(m.waiting) == 0 && m.limit-m.inFlight() > reserve
	if ok != want {
		t.Fatalf("TryAcquireLeaving(%d) = %v with %d of %d held and %d waiting", reserve, ok, m.inFlight(), m.limit, len(m.waiting))
	}
	if !ok {
		m.refused++
		return
	}
	m.got(p, 1)
}

// got enters a permit that was taken without waiting.
func (m *model) got(p permit.Permit, n int) {
	c := &caller{n: n, cancel: func() {}, result: p, done: true}
	m.hold(c)
	m.granting(c)
}

func (m *model) tryN(t *rapid.T) {
	n := rapid.IntRange(-1, 5).Draw(t, "n")
	p, ok := m.pool.TryAcquireN(n)
	want := n >= 1 && !m.closed && len(m.waiting) == 0 && m.inFlight()+n <= m.limit
	if ok != want {
		t.Fatalf("TryAcquireN(%d) = %v with %d of %d held and %d waiting", n, ok, m.inFlight(), m.limit, len(m.waiting))
	}
	if ok {
		m.got(p, n)
	} else if n >= 1 {
		m.refused++
	}
}

// pick draws one of list. If there is none the step does nothing: a step that is skipped
// counts against a run, and rapid gives up on inputs that skip too often.
func pick[T any](t *rapid.T, list []T, label string) (i int, x T, ok bool) {
	if len(list) == 0 {
		return 0, x, false
	}
	i = rapid.IntRange(0, len(list)-1).Draw(t, label)
	return i, list[i], true
}

func (m *model) release(t *rapid.T) {
	i, c, ok := pick(t, m.held, "holder")
	if !ok {
		return
	}
	o := permit.Outcome(rapid.IntRange(0, permit.NumOutcomes-1).Draw(t, "outcome"))
	if !c.result.Release(o) {
		t.Fatalf("the first Release of a held permit reports false")
	}
	m.released[o] += c.n
	m.end(i)
	m.grant()
}

// end forgets holder i.
func (m *model) end(i int) {
	c := m.held[i]
	m.returned = append(m.returned, c.result)
	m.held = slices.Delete(m.held, i, i+1)
	if j := slices.Index(m.overhang, c); j >= 0 {
		m.overhang = slices.Delete(m.overhang, j, j+1)
	}
	c.cancel()
}

// again uses handles that are spent, and the zero one.
func (m *model) again(t *rapid.T) {
	_, p, _ := pick(t, append(m.returned, permit.Permit{}), "spent")
	p.Abandon()
	if p.Release(permit.Success) {
		t.Fatalf("a spent permit was released again")
	}
	if p.Held() {
		t.Fatalf("a spent permit says it is held")
	}
}

func (m *model) abandon(t *rapid.T) {
	_, c, ok := pick(t, m.held, "holder")
	if !ok {
		return
	}
	c.result.Abandon()
	if !slices.Contains(m.overhang, c) {
		m.overhang = append(m.overhang, c)
	}
}

func (m *model) resize(t *rapid.T) {
	n := rapid.IntRange(-1, 6).Draw(t, "limit")
	if err := m.pool.Resize(n); (err != nil) != (n < 1) {
		t.Fatalf("Resize(%d): %v", n, err)
	}
	if n < 1 {
		return
	}
	m.limit = n
	synctest.Wait()
	m.waiting = slices.DeleteFunc(m.waiting, func(c *caller) bool {
		if c.n > n {
			m.want(c, permit.ErrTooMany)
		}
		return c.n > n
	})
	m.grant()
}

// leave cancels a caller who waits.
func (m *model) leave(t *rapid.T) {
	i, c, ok := pick(t, m.waiting, "waiter")
	if !ok {
		return
	}
	c.cancel()
	synctest.Wait()
	m.want(c, context.Canceled)
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.grant() // a head that was too heavy held up the rest
}

// stay cancels the context of a holder, which must change nothing.
func (m *model) stay(t *rapid.T) {
	_, c, ok := pick(t, m.held, "holder")
	if !ok {
		return
	}
	c.cancel()
}

// race releases a permit and cancels the next in the queue in one instant. Who
// comes first is not ours to say; that the permit goes to exactly one is.
func (m *model) race(t *rapid.T) {
	i, c, ok := pick(t, m.held, "holder")
	if !ok {
		return
	}
	if len(m.waiting) == 0 || m.closed {
		return
	}
	at := m.next()
	next := m.waiting[at]
	steps := []func(){next.cancel, func() { c.result.Release(permit.Success) }}
	if rapid.Bool().Draw(t, "release first") {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		step()
	}
	m.released[permit.Success] += c.n
	m.end(i)
	synctest.Wait()
	if next.err != nil {
		m.want(next, context.Canceled)
		m.waiting = slices.Delete(m.waiting, at, at+1)
		// If it was granted in between, the ledger shows a grant given up.
		if gave := int(m.pool.Stats().Released[permit.Ignored]) - m.released[permit.Ignored]; gave == next.n {
			m.granted += next.n
			m.released[permit.Ignored] += next.n
		}
	}
	m.grant()
}

func (m *model) close(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.pool.Close(ctx); (err == nil) != (len(m.held) == 0) {
		t.Fatalf("Close: %v with %d held", err, len(m.held))
	}
	synctest.Wait()
	for _, c := range m.waiting {
		m.want(c, permit.ErrClosed)
	}
	m.waiting, m.closed = nil, true
}

// check is run after every step.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	if err := m.pool.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	got := m.pool.Stats()
	want := permit.Stats{
		Limit: m.limit, InFlight: m.inFlight(), Waiting: len(m.waiting), Overhang: size(m.overhang),
		Granted: uint64(m.granted), Refused: uint64(m.refused), Closed: m.closed,
	}
	for o, n := range m.released {
		want.Released[o] = uint64(n)
	}
	if got != want {
		t.Fatalf("the pool says %+v, the model %+v", got, want)
	}
	for _, c := range m.held {
		if !c.done || c.err != nil || !c.result.Held() {
			t.Fatalf("a caller that should hold a permit does not: done %v, error %v", c.done, c.err)
		}
	}
	for _, c := range m.waiting {
		if c.done {
			t.Fatalf("a caller that should wait has returned: error %v", c.err)
		}
	}
}

// checkLedger drives a pool and the model side by side.
func checkLedger(t *rapid.T) {
	rapid.SyncTest(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "initial limit")
		config := permit.Config{Limit: limit, LIFOAfter: rapid.SampledFrom([]time.Duration{0, 1, 10}).Draw(t, "LIFO after")}
		pool, err := permit.NewPool(config)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{t: t, pool: pool, limit: limit, lifo: config.LIFOAfter}
		// Also if a check fails: goroutines that still wait would hide why.
		defer func() {
			for _, c := range m.asked {
				c.cancel()
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"acquire":        m.acquire,
			"acquire within": m.acquireWithin,
			"acquire n":      m.acquireN,
			"try":            func(t *rapid.T) { m.try(t, 0) },
			"try n":          m.tryN,
			"try leaving":    func(t *rapid.T) { m.try(t, rapid.IntRange(0, 5).Draw(t, "reserve")) },
			"release":        m.release,
			"release again":  m.again,
			"abandon":        m.abandon,
			"resize":         m.resize,
			"leave":          m.leave,
			"stay":           m.stay,
			"race":           m.race,
			"close":          m.close,
			"sleep":          func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 10).Draw(t, "ns"))) },
			"":               m.check,
		})
		// Whatever happened, everything comes back.
		for len(m.held) > 0 || len(m.waiting) > 0 {
			for _, c := range slices.Clone(m.held) {
				c.result.Release(permit.Success)
				m.released[permit.Success] += c.n
				m.end(slices.Index(m.held, c))
			}
			synctest.Wait()
			m.grant()
		}
		m.check(t)
	})
}

// The ledger agrees with a naive model after any sequence of steps (L1, L2, L4,
// L5, L6): what is out is what is held, a permit ends by its release alone and
// once, grants are below the limit, and the queue is served in its order: first in first
// out, or under pressure last in first out where that was asked for.
func TestLedgerAgreesWithModel(t *testing.T) { rapid.Check(t, checkLedger) }

func FuzzLedger(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkLedger)) }
