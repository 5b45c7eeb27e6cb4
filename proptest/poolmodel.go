package proptest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// poolStep is one step of a script.
type poolStep struct {
	do   string
	pick int // whom it concerns, modulo their number; or the new limit
	// atOnce says that the next step follows before anyone who was woken has run.
	// It counts only where the outcome is decided all the same.
	atOnce bool
}

func (s poolStep) GoString() string {
	text := fmt.Sprintf("%s %d", s.do, s.pick)
	if s.atOnce {
		text += ", and at once"
	}
	return text
}

func poolScripts(sample Pool) *rapid.Generator[[]poolStep] {
	todo := []string{"acquire", "try", "release", "cancel", "release again", "acquire late", "cancel a holder", "sleep"}
	if sample.Resize != nil {
		todo = slices.Insert(todo, 3, "resize")
	}
	// A slice of slices, since a slice alone has six elements on average.
	some := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) poolStep {
		return poolStep{
			do:     rapid.SampledFrom(todo).Draw(t, "do"),
			pick:   rapid.IntRange(0, 5).Draw(t, "pick"),
			atOnce: rapid.Bool().Draw(t, "at once"),
		}
	}), 1, 20)
	return rapid.Map(rapid.SliceOfN(some, 1, 20), func(s [][]poolStep) []poolStep { return slices.Concat(s...) })
}

// asker is one who asks for a permit. The fields of the second group are written by
// its goroutine and read when all goroutines have settled.
type asker struct {
	id      int // in the order of their coming
	cancel  context.CancelFunc
	leaving bool // its context has ended

	returned bool
	release  func()
	err      error
}

func (a *asker) String() string { return fmt.Sprintf("#%d", a.id) }

// poolModel is the reference: a limit, who holds, and who waits.
type poolModel struct {
	poolRecord
	pool    Pool
	limit   int
	held    []*asker
	waiting []*asker // oldest first
	spent   []*asker // have released
	all     []*asker
}

func (m *poolModel) run(newPool func(int) Pool, script []poolStep, closes bool) {
	m.pool = newPool(m.limit)
	m.story = append(m.story, fmt.Sprintf("limit %d", m.limit))
	defer m.unwind()
	for _, s := range script {
		if !m.step(s) {
			m.settle()
		}
		if m.fault != "" {
			return
		}
	}
	m.settle()
	if m.fault != "" {
		return
	}
	if closes {
		m.close()
		return
	}
	// Whoever holds or waits gets his permit and gives it back.
	for len(m.held) > 0 && m.fault == "" {
		m.release(0)
		m.settle()
	}
	if m.fault == "" {
		m.note("in the end")
		m.probe(m.pool, m.limit, m.limit)
		m.end(m.pool)
	}
}

// step takes one step, and reports whether the next may follow at once.
func (m *poolModel) step(s poolStep) (unsettled bool) {
	among := func(n int) int { return s.pick % n }
	switch {
	case s.do == "acquire":
		m.acquire(false)
		return false // who comes next must come later
	case s.do == "acquire late":
		m.acquire(true)
		return false
	case s.do == "try":
		m.try()
	case s.do == "release" && len(m.held) > 0:
		m.release(among(len(m.held)))
	case s.do == "release again" && len(m.spent) > 0:
		a := m.spent[among(len(m.spent))]
		m.note("%v releases again", a)
		a.release()
	case s.do == "cancel" && len(m.waiting) > 0:
		a := m.waiting[among(len(m.waiting))]
		m.note("%v is cancelled", a)
		a.leaving = true
		a.cancel()
	case s.do == "cancel a holder" && len(m.held) > 0:
		a := m.held[among(len(m.held))]
		m.note("the context of %v ends, who holds", a)
		a.cancel()
	case s.do == "resize":
		m.settle() // what the old limit still granted must be known
		m.limit = 1 + s.pick
		m.note("resize to %d", m.limit)
		m.pool.Resize(m.limit)
	case s.do == "sleep":
		m.note("an hour passes")
		time.Sleep(time.Hour)
		return false
	}
	if s.atOnce {
		m.story = append(m.story, "at once")
	}
	return s.atOnce
}

func (m *poolModel) newAsker() *asker {
	a := &asker{id: len(m.all) + 1, cancel: func() {}}
	m.all = append(m.all, a)
	return a
}

func (m *poolModel) acquire(late bool) *asker {
	ctx, cancel := context.WithCancel(context.Background())
	a := m.newAsker()
	a.cancel = cancel
	if m.note("%v acquires", a); late {
		m.note("with a context that has ended")
		a.leaving = true
		cancel()
	}
	m.waiting = append(m.waiting, a)
	go func() {
		a.release, a.err = m.pool.Acquire(ctx)
		a.returned = true
	}()
	return a
}

