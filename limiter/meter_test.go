package limiter_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// reference is a meter as one would write it first: one after the other, with an
// integral that ticks at each event, and a look at each whether the window is due.
type reference struct {
	decide func(gradient.Window) gradient.Decision

	decision       gradient.Decision
	epoch          int
	settled        time.Duration
	settling       bool
	start, last    time.Duration
	inFlight       int
	integral       int64 // in ns, so that it is exact
	w              gradient.Window
	latency, spent gradient.Histogram
	log            []string // the windows
}

func (r *reference) reset() {
	r.start, r.integral = r.last, 0
	r.w = gradient.Window{MaxInFlight: r.inFlight}
	r.latency.Reset()
}

func (r *reference) advance(now time.Duration) {
	if r.settling && now >= r.settled {
		r.settling = false
		r.last = max(r.last, r.settled)
		r.reset()
	}
	r.integral += int64(r.inFlight) * int64(now-r.last)
	r.last = now
}

func (r *reference) enter(d gradient.Decision) {
	r.decision, r.settling = d, false
	if d.NewEpoch {
		r.epoch++
	}
	if d.Settle > 0 {
		r.settling, r.settled = true, r.last+d.Settle
	}
	if d.NewEpoch || d.Settle > 0 {
		r.reset()
	}
}

func (r *reference) begin(now time.Duration, kind limiter.Kind, limit int) (epoch int) {
	r.advance(now)
	r.inFlight++
	r.w.MaxInFlight = max(r.w.MaxInFlight, r.inFlight)
	if kind == limiter.Primary || kind == limiter.Retry {
		r.w.Admitted++
		r.w.Saturated = r.w.Saturated || r.inFlight >= limit
	}
	return r.epoch
}

func (r *reference) refuse(now time.Duration, limit int) {
	r.advance(now)
	r.w.Refused++
	r.w.Saturated = true
	r.close(limit)
}

func (r *reference) end(now time.Duration, epoch int, kind limiter.Kind, o permit.Outcome, latency time.Duration, limit int) {
	r.advance(now)
	r.inFlight--
	if o != permit.Overload {
		r.w.Completed++
	}
	if (kind == limiter.Primary || kind == limiter.Retry) && epoch == r.epoch {
		if o == permit.Overload || o == permit.Expired {
			r.w.Drops++
		}
		switch o {
		case permit.Success:
			r.latency.Add(latency)
		case permit.Expired, permit.Canceled:
			r.latency.AddCensored(latency)
		}
	}
	r.close(limit)
}

func (r *reference) close(limit int) {
	if r.settling && r.w.Drops < 5 || !r.decision.Due(r.last-r.start, r.latency.Count(), r.w.Drops) {
		return
	}
	w := r.w
	w.Limit, w.Elapsed, w.InFlight = limit, r.last-r.start, float64(r.inFlight)
	if w.Elapsed > 0 {
		w.InFlight = float64(r.integral) / float64(w.Elapsed)
	}
	r.spent = r.latency
	w.Latency = &r.spent
	r.log = append(r.log, describe(r.last, w))
	r.reset()
	r.enter(r.decide(w))
}

// describe tells all of a window, to a millionth.
func describe(now time.Duration, w gradient.Window) string {
	median, _ := w.Latency.Quantile(0.5)
	return fmt.Sprintf("at %v: limit %d, %v, %.6f in flight, at most %d, admitted %d, refused %d, completed %d, drops %d, saturated %v, %d latencies, %d cut short, mean %.6f, median %v",
		now, w.Limit, w.Elapsed, w.InFlight, w.MaxInFlight, w.Admitted, w.Refused, w.Completed, w.Drops, w.Saturated,
		w.Latency.Count(), w.Latency.Censored(), w.Latency.Mean().Seconds(), median)
}

// turns is an algorithm that gives the same answers in the same order, and logs the
// windows.
type turns struct {
	answers []gradient.Decision
	n       int
	base    time.Time
	log     []string
}

func (s *turns) Start(now time.Time) gradient.Decision {
	s.base = now
	return s.answers[0]
}

func (s *turns) Next(now time.Time, w *gradient.Window) gradient.Decision {
	s.log = append(s.log, describe(now.Sub(s.base), *w))
	s.n++
	return s.answers[s.n%len(s.answers)]
}

