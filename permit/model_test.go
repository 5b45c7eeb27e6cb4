package permit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/permit"
)

// caller is one goroutine that asks for a permit. Its fields below result are
// written by that goroutine and read by the test after synctest.Wait.
type caller struct {
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
	closed   bool
	held     []*caller // in the order of their grants
	overhang []*caller
	waiting  []*caller // oldest first
	granted  int
	released [permit.NumOutcomes]int
	returned []permit.Permit // handles that must do nothing any more
}

// grant moves whoever fits from the queue to the holders, oldest first.
func (m *model) grant() {
	for len(m.waiting) > 0 && len(m.held) < m.limit {
		m.held = append(m.held, m.waiting[0])
		m.waiting = m.waiting[1:]
		m.granted++
	}
}

// ask starts an Acquire in a goroutine of its own.
func (m *model) ask(maxWaiting int) *caller {
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel}
	go func() {
		if maxWaiting < 0 {
			c.result, c.err = m.pool.Acquire(ctx)
		} else {
			c.result, c.err = m.pool.AcquireWithin(ctx, maxWaiting)
		}
		c.done = true
	}()
	synctest.Wait()
	return c
}

func (m *model) acquire(t *rapid.T, maxWaiting int) {
	c := m.ask(maxWaiting)
	switch {
	case m.closed:
		m.want(c, permit.ErrClosed)
	case len(m.waiting) == 0 && len(m.held) < m.limit:
		m.held = append(m.held, c)
		m.granted++
	case maxWaiting >= 0 && len(m.waiting) >= maxWaiting:
		m.want(c, permit.ErrQueueFull)
	default:
		m.waiting = append(m.waiting, c)
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
	want := !m.closed && len(m.waiting) == 0 && m.limit-len(m.held) > reserve
	if ok != want {
		t.Fatalf("TryAcquireLeaving(%d) = %v with %d of %d held and %d waiting", reserve, ok, len(m.held), m.limit, len(m.waiting))
	}
	if ok {
		m.held = append(m.held, &caller{cancel: func() {}, result: p, done: true})
		m.granted++
		if g := p.Grant(); g.InFlight != len(m.held) || g.Limit != m.limit {
			t.Fatalf("Grant() = %+v with %d of %d held", g, len(m.held), m.limit)
		}
	}
}

func pick[T any](t *rapid.T, list []T, label string) (int, T) {
	if len(list) == 0 {
		t.Skip("none")
	}
	i := rapid.IntRange(0, len(list)-1).Draw(t, label)
	return i, list[i]
}

func (m *model) release(t *rapid.T) {
	i, c := pick(t, m.held, "holder")
	o := permit.Outcome(rapid.IntRange(0, permit.NumOutcomes-1).Draw(t, "outcome"))
	if !c.result.Release(o) {
		t.Fatalf("the first Release of a held permit reports false")
	}
	m.released[o]++
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
	_, p := pick(t, append(m.returned, permit.Permit{}), "spent")
	p.Abandon()
	if p.Release(permit.Success) {
		t.Fatalf("a spent permit was released again")
	}
	if p.Held() || p.Grant() != (permit.Grant{}) {
		t.Fatalf("a spent permit says it is held")
	}
}

func (m *model) abandon(t *rapid.T) {
	_, c := pick(t, m.held, "holder")
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
	if n >= 1 {
		m.limit = n
		m.grant()
	}
}

// leave cancels a caller who waits.
func (m *model) leave(t *rapid.T) {
	i, c := pick(t, m.waiting, "waiter")
	c.cancel()
	synctest.Wait()
	m.want(c, context.Canceled)
	m.waiting = slices.Delete(m.waiting, i, i+1)
}

// stay cancels the context of a holder, which must change nothing.
func (m *model) stay(t *rapid.T) {
	_, c := pick(t, m.held, "holder")
	c.cancel()
}

// race releases a permit and cancels the head of the queue in one instant. Who
// comes first is not ours to say; that the permit goes to exactly one is.
func (m *model) race(t *rapid.T) {
	i, c := pick(t, m.held, "holder")
	if len(m.waiting) == 0 || m.closed {
		t.Skip("nobody waits")
	}
	head := m.waiting[0]
	steps := []func(){head.cancel, func() { c.result.Release(permit.Success) }}
	if rapid.Bool().Draw(t, "release first") {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		step()
	}
	m.released[permit.Success]++
	m.end(i)
	synctest.Wait()
	if head.err != nil {
		m.want(head, context.Canceled)
		m.waiting = m.waiting[1:]
		// If it was granted in between, the ledger shows a grant given up.
		if gave := int(m.pool.Stats().Released[permit.Ignored]) - m.released[permit.Ignored]; gave == 1 {
			m.granted++
			m.released[permit.Ignored]++
		}
	}
	m.grant()
}

func (m *model) close(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
		t.Skip("rarely")
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
		Limit: m.limit, InFlight: len(m.held), Waiting: len(m.waiting), Overhang: len(m.overhang),
		Granted: uint64(m.granted), Closed: m.closed,
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
		pool, err := permit.NewPool(permit.Config{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		m := &model{t: t, pool: pool, limit: limit}
		t.Repeat(map[string]func(*rapid.T){
			"acquire":        func(t *rapid.T) { m.acquire(t, -1) },
			"acquire within": func(t *rapid.T) { m.acquire(t, rapid.IntRange(0, 3).Draw(t, "max waiting")) },
			"try":            func(t *rapid.T) { m.try(t, 0) },
			"try leaving":    func(t *rapid.T) { m.try(t, rapid.IntRange(0, 5).Draw(t, "reserve")) },
			"release":        m.release,
			"release again":  m.again,
			"abandon":        m.abandon,
			"resize":         m.resize,
			"leave":          m.leave,
			"stay":           m.stay,
			"race":           m.race,
			"close":          m.close,
			"":               m.check,
		})
		// Whatever happened, everything comes back.
		for len(m.held) > 0 || len(m.waiting) > 0 {
			for _, c := range slices.Clone(m.held) {
				c.result.Release(permit.Success)
				m.released[permit.Success]++
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
// once, grants are below the limit, and the queue is served in its order.
func TestLedgerAgreesWithModel(t *testing.T) { rapid.Check(t, checkLedger) }

func FuzzLedger(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkLedger)) }
