package proptest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// A Pool is a pool of permits, or a semaphore, as TestPool drives it: a struct of
// functions, so that a pool of any shape can be put into it. TryAcquire and Acquire
// are required. What else is nil is not there, and not tested.
type Pool struct {
	// TryAcquire takes a permit if one is free at once, and never waits. Release
	// gives the permit back. It may be called many times, from any goroutine, and
	// only the first counts: sync.OnceFunc makes it so where the pool does not.
	TryAcquire func() (release func(), ok bool)

	// Acquire waits for a permit until ctx ends. It then returns an error, and
	// nothing is held. If ctx has ended although a permit is free, it may return
	// either.
	Acquire func(ctx context.Context) (release func(), err error)

	// Resize sets the limit, which is at least 1. It takes nothing back. A raise is
	// for all who fit then.
	Resize func(limit int)

	// InFlight is how many permits are out.
	InFlight func() int

	// Close refuses all further permits, wakes everyone who waits with an error,
	// and returns nil when no permit is out any more. If ctx ends before, it returns
	// an error. It is called once for each pool, so a pool that has goroutines of
	// its own ends them here.
	Close func(ctx context.Context) error

	// AnyOrder says that whoever comes may be served before those who wait, and
	// those in any order. Without it they are served first come, first served, and
	// nobody overtakes.
	AnyOrder bool

	_ struct{}
}

// TestPool checks that the pools that newPool makes keep what a limit promises:
//
//   - never are more permits out than the limit of the instant of a grant;
//   - nobody waits while a permit is free, also after a raise of the limit, and
//     also behind a waiter whose context ends in the instant of its grant;
//   - waiters are served in their order, and nobody overtakes (not with AnyOrder);
//   - a waiter who leaves takes no permit along, and gives back none;
//   - a second release changes nothing, also when another has got the place;
//   - in the end as many permits are free as the limit says, and no goroutine is
//     left.
//
// The subtest model takes random steps in virtual time and compares each with a
// naive reference. The others let goroutines race, and are worth the most under
// -race. They wait for no clock: a goroutine that is not woken is found at once.
//
// A failure says in words what went wrong and lists the steps that led there, the
// shortest that were found:
//
//	#3 was served before #2, who came first
//	after: limit 1; #1 acquires; granted: #1; #2 acquires; #3 acquires; #1 releases
//
// NewPool is called inside the bubble of a test (see [testing/synctest]) and must
// make everything anew that the pool needs. The pool must wait by means that a
// bubble can see, as channels and sync.Cond are: one that polls fails, or does not
// end if it does so without sleeping.
func TestPool(t *testing.T, newPool func(limit int) Pool) {
	t.Helper()
	var noRelease atomic.Bool
	newPool = withReleases(newPool, &noRelease)
	sample := sampleOf(t, newPool)
	for _, part := range []struct {
		name    string
		missing bool
	}{{"Resize", sample.Resize == nil}, {"InFlight", sample.InFlight == nil}, {"Close", sample.Close == nil}} {
		if part.missing {
			t.Logf("the pool has no %s: left out", part.name)
		}
	}
	if sample.AnyOrder {
		t.Log("the pool serves in any order: whether somebody overtakes is left out")
	}
	t.Run("model", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			limit := rapid.IntRange(1, 4).Draw(t, "limit")
			if rapid.IntRange(0, 9).Draw(t, "large") == 9 {
				limit *= 16 // there are not so many callers, but the probe in the end tells
			}
			script := poolScripts(sample).Draw(t, "steps")
			closes := sample.Close != nil && rapid.Bool().Draw(t, "close in the end")
			// Steps that are taken at once may race with those they wake, and a fault
			// that a race uncovers should be found again when the script is shrunk.
			for range 3 {
				m := &poolModel{limit: limit}
				m.bubble(func(run func()) { rapid.SyncTest(t, func(*rapid.T) { run() }) }, func() { m.run(newPool, script, closes) })
				m.noRelease(&noRelease)
				if m.fault != "" {
					t.Fatal(m.fault)
				}
			}
		})
	})
	for _, race := range poolRaces {
		t.Run(race.name, func(t *testing.T) {
			var r poolRecord
			r.bubble(func(run func()) { synctest.Test(t, func(*testing.T) { run() }) }, func() { race.run(&r, newPool) })
			r.noRelease(&noRelease)
			if r.fault != "" {
				t.Fatal(r.fault)
			}
		})
	}
}

