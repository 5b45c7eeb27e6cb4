package proptest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
)

// A Runner runs work under a permit of a limiter, and returns when its caller need
// not wait any longer: when the work has returned, or before, if ctx ends.
// It may run the work in another goroutine, cancel its context, and recover from
// its panics. If it runs the work more than once, each run needs its own permit.
type Runner func(ctx context.Context, work func(context.Context) error) error

// TestPermitLifetime checks that a middleware holds its permits for as long as the
// work runs. Wrap makes a Runner whose work takes its permits from l. Random callers
// then use it, in virtual time: they cancel, run into deadlines and leave; their
// work fails, panics, calls runtime.Goexit, and ignores cancellation. The work is
// counted inside itself. At every instant as many permits are out as work runs, or
// more: none is given back early by a cancellation, a time-out, a panic, or a caller
// who has left, and no work runs without one. In the end no permit is out: none was
// lost. And a caller who is alone and stays has its work run.
//
// Panics of the work may reach the caller of the Runner. It must start nothing that
// outlives the work. A pool that is not part of a limiter is for TestPool.
func TestPermitLifetime(t *testing.T, wrap func(l *limiter.Limiter) (Runner, error)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		fixed, err := gradient.NewFixed(rapid.IntRange(1, 4).Draw(t, "limit"))
		if err != nil {
			t.Fatal(err)
		}
		config := limiter.Config{
			Algorithm:  fixed,
			MaxWaiting: rapid.SampledFrom([]int{limiter.Unbounded, 0, 2}).Draw(t, "max waiting"),
			Reserve:    limiter.NoReserve,
		}
		scripts := rapid.SliceOfN(visits(), 1, maxVisits).Draw(t, "callers")
		defer func() {
			if v := recover(); v != nil {
				if strings.Contains(fmt.Sprint(v), "deadlock:") {
					t.Fatal("in the end goroutines are left that nobody wakes: the Runner started something that outlives the work")
				}
				panic(v)
			}
		}()
		rapid.SyncTest(t, func(t *rapid.T) {
			l, err := limiter.New(config)
			if err != nil {
				t.Fatal(err)
			}
			run, err := wrap(l)
			if err != nil {
				t.Fatal(err)
			}
			s := &lifetimes{limiter: l}
			s.open = len(scripts)
			for _, script := range scripts {
				go s.call(run, script)
			}
			const step = 5 * time.Millisecond // half of the scripts' grid
			for range int(patience / step) {
				synctest.Wait()
				if s.check(false) {
					break
				}
				time.Sleep(step)
			}
			s.check(true)
			if len(scripts) == 1 && scripts[0].leaves == 0 {
				s.served()
			}
			// Only now may the check fail: a bubble in which somebody still waits
			// cannot be left. So those are woken first.
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			_ = l.Close(gone)
			synctest.Wait()
			if s.fault != "" {
				t.Fatal(s.fault)
			}
		})
	})
}

// patience is enough for all callers of a check one after the other, each of which
// runs its work five times.
const patience = maxVisits * (5*maxTakes + 20) * 10 * time.Millisecond

// The scripts of the callers, in steps of 10 ms.
const maxVisits, maxTakes = 8, 12

// visit is what one caller does.
type visit struct {
	starts time.Duration
	leaves time.Duration // after the start; 0 = never
	late   bool          // leaves is a deadline
	takes  time.Duration
	deaf   bool // ignores cancellation
	ends   string
}

var errVisit = errors.New("proptest: the work fails")

func visits() *rapid.Generator[visit] {
	grid := func(from, to int) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(from, to), func(n int) time.Duration { return time.Duration(n) * 10 * time.Millisecond })
	}
	return rapid.Custom(func(t *rapid.T) visit {
		v := visit{
			starts: grid(0, 20).Draw(t, "starts"),
			takes:  grid(1, maxTakes).Draw(t, "takes"),
			deaf:   rapid.Bool().Draw(t, "deaf"),
			late:   rapid.Bool().Draw(t, "by a deadline"),
			ends:   rapid.SampledFrom([]string{"returns", "fails", "panics", "exits"}).Draw(t, "ends"),
		}
		if rapid.Bool().Draw(t, "leaves early") {
			v.leaves = grid(1, 15).Draw(t, "leaves")
		}
		return v
	})
}

// lifetimes counts the work that runs, from inside it.
type lifetimes struct {
	limiter *limiter.Limiter

	mu sync.Mutex
	// Guarded by mu.

	running int
	runs    int    // how often work has begun
	open    int    // callers that have not returned
	fault   string // the first that was found
}

func (s *lifetimes) count(running, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += running
	s.runs += max(running, 0)
	s.open += open
}

func (s *lifetimes) call(run Runner, v visit) {
	defer s.count(0, -1)
	defer func() { _ = recover() }() // the panic of the work, passed on
	time.Sleep(v.starts)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if v.leaves > 0 {
		if v.late {
			ctx, cancel = context.WithTimeout(ctx, v.leaves)
			defer cancel()
		} else {
			timer := time.AfterFunc(v.leaves, cancel)
			defer timer.Stop()
		}
	}
	_ = run(ctx, func(ctx context.Context) error {
		s.count(1, 0)
		defer s.count(-1, 0)
		if v.deaf {
			time.Sleep(v.takes)
		} else {
			select {
			case <-time.After(v.takes):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		switch v.ends {
		case "fails":
			return errVisit
		case "panics":
			panic("proptest: the work panics")
		case "exits":
			runtime.Goexit()
		}
		return nil
	})
}

// served checks that work was run at all, for a caller whom nothing kept from it.
func (s *lifetimes) served() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == "" && s.runs == 0 {
		s.fault = "the only caller's work was never run, though a permit was free and its context did not end"
	}
}

// check compares the count with the ledger, whenever all is settled, and reports
// whether nothing goes on any more. Once it has ended nothing may.
func (s *lifetimes) check(ended bool) (quiet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ledger := s.limiter.Stats().Ledger
	switch {
	case s.fault != "": // the rest follows from it
	case ledger.InFlight < s.running:
		s.fault = fmt.Sprintf("a permit was given back early, or never taken: %d are out, and work runs %d times", ledger.InFlight, s.running)
	case ended && s.running == 0 && ledger.InFlight > 0:
		s.fault = fmt.Sprintf("%d permits were lost: nothing runs any more, and they are out; %d callers wait", ledger.InFlight, s.open)
	case ended && (s.running > 0 || s.open > 0):
		s.fault = fmt.Sprintf("after %v, work still runs %d times and %d callers wait", patience, s.running, s.open)
	case ended && ledger.Waiting > 0:
		s.fault = fmt.Sprintf("%d still wait for a permit, and none is out", ledger.Waiting)
	}
	return s.running == 0 && s.open == 0 && ledger.InFlight == 0
}
