package shed_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/shed"
)

const (
	window = 10 * time.Second
	slot   = window / 20
)

// event is one request that was let in.
type event struct {
	at    time.Duration
	slot  int64 // as of which it is counted
	extra bool
}

// admission is an extra that may be taken back.
type admission struct {
	ticket shed.Ticket
	event  event
}

// within counts the extras and all the events that ok lets through.
func within(events []event, ok func(event) bool) (extras, all int64) {
	for _, e := range events {
		if ok(e) {
			all++
			if e.extra {
				extras++
			}
		}
	}
	return extras, all
}

// The Shedder says yes and no as a list of all that happened would, also when the clock
// goes back, leaps, and when extras are taken back late. And whenever it says yes while
// the clock goes forward, the extras of the last nine and a half seconds are at most the
// floor, or the ratio of what came in the last ten.
func TestExtrasAreAShareOfTheWindow(t *testing.T) {
	epoch := time.Unix(1_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		percent := int64(rapid.SampledFrom([]int{0, 1, 10, 29, 50, 100}).Draw(t, "percent"))
		floor := int64(rapid.IntRange(0, 4).Draw(t, "floor"))
		back := rapid.Bool().Draw(t, "clock goes back")
		s := shed.New(float64(percent)/100, int(floor))
		var (
			now, first time.Duration
			began      bool
			events     []event
			newest     int64
			open       []admission
		)
		least := int64(0)
		if back {
			least = -int64(3 * slot)
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "pause") {
			case 0:
				now += time.Duration(rapid.Int64Range(least, int64(2*window)).Draw(t, "long"))
			case 1, 2, 3:
				now += time.Duration(rapid.Int64Range(least, int64(2*slot)).Draw(t, "short"))
			}
			what := rapid.SampledFrom([]string{"primary", "primary", "extra", "extra", "refund"}).Draw(t, "what")
			if what == "refund" {
				if len(open) > 0 {
					n := rapid.IntRange(0, len(open)-1).Draw(t, "which")
					s.Refund(open[n].ticket)
					j := slices.Index(events, open[n].event)
					events = slices.Delete(events, j, j+1)
					open = slices.Delete(open, n, n+1)
				}
				continue
			}
			if !began {
				began, first = true, now
			}
			newest = max(newest, int64((now-first)/slot))
			e := event{at: now, slot: newest, extra: what == "extra"}
			if !e.extra {
				s.Primary(epoch.Add(now))
				events = append(events, e)
				continue
			}
			extras, all := within(events, func(e event) bool { return e.slot > newest-20 })
			want := extras+1 <= floor || (extras+1)*100 <= percent*(all+1)
			ticket, got := s.Extra(epoch.Add(now))
			if got != want {
				t.Fatalf("with %d extras of %d the next was let in: %v", extras, all, got)
			}
			if !got {
				continue
			}
			events = append(events, e)
			open = append(open, admission{ticket, e})
			if back {
				continue
			}
			extras, _ = within(events, func(e event) bool { return e.at > now-(window-slot) })
			_, all = within(events, func(e event) bool { return e.at > now-window })
			if extras > floor && extras*100 > percent*all {
				t.Fatalf("%d extras in nine and a half seconds, %d requests in ten", extras, all)
			}
		}
	})
}

// Many at once are let in as one after the other would be.
func TestExtrasAtOnce(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := shed.New(0.1, 3)
	var all sync.WaitGroup
	for range 90 {
		all.Go(func() { s.Primary(now) })
	}
	all.Wait()
	var in, back atomic.Int64
	for i := range 50 {
		all.Go(func() {
			ticket, ok := s.Extra(now)
			switch {
			case ok && i%2 == 0:
				s.Refund(ticket)
				back.Add(1)
			case ok:
				in.Add(1)
			}
		})
	}
	all.Wait()
	for {
		if _, ok := s.Extra(now); !ok {
			break
		}
		in.Add(1)
	}
	// 10 of 100 are a tenth, and 11 of 101 more.
	if in.Load() != 10 {
		t.Errorf("%d extras were let in with 90 primaries, want 10; %d were taken back", in.Load(), back.Load())
	}
}

// What was forgotten cannot be taken back from the slot that is in its place.
func TestForgottenExtraIsNotTakenBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := shed.New(0, 1)
	old, _ := s.Extra(now)
	if _, ok := s.Extra(now.Add(window)); !ok {
		t.Fatal("an extra counts after the window")
	}
	s.Refund(old)
	if _, ok := s.Extra(now.Add(window)); ok {
		t.Error("a second extra was let in, for one that was forgotten")
	}
}

// A share is what it says, to the last extra, also where the number that is nearest to it
// lies below.
func TestShareIsExact(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, share := range []int{1, 157, 314, 1000, 2900, 9999} {
		s := shed.New(float64(share)/10_000, 0)
		for range 10_000 - share {
			s.Primary(now)
		}
		in := 0
		for ok := true; ok; in++ {
			_, ok = s.Extra(now)
		}
		if in--; in != share {
			t.Errorf("%d extras were let in with %d primaries at a share of %d in ten thousand", in, 10_000-share, share)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	s := shed.New(1, 0)
	now := time.Unix(1_000_000, 0)
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(slot)
		s.Primary(now)
		ticket, _ := s.Extra(now)
		s.Refund(ticket)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkShedder(b *testing.B) {
	now := time.Unix(1_000_000, 0)
	calls := map[string]func(*shed.Shedder, time.Time){
		"primary":         func(s *shed.Shedder, now time.Time) { s.Primary(now) },
		"extra, refunded": func(s *shed.Shedder, now time.Time) { ticket, _ := s.Extra(now); s.Refund(ticket) },
	}
	for name, call := range calls {
		b.Run(name, func(b *testing.B) {
			s := shed.New(0.1, 3)
			b.ReportAllocs()
			for b.Loop() {
				call(s, now)
			}
		})
		b.Run(name+", by many", func(b *testing.B) {
			s := shed.New(0.1, 3)
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call(s, now)
				}
			})
		})
	}
}
