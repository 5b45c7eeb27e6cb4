package arena

import (
	"math"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Contender is a limit under test. It is called by one goroutine, in a bubble whose
// clock agrees with now.
type Contender interface {
	// Acquire asks for a place for a call and reports whether it was given. Call is a
	// small number that is in use until Release.
	Acquire(now time.Duration, call int) bool
	// Release ends a call that has a place.
	Release(now time.Duration, call int, o permit.Outcome)
	// Limit is the limit in force.
	Limit() int
}

// Maker makes contenders of one kind.
type Maker struct {
	Name string
	// About says how it is set up.
	About string
	// Reference tells that it is no rival, because it was told the capacity.
	Reference bool
	// New returns a contender with nothing in flight. Capacity is how many calls the
	// server takes at a time when the scenario begins, for one client: what an
	// adaptive limit must find out.
	New func(capacity float64) (Contender, error)
}

// OurName is the name of the default limit of the library.
const OurName = "holdfast"

// Makers returns all kinds of contenders, ours first.
func Makers() []Maker {
	return []Maker{
		{Name: OurName, About: "limiter.Limiter on its defaults: gradient.Gradient", New: func(float64) (Contender, error) {
			return newLimited(nil)
		}},
		{Name: "aimd", About: "limiter.Limiter with gradient.AIMD on its defaults: drops alone", New: func(float64) (Contender, error) {
			a, err := gradient.NewAIMD(gradient.AIMDConfig{})
			return newLimitedOr(a, err)
		}},
		{Name: "fixed", About: "limiter.Limiter with gradient.Fixed at c + √c: the capacity known, and room for a queue", Reference: true, New: func(c float64) (Contender, error) {
			a, err := gradient.NewFixed(places(c + math.Sqrt(c)))
			return newLimitedOr(a, err)
		}},
		{Name: "vegas", About: "Vegas of Netflix's concurrency-limits on its defaults, over the least latency of windows of 1 s", New: func(float64) (Contender, error) {
			return newWindowed(newVegas(), leastLatency), nil
		}},
		{Name: "vegas-mean", About: "the same over the mean latency of windows of 1 s", New: func(float64) (Contender, error) {
			return newWindowed(newVegas(), meanLatency), nil
		}},
		{Name: "gradient2", About: "Gradient2 of Netflix's concurrency-limits on its defaults, over the mean latency of windows of 1 s", New: func(float64) (Contender, error) {
			return newWindowed(newGradient2(), meanLatency), nil
		}},
		{Name: "failsafe", About: "adaptivelimiter of failsafe-go on its defaults; a deadline error is a Drop", New: func(float64) (Contender, error) {
			return newFailsafe(), nil
		}},
		{Name: "semaphore", About: "x/sync/semaphore of c: the capacity known", Reference: true, New: func(c float64) (Contender, error) {
			n := places(c)
			return &counted{semaphore: semaphore.NewWeighted(int64(n)), limit: n}, nil
		}},
	}
}

// places rounds a limit to whole calls.
func places(limit float64) int { return max(1, int(math.Round(limit))) }

// limited is a limiter of the library.
type limited struct {
	limiter *limiter.Limiter
	permits []limiter.Permit // by call
}

func newLimited(a gradient.Algorithm) (Contender, error) {
	l, err := limiter.New(limiter.Config{Algorithm: a, OnPanic: func(v any, _ []byte) { panic(v) }})
	if err != nil {
		return nil, err
	}
	return &limited{limiter: l}, nil
}

// newLimitedOr passes on the error of a constructor.
func newLimitedOr(a gradient.Algorithm, err error) (Contender, error) {
	if err != nil {
		return nil, err
	}
	return newLimited(a)
}

func (l *limited) Acquire(_ time.Duration, call int) bool {
	p, ok := l.limiter.TryAcquire(limiter.Primary)
	if ok {
		l.permits = grown(l.permits, call)
		l.permits[call] = p
	}
	return ok
}

func (l *limited) Release(_ time.Duration, call int, o permit.Outcome) {
	if !l.permits[call].Release(o) {
		panic("arena: a permit was released twice")
	}
}

func (l *limited) Limit() int { return l.limiter.Limit() }

// counted is a semaphore.
type counted struct {
	semaphore *semaphore.Weighted
	limit     int
}

func (c *counted) Acquire(time.Duration, int) bool            { return c.semaphore.TryAcquire(1) }
func (c *counted) Release(time.Duration, int, permit.Outcome) { c.semaphore.Release(1) }
func (c *counted) Limit() int                                 { return c.limit }

// grown returns s, long enough to have an element i.
func grown[T any](s []T, i int) []T {
	for i >= len(s) {
		var zero T
		s = append(s, zero)
	}
	return s
}