// Whatever happens one after the other, on whatever goroutine, the windows are those of
// the reference: closed by the same event, with the same numbers, whatever began before
// them or goes on after them. The mean in flight is that of an integral that ticks.
func TestWindowsAreThoseOfTheReference(t *testing.T) {
	windows := 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			const limit = 5
			durations := rapid.SampledFrom([]time.Duration{0, 1, 999_999, time.Millisecond, 7 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, time.Second, 1100 * time.Millisecond})
			answers := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) gradient.Decision {
				return gradient.Decision{
					Limit:      limit,
					NewEpoch:   rapid.Bool().Draw(rt, "new epoch"),
					Settle:     rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 500 * time.Millisecond}).Draw(rt, "settle"),
					MinLength:  durations.Draw(rt, "min length"),
					MinSamples: rapid.SampledFrom([]int{0, 1, 3, 8, 50}).Draw(rt, "min samples"),
					Probe:      rapid.Bool().Draw(rt, "probe"),
				}
			}), 1, 4).Draw(rt, "answers")
			s := &turns{answers: answers}
			l, err := limiter.New(limiter.Config{Algorithm: s, Reserve: limiter.NoReserve})
			if err != nil {
				rt.Fatal(err)
			}
			n := 0
			r := &reference{decide: func(gradient.Window) gradient.Decision { n++; return answers[n%len(answers)] }}
			r.enter(answers[0])

			now := func() time.Duration { return time.Since(s.base) }
			elsewhere := func(f func()) { // on a stack that lies elsewhere
				done := make(chan struct{})
				go func() { defer close(done); f() }()
				<-done
			}
			type attempt struct {
				permit limiter.Permit
				epoch  int
				kind   limiter.Kind
				began  time.Duration
			}
			var held []attempt
			acquire := func(rt *rapid.T) {
				kind := limiter.Kind(rapid.IntRange(0, limiter.NumKinds-1).Draw(rt, "kind"))
				if len(held) == limit && kind != limiter.Hedge && kind != limiter.Bypass {
					time.Sleep(time.Millisecond) // those that come quickly share a reading of the clock
				}
				elsewhere(func() {
					p, ok := l.TryAcquire(kind)
					switch {
					case ok != (len(held) < limit):
						rt.Errorf("TryAcquire: %v with %d out", ok, len(held))
					case ok:
						held = append(held, attempt{p, r.begin(now(), kind, limit), kind, now()})
					case kind == limiter.Primary || kind == limiter.Retry:
						r.refuse(now(), limit)
					}
				})
			}
			release := func(rt *rapid.T) {
				if len(held) == 0 {
					rt.Skip("nothing is held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
				a := held[i]
				o := permit.Outcome(rapid.IntRange(0, permit.NumOutcomes-1).Draw(rt, "outcome"))
				held = slices.Delete(held, i, i+1)
				elsewhere(func() {
					a.permit.Release(o)
					r.end(now(), a.epoch, a.kind, o, now()-a.began, limit)
				})
			}
			rt.Repeat(map[string]func(*rapid.T){
				"acquire": acquire, "acquire too": acquire, "release": release,
				"many": func(rt *rapid.T) { // more than a cell has room for
					o := rapid.SampledFrom([]permit.Outcome{permit.Success, permit.Canceled}).Draw(rt, "outcome")
					if len(held) == limit {
						rt.Skip("no room")
					}
					for range rapid.IntRange(1, 100).Draw(rt, "how many") {
						epoch := r.begin(now(), limiter.Primary, limit)
						p, _ := l.TryAcquire(limiter.Primary)
						p.Release(o)
						r.end(now(), epoch, limiter.Primary, o, 0, limit)
					}
				},
				"sleep": func(rt *rapid.T) { time.Sleep(durations.Draw(rt, "for")) },
				"": func(rt *rapid.T) {
					if !slices.Equal(s.log, r.log) {
						i := 0
						for i < len(s.log) && i < len(r.log) && s.log[i] == r.log[i] {
							i++
						}
						rt.Fatalf("after %d windows that agree\n got %q\nwant %q", i, s.log[i:], r.log[i:])
					}
					if out, _ := l.Entered(); out != len(held) {
						rt.Fatalf("%d in flight, the meter has %d", len(held), out)
					}
				},
			})
			windows += len(s.log)
		})
	})
	if windows == 0 {
		t.Error("no window was ever closed")
	}
	t.Logf("%d windows", windows)
}

// sums is an algorithm that adds up what the windows tell.
type sums struct {
	limit   int
	length  time.Duration
	samples int
	w       gradient.Window
	area    float64 // seconds
	latency gradient.Histogram
	windows int
}

func (s *sums) Start(time.Time) gradient.Decision {
	return gradient.Decision{Limit: s.limit, MinLength: s.length, MinSamples: s.samples}
}

func (s *sums) Next(_ time.Time, w *gradient.Window) gradient.Decision {
	s.windows++
	s.w.Admitted += w.Admitted
	s.w.Refused += w.Refused
	s.w.Completed += w.Completed
	s.w.Drops += w.Drops
	s.w.Elapsed += w.Elapsed
	s.w.MaxInFlight = max(s.w.MaxInFlight, w.MaxInFlight)
	s.area += w.InFlight * w.Elapsed.Seconds()
	s.latency.Merge(w.Latency)
	return s.Start(time.Time{})
}