// withReleases puts a release into the place of one that is missing, and notes it: a
// fault of the pool, which should be told and not end the process.
func withReleases(newPool func(int) Pool, missing *atomic.Bool) func(int) Pool {
	checked := func(release func(), ok bool) func() {
		if ok && release == nil {
			missing.Store(true)
			return func() {}
		}
		return release
	}
	return func(limit int) Pool {
		p := newPool(limit)
		if try := p.TryAcquire; try != nil {
			p.TryAcquire = func() (func(), bool) {
				release, ok := try()
				return checked(release, ok), ok
			}
		}
		if acquire := p.Acquire; acquire != nil {
			p.Acquire = func(ctx context.Context) (func(), error) {
				release, err := acquire(ctx)
				return checked(release, err == nil), err
			}
		}
		return p
	}
}

// noRelease comes before all other faults, which follow from it.
func (r *poolRecord) noRelease(missing *atomic.Bool) {
	if missing.Load() {
		r.fault = "a permit came without a release: the function is nil"
	}
}

// sampleOf makes one pool, to see what it has.
func sampleOf(t *testing.T, newPool func(limit int) Pool) (sample Pool) {
	t.Helper()
	var r poolRecord
	r.bubble(func(run func()) { synctest.Test(t, func(*testing.T) { run() }) }, func() {
		sample = newPool(1)
		r.end(sample)
	})
	switch {
	case r.fault != "":
		t.Fatal(r.fault)
	case sample.TryAcquire == nil || sample.Acquire == nil:
		t.Fatal("proptest: a Pool needs TryAcquire and Acquire")
	}
	return sample
}

// poolRecord keeps the first fault and what came before it. A bubble in which
// somebody still waits cannot be left, so a fault is written down, all who wait are
// let go, and the test fails outside.
type poolRecord struct {
	fault string
	story []string
	doing string // the call that the test itself is in
}

func (r *poolRecord) failf(format string, args ...any) {
	if r.fault != "" {
		return // what follows may follow from the first
	}
	r.fault = fmt.Sprintf(format, args...)
	if len(r.story) > 0 {
		r.fault += "\nafter: " + strings.Join(r.story, "; ")
	}
}

func (r *poolRecord) note(format string, args ...any) {
	r.doing = fmt.Sprintf(format, args...)
	r.story = append(r.story, r.doing)
}

// bubble runs test in the bubble that enter makes. A deadlock there is a fault like
// any other, or follows from one.
func (r *poolRecord) bubble(enter func(run func()), test func()) {
	returned := false
	defer func() {
		v := recover()
		switch {
		case v == nil:
		case !strings.Contains(fmt.Sprint(v), "deadlock:"):
			panic(v)
		case returned:
			r.failf("in the end goroutines are left that nobody wakes (if they are the pool's own, Close is to end them)")
		default:
			r.failf("a call of the pool that must not wait does not return: %s", r.doing)
		}
	}()
	enter(func() {
		test()
		returned = true
	})
}

// end closes a pool of which nothing is out and for which nobody waits.
func (r *poolRecord) end(p Pool) {
	if p.Close == nil {
		return
	}
	r.doing = "Close with nothing out"
	if err := p.Close(context.Background()); err != nil && r.fault == "" {
		r.failf("Close with nothing out: %v", err)
	}
}

// probe takes what is free, which must be want permits, and gives it back.
func (r *poolRecord) probe(p Pool, want, limit int) {
	var releases []func()
	r.doing = "TryAcquire until it refuses"
	for len(releases) <= limit {
		release, ok := p.TryAcquire()
		if !ok {
			break
		}
		releases = append(releases, release)
	}
	switch n := len(releases); {
	case n < want:
		r.failf("permits were lost: TryAcquire succeeds %d times, %d of %d should be free", n, want, limit)
	case n > want:
		r.failf("permits were invented: TryAcquire succeeds %d times, %d of %d should be free", n, want, limit)
	}
	for _, release := range releases {
		release()
	}
	r.inFlight(p, limit-want)
}

// inFlight compares the pool's own count.
func (r *poolRecord) inFlight(p Pool, want int) {
	if p.InFlight == nil {
		return
	}
	if n := p.InFlight(); n != want {
		r.failf("InFlight() = %d, and %d permits are out", n, want)
	}
}
