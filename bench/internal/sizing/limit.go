package sizing

import (
	"context"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	// goodEnough is the share of the answers that any limit gets which the limit must get: below
	// it a step of the limit is worth more than the queue it makes.
	goodEnough = 0.99
	// limitTimes as many calls as usual: limits differ by little, and cost little.
	limitTimes = 3
	// shoulders are shown beside the limit that is chosen.
	lowerShoulder, upperShoulder = 0.75, 1.5
	// maxWaitP95 is how many 95th percentiles a call waits for a permit at most: with 2 to 4 of
	// them the wait adds little to the 99th percentile of those who get through.
	maxWaitP95 = 3
	// lessFailures is how many points of failures a queue must save to be recommended.
	lessFailures = 0.1
	// defaultInitial is where a limiter starts that is told nothing.
	defaultInitial = 20
)

// Limit is the limit that was found.
type Limit struct {
	Limit int `json:"limit"`
	// Found tells that it was looked for, at 1.5 × the capacity. Without the capacity it is
	// what 1.5 × the present load holds in flight, and where the limiter starts.
	Found bool `json:"found"`
	// InFlight is how many calls 1.5 × the present load holds in flight, by Little's law and
	// with three standard deviations of a Poisson number. The limit is at least 20 all the same.
	// It is 0 if Found.
	InFlight int `json:"in_flight"`
	// Rows are the limits that were tried.
	Rows []LimitRow `json:"rows"`
}

// LimitRow is a fixed limit at 1.5 × the capacity, whose calls are refused if they do not fit.
type LimitRow struct {
	Limit int `json:"limit"`
	// GoodPercent is its answers as a share of those under limits that are far too high.
	// Above 100 a queue does worse than refusing: where slow calls come together, those that are
	// refused are slow ones.
	GoodPercent float64 `json:"good_percent"`
	Effect
}

// findLimit looks for the smallest limit that is good enough.
func (s *Sizing) findLimit(ctx context.Context) (Limit, error) {
	if s.Input.Capacity == 0 {
		mean := heavier * s.Rate * s.Input.Latency.Mean()
		l := Limit{InFlight: int(math.Ceil(mean + 3*math.Sqrt(mean))), Rows: []LimitRow{}}
		l.Limit = max(defaultInitial, l.InFlight)
		return l, nil
	}
	c := s.Input.Workers()
	// That of the model, whose workers are a whole number.
	rate := overload * float64(c) / s.Input.Latency.Mean()
	rows := map[int]Effect{}
	try := func(limits ...int) error {
		var jobs []job
		limits = slices.DeleteFunc(limits, func(l int) bool { _, ok := rows[l]; return ok })
		for _, l := range limits {
			jobs = append(jobs, job{setup: setup{fixed(l, false, s), unhedged()}, rate: rate, times: limitTimes})
		}
		effects, err := s.run(ctx, "limit", jobs)
		for i, e := range effects {
			rows[limits[i]] = e
		}
		return err
	}
	// From about which the number of those who wait has no say in how many are served.
	high := c + 10 + c/2
	if err := try(high, 2*high); err != nil {
		return Limit{}, err
	}
	// The mean of both, since the better of the two is better by chance.
	best := (rows[high].AnsweredRate + rows[2*high].AnsweredRate) / 2
	// Two at a time: one would leave a processor idle.
	low := 0 // not good enough
	for high-low > 1 {
		a, b := low+max(1, (high-low)/3), low+max(1, 2*(high-low)/3)
		if err := try(slices.Compact([]int{a, b})...); err != nil {
			return Limit{}, err
		}
		switch {
		case rows[a].AnsweredRate >= goodEnough*best:
			high = a
		case rows[b].AnsweredRate >= goodEnough*best:
			low, high = a, b
		default:
			low = b
		}
	}
	found := Limit{Limit: high, Found: true}
	shown := []int{max(1, int(lowerShoulder*float64(high))), high, int(math.Ceil(upperShoulder * float64(high)))}
	if err := try(slices.Clone(shown)...); err != nil {
		return Limit{}, err
	}
	for _, l := range slices.Compact(shown) {
		found.Rows = append(found.Rows, LimitRow{Limit: l, GoodPercent: 100 * rows[l].AnsweredRate / best, Effect: rows[l]})
	}
	return found, nil
}

// Waiting is what becomes of calls that do not fit.
type Waiting struct {
	// Wait tells that they should wait for a permit, and not be refused at once.
	Wait bool `json:"wait"`
	// MaxWaiting of them wait, for so long at most.
	MaxWaiting int     `json:"max_waiting"`
	MaxWaitMS  float64 `json:"max_wait_ms"`
	// Both ways, without hedging, behind a fixed limit, or behind one that moves where none was
	// found.
	Refused Effects `json:"refused"`
	Waited  Effects `json:"waited"`
}

// maxWait is how long a call may wait for a permit.
func (s *Sizing) maxWait() float64 {
	return roundLatency(seconds(maxWaitP95 * s.Input.Latency.Quantile(0.95))).Seconds()
}

// compareWaiting finds out whether calls should wait.
func (s *Sizing) compareWaiting(ctx context.Context, limit *Limit) (Waiting, error) {
	both, err := s.runBoth(ctx, "waiting", []setup{
		{s.behind(limit, false), unhedged()},
		{s.behind(limit, true), unhedged()},
	}, nil)
	if err != nil {
		return Waiting{}, err
	}
	w := Waiting{MaxWaiting: limit.Limit, MaxWaitMS: 1000 * s.maxWait(), Refused: both[0], Waited: both[1]}
	w.Wait = w.Refused.Present.FailedPercent > w.Waited.Present.FailedPercent+lessFailures ||
		w.Refused.Heavier.FailedPercent > w.Waited.Heavier.FailedPercent+lessFailures
	return w, nil
}

// behind is the limit behind which set-ups are compared: a fixed one. Where none was found it is
// but a beginning, and it moves: in a slow spell more is in flight than Little's law says of the
// mean, and a fixed one would refuse what the dependency has room for.
func (s *Sizing) behind(l *Limit, wait bool) limitSetup {
	if l.Found {
		return fixed(l.Limit, wait, s)
	}
	return adaptive(l.Limit, wait, s)
}

// fixed is a limit that never moves: what differs behind it is not by chance.
func fixed(limit int, wait bool, s *Sizing) limitSetup {
	return func() (*limiter.Limiter, error) {
		a, err := gradient.NewFixed(limit)
		if err != nil {
			return nil, err
		}
		return newLimiter(s.limiterConfig(a, limit, wait))
	}
}

// adaptive is the limit as it is recommended.
func adaptive(limit int, wait bool, s *Sizing) limitSetup {
	return func() (*limiter.Limiter, error) {
		a, err := gradient.New(gradientConfig(limit))
		if err != nil {
			return nil, err
		}
		return newLimiter(s.limiterConfig(a, limit, wait))
	}
}

// gradientConfig starts at a limit. Max is left alone where its default does.
func gradientConfig(limit int) gradient.Config {
	c := gradient.Config{Initial: limit}
	if most := 2 * limit; most > 1000 {
		c.Max = most
	}
	return c
}

func (s *Sizing) limiterConfig(a gradient.Algorithm, limit int, wait bool) limiter.Config {
	c := limiter.Config{Algorithm: a}
	if wait {
		c.MaxWaiting, c.MaxWait = limit, seconds(s.maxWait())
	}
	return c
}
