package permit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// line is a queue in front of a pool, whose callers have names.
type line struct {
	t    *testing.T
	pool *permit.Pool

	mu   sync.Mutex      // for callers who are served in the same instant
	held []permit.Permit // of those that were served, in the order of that
	got  []string        // their names
	left []string        // the names of those that gave up
}

func newLine(t *testing.T, config permit.Config) *line {
	pool, err := permit.NewPool(config)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, pool: pool}
	for range config.Limit {
		p, ok := pool.TryAcquire()
		if !ok {
			t.Fatal("no permit in a new pool")
		}
		l.held = append(l.held, p)
	}
	return l
}

// join puts a caller at the end of the queue.
func (l *line) join(ctx context.Context, name string, n int) {
	go func() {
		p, err := l.pool.AcquireN(ctx, n)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.left = append(l.left, name)
			return
		}
		l.held, l.got = append(l.held, p), append(l.got, name)
	}()
	synctest.Wait()
}

// release gives back what was granted first, and says who was served for it. The names of
// several come in the order of the alphabet.
func (l *line) release() string {
	before, p := len(l.got), l.held[0]
	l.held = l.held[1:]
	p.Release(permit.Success)
	synctest.Wait()
	slices.Sort(l.got[before:])
	return strings.Join(l.got[before:], " ")
}

func (l *line) want(who ...string) {
	l.t.Helper()
	for _, w := range who {
		if got := l.release(); got != w {
			l.t.Errorf("served %q, want %q", got, w)
		}
	}
}

// end checks that all has come back.
func (l *line) end() {
	l.t.Helper()
	for len(l.held) > 0 {
		l.release()
	}
	if err := l.pool.CheckInvariants(); err != nil {
		l.t.Error(err)
	}
	probe(l.t, l.pool)
}

// L6: the queue is first in first out; once the head has waited for longer than LIFOAfter
// it is last in first out, until the head is young again. With or without the clock of
// the permits.
func TestQueueTurnsRoundUnderPressure(t *testing.T) {
	for _, timed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			config := permit.Config{Limit: 1, LIFOAfter: time.Second}
			if timed {
				config.Base = time.Now()
			}
			l := newLine(t, config)
			for i := range 6 {
				l.join(t.Context(), fmt.Sprint(i), 1)
				time.Sleep(250 * time.Millisecond)
			}
			// The first has waited for 1.5 s, the last for a quarter.
			l.want("5", "4")
			time.Sleep(250 * time.Millisecond)
			l.join(t.Context(), "late", 1)
			l.want("late", "3", "2", "1", "0")

			l.join(t.Context(), "a", 1)
			l.join(t.Context(), "b", 1)
			time.Sleep(time.Second)
			l.join(t.Context(), "c", 1)
			l.want("a") // just a second is not longer
			time.Sleep(1)
			l.want("c", "b")
			l.end()
		})
	}
}

// As soon as the old have gone, by their own deadlines, the order is that of coming again.
func TestQueueTurnsBackWhenTheHeadIsYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, permit.Config{Limit: 1, LIFOAfter: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		l.join(ctx, "old", 1)
		l.join(ctx, "old too", 1)
		time.Sleep(1900 * time.Millisecond)
		for i := range 4 {
			l.join(t.Context(), fmt.Sprint(i), 1)
		}
		l.want("3")
		time.Sleep(time.Second / 5)
		l.want("0", "1", "2", "")
		if slices.Sort(l.left); !slices.Equal(l.left, []string{"old", "old too"}) {
			t.Errorf("%q have left", l.left)
		}
		l.end()
	})
}

// Where the limit is raised, as many are served as fit, in the same order.
func TestResizeUnderPressureServesTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, permit.Config{Limit: 1, LIFOAfter: time.Second})
		for i := range 5 {
			l.join(t.Context(), fmt.Sprint(i), 1)
		}
		time.Sleep(2 * time.Second)
		if err := l.pool.Resize(4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if slices.Sort(l.got); !slices.Equal(l.got, []string{"2", "3", "4"}) {
			t.Errorf("%q were served", l.got)
		}
		l.want("1", "0")
		l.end()
	})
}

// While anyone waits for more than one permit the order is first in first out: nobody
// overtakes it, and it holds up only those behind it.
func TestHeavyCallersAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, permit.Config{Limit: 2, LIFOAfter: time.Second})
		l.join(t.Context(), "a", 1)
		l.join(t.Context(), "b", 1)
		l.join(t.Context(), "heavy", 2)
		l.join(t.Context(), "c", 1)
		l.join(t.Context(), "d", 1)
		time.Sleep(time.Hour)
		l.want("a", "b")
		l.want("", "heavy") // waits for both
		l.join(t.Context(), "e", 1)
		l.want("d e") // the two of heavy, and nobody else wants more than one
		l.want("c", "", "")
		l.end()
	})
}

// Nobody sleeps on when the heavy caller who held them up has gone: by its own will, or
// since the limit has fallen below what it wants.
func TestHeavyCallerWhoGoesLetsTheNewestIn(t *testing.T) {
	for name, gone := range map[string]func(*permit.Pool, context.CancelFunc) error{
		"leaves": func(_ *permit.Pool, leave context.CancelFunc) error { leave(); return nil },
		"resize": func(p *permit.Pool, _ context.CancelFunc) error { return p.Resize(2) },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t, permit.Config{Limit: 3, LIFOAfter: time.Second})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			l.join(ctx, "heavy", 3)
			l.join(t.Context(), "a", 1)
			l.join(t.Context(), "b", 1)
			time.Sleep(time.Hour)
			l.want("", "") // two are free, and it wants three
			if err := gone(l.pool, leave); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if want := map[string][]string{"leaves": {"a", "b"}, "resize": {"b"}}[name]; !slices.Equal(slices.Sorted(slices.Values(l.got)), want) {
				t.Errorf("%s: %q were served, want %q", name, l.got, want)
			}
			l.end()
		})
	}
}

// L6: the newest gives up in the instant of its grant, and the permit goes to the next
// newest.
func TestNewestWhoGivesUpLeavesThePermitToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, permit.Config{Limit: 1, LIFOAfter: time.Second})
		l.join(t.Context(), "old", 1)
		l.join(t.Context(), "young", 1)
		ctx, cancel := context.WithCancel(t.Context())
		l.join(ctx, "youngest", 1)
		time.Sleep(2 * time.Second)
		p := l.held[0]
		l.held = nil
		cancel() // it may find the permit granted when it comes to leave, or be gone before
		p.Release(permit.Success)
		synctest.Wait()
		if !slices.Equal(l.left, []string{"youngest"}) || !slices.Equal(l.got, []string{"young"}) {
			t.Errorf("left %q, served %q", l.left, l.got)
		}
		l.want("old", "")
		l.end()
	})
}

// Close wakes all, whatever the order.
func TestCloseUnderPressureWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, permit.Config{Limit: 1, LIFOAfter: time.Second})
		for i := range 5 {
			l.join(t.Context(), fmt.Sprint(i), 1)
		}
		time.Sleep(2 * time.Second)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.pool.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Close: %v", err)
		}
		synctest.Wait()
		if len(l.left) != 5 {
			t.Errorf("%q have left", l.left)
		}
	})
}

func TestNegativeLIFOAfterIsRefused(t *testing.T) {
	if pool, err := permit.NewPool(permit.Config{Limit: 1, LIFOAfter: -1}); pool != nil || err == nil ||
		!strings.HasPrefix(err.Error(), "permit: LIFOAfter -1ns") {
		t.Errorf("%v, %v", pool, err)
	}
}