func (m *poolModel) try() {
	a := m.newAsker()
	m.note("%v tries", a)
	var ok bool
	a.release, ok = m.pool.TryAcquire()
	a.returned = true
	// Those who wait may have been woken, and not yet run: then the place is theirs.
	var first []*asker
	for _, w := range m.waiting {
		if !w.leaving {
			first = append(first, w)
		}
	}
	room := m.limit - len(m.held)
	switch {
	case ok && a.release == nil:
		m.failf("TryAcquire granted without a release function")
	case ok && room <= 0:
		m.failf("TryAcquire succeeded with %s", m.out())
	case ok && room <= len(first) && !m.pool.AnyOrder:
		m.failf("TryAcquire of %v overtook %v, with %s", a, first, m.out())
	case !ok && room > 0 && len(m.waiting) == 0:
		m.failf("TryAcquire refused with %s and nobody waiting", m.out())
	}
	if ok {
		m.held = append(m.held, a)
		m.story[len(m.story)-1] += ": granted"
	} else {
		m.story[len(m.story)-1] += ": refused"
	}
}

func (m *poolModel) release(i int) {
	a := m.held[i]
	m.note("%v releases", a)
	m.held = slices.Delete(m.held, i, i+1)
	m.spent = append(m.spent, a)
	a.release()
}

func (m *poolModel) out() string { return fmt.Sprintf("%d of %d permits out", len(m.held), m.limit) }

// settle lets everyone come to rest and compares who has got a permit with who
// should have.
func (m *poolModel) settle() {
	synctest.Wait()
	var granted, still []*asker
	for _, a := range m.waiting {
		switch {
		case !a.returned && a.leaving:
			m.failf("%v waits on although its context has ended", a)
		case !a.returned:
			still = append(still, a)
		case a.err == nil && a.release == nil:
			m.failf("%v was granted without a release function", a)
		case a.err == nil:
			granted = append(granted, a)
		case !a.leaving:
			m.failf("%v got the error %q although its context has not ended", a, a.err)
		}
	}
	want := min(max(m.limit-len(m.held), 0), len(granted)+len(still))
	switch {
	case len(granted) > want:
		m.failf("a permit too many: %v granted with %s, %d fit", granted, m.out(), want)
	case len(granted) < want:
		m.failf("%v sleep although %d more fit: the limit is %d, and %d permits are out", still, want-len(granted), m.limit, len(m.held)+len(granted))
	case len(granted) > 0 && len(still) > 0 && granted[len(granted)-1].id > still[0].id && !m.pool.AnyOrder:
		m.failf("%v was served before %v, who came first", granted[len(granted)-1], still[0])
	}
	if len(granted) > 0 {
		m.story = append(m.story, fmt.Sprintf("granted: %v", strings.Trim(fmt.Sprint(granted), "[]")))
	}
	m.held, m.waiting = append(m.held, granted...), still
	m.inFlight(m.pool, len(m.held))
}

// close closes the pool as it is, with some who hold and some who wait.
func (m *poolModel) close() {
	m.note("close")
	shut := m.pool.Close
	m.pool.Close = nil // once is enough
	var err error
	closed := false
	go func() {
		err = shut(context.Background())
		closed = true
	}()
	synctest.Wait()
	waiting := m.waiting
	m.waiting = nil
	if m.note("Acquire after Close"); m.fault == "" {
		waiting = append(waiting, m.acquire(false))
		synctest.Wait()
	}
	for _, a := range waiting {
		switch {
		case !a.returned:
			m.failf("%v waits on after Close", a)
		case a.err == nil:
			m.failf("%v was granted by a closed pool", a)
		}
	}
	m.note("TryAcquire after Close")
	if _, ok := m.pool.TryAcquire(); ok {
		m.failf("TryAcquire succeeded on a closed pool")
	}
	if closed && len(m.held) > 0 {
		m.failf("Close returned %v with %s", err, m.out())
	}
	for len(m.held) > 0 {
		m.release(0)
	}
	synctest.Wait()
	switch {
	case !closed:
		m.failf("Close does not return although every permit has come back")
	case err != nil:
		m.failf("Close returned the error %q when every permit had come back", err)
	}
	m.inFlight(m.pool, 0)
}

// unwind lets everyone go, so that the bubble can be left.
func (m *poolModel) unwind() {
	if m.fault == "" {
		return
	}
	for _, a := range m.all {
		a.cancel()
	}
	synctest.Wait()
	var releases []func()
	for _, a := range m.all {
		if a.returned && a.release != nil {
			releases = append(releases, a.release)
		}
	}
	for _, release := range releases {
		release()
	}
	if m.pool.Close != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = m.pool.Close(ctx)
	}
}