// However attempts begin and end at once, and however often windows are closed
// meanwhile, each of them is in exactly one window: at rest the sums over all windows
// are the totals.
func TestNothingIsLostBetweenWindows(t *testing.T) {
	for _, c := range []sums{
		{limit: 6}, {limit: 1 << 20}, {limit: 6, length: 200 * time.Microsecond}, {limit: 6, samples: 100}, {limit: 6, length: time.Millisecond, samples: 5000},
	} {
		t.Run(fmt.Sprintf("limit %d, %v, %d samples", c.limit, c.length, c.samples), func(t *testing.T) {
			s := &c
			l := limitedBy(t, s, limiter.Config{Reserve: limiter.NoReserve, OnPanic: func(v any, stack []byte) { t.Errorf("%v\n%s", v, stack) }})
			const goroutines, rounds = 16, 4000
			type totals struct {
				admitted, refused, completed, drops, latencies, censored int
			}
			all := make([]totals, goroutines)
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(1, uint64(g)))
					n := &all[g]
					var held []limiter.Permit
					for range rounds {
						kind := limiter.Kind(r.IntN(limiter.NumKinds))
						teaches := kind == limiter.Primary || kind == limiter.Retry
						p, ok := l.TryAcquire(kind)
						switch {
						case ok:
							held = append(held, p)
							if teaches {
								n.admitted++
							}
						case teaches:
							n.refused++
						}
						for len(held) > r.IntN(3) {
							p, held = held[0], held[1:]
							o := permit.Outcome(r.IntN(permit.NumOutcomes))
							if r.IntN(20) > 0 {
								o = permit.Success // else each drop has a look taken
							}
							p.Release(o)
							if o != permit.Overload {
								n.completed++
							}
							if k := p.Kind(); k == limiter.Primary || k == limiter.Retry {
								switch o {
								case permit.Overload:
									n.drops++
								case permit.Success:
									n.latencies++
								case permit.Expired:
									n.drops++
									n.latencies++
									n.censored++
								case permit.Canceled:
									n.latencies++
									n.censored++
								}
							}
						}
					}
					for _, p := range held {
						p.Release(permit.Ignored)
						n.completed++
					}
				})
			}
			wg.Wait()
			var sum totals
			for _, n := range all {
				sum.admitted += n.admitted
				sum.refused += n.refused
				sum.completed += n.completed
				sum.drops += n.drops
				sum.latencies += n.latencies
				sum.censored += n.censored
			}
			// The last window, with all that is left.
			for windows, i := s.windows, 0; i <= s.samples || s.windows == windows; i++ {
				if s.length > 0 && i == s.samples {
					<-time.After(s.length)
				}
				p, ok := l.TryAcquire(limiter.Primary)
				if !ok {
					t.Fatal("no permit at rest")
				}
				p.Release(permit.Success)
				sum.admitted++
				sum.completed++
				sum.latencies++
			}
			got := totals{s.w.Admitted, s.w.Refused, s.w.Completed, s.w.Drops, s.latency.Count(), s.latency.Censored()}
			// What came after the last window is not in it.
			if late := sum.admitted - got.admitted; late > 0 && late <= s.samples {
				sum.admitted, sum.completed, sum.latencies = sum.admitted-late, sum.completed-late, sum.latencies-late
			}
			if got != sum {
				t.Errorf("the windows tell of %+v, want %+v", got, sum)
			}
			if out, area := l.Entered(); out != 0 || area < 0 {
				t.Errorf("at rest the meter has %d in flight, %v", out, area)
			}
			t.Logf("%d windows, %d cells", s.windows, l.Cells())
		})
	}
}

// With latencies that are those from grant to release, the time in flight is their sum,
// however late an event is entered and whatever the windows make of it.
func TestTimeInFlightIsTheSumOfLatencies(t *testing.T) {
	s := &sums{limit: 1 << 20}
	l := limitedBy(t, s, limiter.Config{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				p, _ := l.TryAcquire(limiter.Primary)
				p.Release(permit.Success)
			}
		})
	}
	wg.Wait()
	p, _ := l.TryAcquire(limiter.Primary)
	p.Release(permit.Success)
	_, area := l.Entered()
	want := s.latency.Mean().Seconds() * float64(s.latency.Count())
	// The mean is rounded to a nanosecond.
	if math.Abs(area.Seconds()-want) > 1e-9*float64(s.latency.Count()) || s.latency.Count() != 40_001 {
		t.Errorf("%v in flight, the latencies are %vs of %d", area, want, s.latency.Count())
	}
}
