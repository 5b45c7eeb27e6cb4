package hedgedlimit_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// The scripts of the property test in law_test.go: what the configuration is, what
// each attempt does, when callers come and leave, and who else uses the limiter.
// All times lie on a grid, so that much happens in the same instant.

const grid = 10 * ms

// ending is how a function ends.
type ending int

const (
	succeeds ending = iota
	failsRetryable
	failsFatal
	panics
	exits
)

type attemptScript struct {
	takes    time.Duration
	ends     ending
	deaf     bool            // does not look at its context
	stubborn bool            // ends as scripted even when its context tells it to stop
	holds    []time.Duration // go on for so long after the function has ended
	discard  time.Duration   // disposing of the result takes so long
	discards ending          // how the disposal ends: succeeds, panics or exits
}

type callScript struct {
	starts   time.Duration
	leaves   time.Duration // after the start the caller's context ends; 0 = it does not
	deadline bool          // by a deadline
	letsGo   bool          // it is cancelled when Do has returned, as by defer cancel()
	noHedge  bool
	attempts []attemptScript
}

// otherScript is a piece of work that takes its permit from the limiter itself.
type otherScript struct {
	starts, takes time.Duration
	waits         bool
	kind          limiter.Kind
}

type lawScript struct {
	limits     []int // in force one after the other
	reserve    int
	maxWaiting int
	maxWait    time.Duration

	maxAttempts int
	delay       time.Duration // negative: no hedge ever falls due
	bounded     bool
	ratio       float64
	burst       int
	drain       time.Duration // 0 = Cancel
	chosen      bool          // when the call is decided

	calls  []callScript
	others []otherScript
}

func times(from, to int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(from, to), func(n int) time.Duration { return time.Duration(n) * grid })
}

// oneIn is true once in n.
func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

func drawAttempt(t *rapid.T) attemptScript {
	s := attemptScript{
		takes:    times(0, 12).Draw(t, "takes"),
		ends:     rapid.SampledFrom([]ending{succeeds, succeeds, failsRetryable, failsRetryable, failsFatal, panics, exits}).Draw(t, "ends"),
		deaf:     rapid.Bool().Draw(t, "deaf"),
		discard:  times(0, 4).Draw(t, "discard"),
		discards: rapid.SampledFrom([]ending{succeeds, succeeds, succeeds, panics, exits}).Draw(t, "discards"),
	}
	s.stubborn = !s.deaf && oneIn(t, 3, "stubborn")
	if oneIn(t, 3, "goes on") {
		s.holds = rapid.SliceOfN(times(0, 10), 1, 2).Draw(t, "holds")
	}
	return s
}

func drawCall(t *rapid.T, maxAttempts int) callScript {
	s := callScript{
		starts:  times(0, 20).Draw(t, "starts"),
		letsGo:  rapid.Bool().Draw(t, "lets go"),
		noHedge: oneIn(t, 8, "no hedge"),
	}
	if rapid.Bool().Draw(t, "leaves") {
		s.leaves, s.deadline = times(1, 20).Draw(t, "after"), rapid.Bool().Draw(t, "by a deadline")
	}
	s.attempts = rapid.SliceOfN(rapid.Custom(drawAttempt), maxAttempts, maxAttempts).Draw(t, "attempts")
	return s
}

func drawOther(t *rapid.T) otherScript {
	return otherScript{
		starts: times(0, 30).Draw(t, "starts"),
		takes:  times(0, 12).Draw(t, "takes"),
		waits:  rapid.Bool().Draw(t, "waits"),
		kind:   rapid.SampledFrom([]limiter.Kind{limiter.Primary, limiter.Hedge, limiter.Bypass}).Draw(t, "kind"),
	}
}

func drawScript(t *rapid.T) lawScript {
	s := lawScript{
		limits:      rapid.SliceOfN(rapid.IntRange(1, 6), 1, 4).Draw(t, "limits"),
		reserve:     rapid.SampledFrom([]int{limiter.NoReserve, 1, 2}).Draw(t, "reserve"),
		maxWaiting:  rapid.SampledFrom([]int{0, 2, limiter.Unbounded}).Draw(t, "max waiting"),
		maxAttempts: rapid.IntRange(1, 4).Draw(t, "max attempts"),
		delay:       times(-1, 5).Draw(t, "delay"),
		bounded:     rapid.Bool().Draw(t, "bounded"),
		ratio:       rapid.SampledFrom([]float64{0.1, 0.25, 0.5}).Draw(t, "ratio"),
		burst:       rapid.IntRange(1, 3).Draw(t, "burst"),
	}
	if s.maxWaiting != 0 && oneIn(t, 3, "bounded wait") {
		s.maxWait = times(1, 5).Draw(t, "max wait")
	}
	if rapid.Bool().Draw(t, "drain") {
		s.drain = times(1, 8).Draw(t, "bound")
	}
	s.chosen = rapid.Bool().Draw(t, "chosen")
	call := rapid.Custom(func(t *rapid.T) callScript { return drawCall(t, s.maxAttempts) })
	s.calls = rapid.SliceOfN(call, 1, 8).Draw(t, "calls")
	s.others = rapid.SliceOfN(rapid.Custom(drawOther), 0, 6).Draw(t, "others")
	return s
}

// limits is an algorithm that puts the limits of a script in force, one after the
// other, as fast as a limiter lets it.
type limits struct {
	list []int
	i    int
}

func (l *limits) Start(time.Time) gradient.Decision { return l.Next(time.Time{}, nil) }
func (l *limits) Next(time.Time, *gradient.Window) gradient.Decision {
	l.i++
	return gradient.Decision{Limit: l.list[l.i%len(l.list)], Reason: "script", MinLength: 2 * grid}
}

// newLimiter makes the limiter of a script.
func (s *lawScript) newLimiter(t *rapid.T) *limiter.Limiter {
	l, err := limiter.New(limiter.Config{
		Algorithm: &limits{list: s.limits}, Reserve: s.reserve, MaxWaiting: s.maxWaiting, MaxWait: s.maxWait,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// config is the configuration of the hedgers of a script.
func (s *lawScript) config() hedgedlimit.Config {
	c := hedgedlimit.Config{MaxAttempts: s.maxAttempts, Classify: classify, Delay: hedgedlimit.Fixed(s.delay), Gates: hedgedlimit.NoGates}
	if s.delay < 0 {
		c.Delay = hedgedlimit.DelayFunc(func(int) (time.Duration, bool) { return 0, false })
	}
	if s.drain > 0 {
		c.Losers = hedgedlimit.Drain(s.drain)
	}
	if fixed := c.Losers; s.chosen {
		c.Losers = hedgedlimit.ChooseLosers(func(time.Duration) hedgedlimit.LoserPolicy { return fixed })
	}
	return c
}
