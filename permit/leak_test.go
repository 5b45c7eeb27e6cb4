package permit_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// collect runs the collector until done says so. Cleanups run some time after the
// collection that found the object gone, on a goroutine of the runtime.
func collect(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("after many collections: not %s", what)
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// settled runs the collector often enough that what could be found would have been.
func settled() {
	var gone atomic.Bool
	for range 3 {
		gone.Store(false)
		x := new(*int)
		runtime.AddCleanup(x, func(struct{}) { gone.Store(true) }, struct{}{})
		for !gone.Load() {
			runtime.GC()
			runtime.Gosched()
		}
	}
}

type leaks chan permit.Leak

func newLeakyPool(t testing.TB, config permit.Config) (*permit.Pool, leaks) {
	t.Helper()
	found := make(leaks, 100)
	config.OnLeak = func(l permit.Leak) { found <- l }
	pool, err := permit.NewPool(config)
	if err != nil {
		t.Fatal(err)
	}
	return pool, found
}

//go:noinline
func acquireAndForget(pool *permit.Pool) { _, _ = pool.TryAcquire() }

// L2: a permit whose handle is lost is counted, reported once, and stays in flight.
func TestLostPermitIsReportedOnceAndStaysInFlight(t *testing.T) {
	pool, found := newLeakyPool(t, permit.Config{Limit: 2, Base: time.Now().Add(-time.Hour)})
	acquireAndForget(pool)
	collect(t, "found", func() bool { return len(found) > 0 })
	settled()
	if len(found) != 1 {
		t.Fatalf("reported %d times", len(found))
	}
	if l := <-found; l.Permits != 1 || l.Reclaimed || l.Held < 0 || l.Held > time.Minute || l.Stack != "" {
		t.Errorf("reported as %+v", l)
	}
	if s := pool.Stats(); s.Leaked != 1 || s.InFlight != 1 || s.Granted != 1 {
		t.Errorf("%+v", s)
	}
	// Its place is not given to anyone, and the other one still works.
	p, ok := pool.TryAcquire()
	if _, second := pool.TryAcquire(); !ok || second {
		t.Errorf("beside a leaked permit: %v, then %v", ok, second)
	}
	p.Release(permit.Success)
	if err := pool.CheckInvariants(); err != nil {
		t.Error(err)
	}
}

// With ReclaimLeaks the place comes back, to those who wait first, and counts as
// Ignored.
func TestLostPermitIsGivenBackIfAskedFor(t *testing.T) {
	pool, found := newLeakyPool(t, permit.Config{Limit: 1, ReclaimLeaks: true})
	for round := range 3 { // its record is used again, and lost again
		acquireAndForget(pool)
		granted := make(chan error)
		go func() {
			p, err := pool.Acquire(context.Background())
			p.Release(permit.Success)
			granted <- err
		}()
		collect(t, "given back", func() bool { return len(found) > 0 })
		if l := <-found; !l.Reclaimed {
			t.Errorf("reported as %+v", l)
		}
		if err := <-granted; err != nil {
			t.Fatal(err)
		}
		if s := pool.Stats(); s.Leaked != uint64(round+1) || s.Released[permit.Ignored] != uint64(round+1) || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	}
	probe(t, pool)
}

// Whoever still has a handle has not lost it, and what is released is not lost.
func TestNothingElseIsALeak(t *testing.T) {
	pool, found := newLeakyPool(t, permit.Config{Limit: 100, ReclaimLeaks: true})
	var held []permit.Permit
	for i := range 50 { // more than have a place in the fast part of the books
		p, _ := pool.TryAcquire()
		if i%2 == 0 {
			p.Abandon()
		}
		held = append(held, p)
	}
	settled()
	for _, p := range held {
		if !p.Held() || !p.Release(permit.Success) {
			t.Fatal("a permit was lost although its handle was not")
		}
	}
	held = nil
	settled()
	if s := pool.Stats(); len(found) != 0 || s.Leaked != 0 {
		t.Errorf("reported %d, counted %d", len(found), s.Leaked)
	}
	probe(t, pool)
}

// Weighted and abandoned permits are lost as they were held.
func TestLostPermitCountsAsItsWeight(t *testing.T) {
	pool, found := newLeakyPool(t, permit.Config{Limit: 5, ReclaimLeaks: true})
	func() {
		p, err := pool.AcquireN(context.Background(), 3)
		if err != nil {
			t.Fatal(err)
		}
		p.Abandon()
	}()
	collect(t, "given back", func() bool { return len(found) > 0 })
	if l := <-found; l.Permits != 3 {
		t.Errorf("reported as %+v", l)
	}
	want := permit.Stats{Limit: 5, Granted: 3, Leaked: 3}
	want.Released[permit.Ignored] = 3
	if got := pool.Stats(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	probe(t, pool)
}

//go:noinline
func theCulprit(pool *permit.Pool) { acquireAndForget(pool) }

// The report says where the permit was acquired: by the one who asked, also if it was
// handed over by somebody else.
func TestReportNamesTheCulprit(t *testing.T) {
	pool, found := newLeakyPool(t, permit.Config{Limit: 1, StackEvery: 1, ReclaimLeaks: true})
	theCulprit(pool)
	collect(t, "found", func() bool { return len(found) > 0 })
	if l := <-found; !strings.Contains(l.Stack, "theCulprit") || strings.HasPrefix(l.Stack, "github.com/holdfast-go/holdfast/permit.(*Pool)") {
		t.Errorf("stack:\n%s", l.Stack)
	}

	p, _ := pool.TryAcquire()
	done := make(chan struct{})
	go theWaitingCulprit(pool, done)
	collect(t, "waiting", func() bool { return pool.Stats().Waiting == 1 })
	p.Release(permit.Success)
	<-done
	collect(t, "found", func() bool { return len(found) > 0 })
	if l := <-found; !strings.Contains(l.Stack, "theWaitingCulprit") {
		t.Errorf("stack:\n%s", l.Stack)
	}
	runtime.KeepAlive(pool)
}

// Nor is the stack of whoever made room shown for the one who waited, sampled or not.
func TestWhoMakesRoomIsNotBlamed(t *testing.T) {
	pool, found := newLeakyPool(t, permit.Config{Limit: 1, StackEvery: 2, ReclaimLeaks: true})
	for range 40 {
		p, _ := pool.TryAcquire()
		done := make(chan struct{})
		go theWaitingCulprit(pool, done)
		collect(t, "waiting", func() bool { return pool.Stats().Waiting == 1 })
		theRoomMaker(pool)
		<-done
		collect(t, "found", func() bool { return len(found) > 0 })
		if l := <-found; strings.Contains(l.Stack, "theRoomMaker") {
			t.Fatalf("stack:\n%s", l.Stack)
		}
		_ = pool.Resize(1)
		p.Release(permit.Success)
	}
	probe(t, pool)
}

//go:noinline
func theRoomMaker(pool *permit.Pool) { _ = pool.Resize(2) }

//go:noinline
func theWaitingCulprit(pool *permit.Pool, done chan<- struct{}) {
	_, _ = pool.Acquire(context.Background())
	close(done)
}

//go:noinline
func theInnocent(pool *permit.Pool) {
	p, _ := pool.TryAcquire()
	p.Release(permit.Success)
}

// A stack that was noted for an earlier permit of the same record is not shown for a
// later one, sampled or not. Who is sampled is drawn by lot, so that whoever takes turns
// with others is not always the one.
func TestStackIsOfThePermitThatWasLost(t *testing.T) {
	pool, found := newLeakyPool(t, permit.Config{Limit: 1, StackEvery: 2, ReclaimLeaks: true})
	sampled := 0
	const rounds = 60
	for range rounds {
		theInnocent(pool)
		theCulprit(pool)
		collect(t, "found", func() bool { return len(found) > 0 })
		l := <-found
		if strings.Contains(l.Stack, "theInnocent") {
			t.Fatalf("stack:\n%s", l.Stack)
		}
		if l.Stack != "" {
			sampled++
		}
	}
	if sampled < rounds/10 || sampled > rounds-rounds/10 {
		t.Errorf("%d of %d were sampled", sampled, rounds)
	}
	probe(t, pool)
}

// L10: the hook may end its goroutine, as t.Fatal does. The runtime has one for all
// cleanups of the process, and it must not be that.
func TestGoexitOfOnLeakEndsThere(t *testing.T) {
	var calls atomic.Int32
	pool, err := permit.NewPool(permit.Config{Limit: 3, ReclaimLeaks: true, OnLeak: func(permit.Leak) {
		calls.Add(1)
		runtime.Goexit()
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		acquireAndForget(pool)
	}
	collect(t, "called three times", func() bool { return calls.Load() == 3 })
	settled() // other cleanups go on
	probe(t, pool)
}

// L10: the hook runs on a goroutine of the runtime, where a panic would end the process.
func TestPanicOfOnLeakEndsThere(t *testing.T) {
	log := make(lines, 10)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	var calls atomic.Int32
	pool, err := permit.NewPool(permit.Config{Limit: 2, ReclaimLeaks: true, OnLeak: func(permit.Leak) {
		calls.Add(1)
		panic("out of the hook")
	}})
	if err != nil {
		t.Fatal(err)
	}
	acquireAndForget(pool)
	acquireAndForget(pool)
	collect(t, "called twice", func() bool { return calls.Load() == 2 })
	for range 2 {
		if line := <-log; !strings.Contains(line, "out of the hook") {
			t.Errorf("logged: %s", line)
		}
	}
	probe(t, pool)
}

// lines are what a logger has written, one each. The logger writes one at a time.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// The hook may use the pool: no lock is held.
func TestOnLeakMayUseThePool(t *testing.T) {
	var pool *permit.Pool
	done := make(chan permit.Stats, 1)
	pool, err := permit.NewPool(permit.Config{Limit: 2, OnLeak: func(permit.Leak) {
		p, _ := pool.TryAcquire()
		p.Release(permit.Success)
		_ = pool.Resize(3)
		done <- pool.Stats()
	}})
	if err != nil {
		t.Fatal(err)
	}
	acquireAndForget(pool)
	collect(t, "called", func() bool { return len(done) > 0 })
	if s := <-done; s.Leaked != 1 || s.Limit != 3 {
		t.Errorf("%+v", s)
	}
	runtime.KeepAlive(pool)
}

// L11: a pool that nobody uses any more is collected, with its records and whatever
// watches them, also if permits were lost with it.
func TestForgottenPoolIsCollected(t *testing.T) {
	var gone atomic.Int32
	func() {
		for i := range 3 {
			pool, err := permit.NewPool(permit.Config{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			var held []permit.Permit
			for range 30 {
				p, _ := pool.TryAcquire()
				held = append(held, p)
			}
			for _, p := range held[i:] {
				p.Release(permit.Success)
			}
			runtime.AddCleanup(pool, func(struct{}) { gone.Add(1) }, struct{}{})
		}
	}()
	collect(t, "collected", func() bool { return gone.Load() == 3 })
}

// A permit keeps its pool: a Release that comes late still finds it.
func TestPermitKeepsItsPool(t *testing.T) {
	var gone atomic.Bool
	p := func() permit.Permit {
		pool, _ := permit.NewPool(permit.Config{Limit: 1})
		runtime.AddCleanup(pool, func(struct{}) { gone.Store(true) }, struct{}{})
		p, _ := pool.TryAcquire()
		return p
	}()
	settled()
	if gone.Load() || !p.Held() || !p.Release(permit.Success) {
		t.Errorf("the pool is gone: %v", gone.Load())
	}
}
