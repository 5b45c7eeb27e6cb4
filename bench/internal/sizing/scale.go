package sizing

import (
	"context"
	"fmt"
	"math"
)

const (
	// mostPlaces is how many calls at a time are modelled at most: above that chance has little say,
	// and a simulation that is long against the latency costs as many calls as there are places.
	mostPlaces = 1000
	// mostRate is the calls a second from which on a model has fewer places, but not fewer than
	// enoughPlaces: the arena counts in tenths of a second.
	mostRate, enoughPlaces = 1e5, 100
)

// scale is how many times smaller the model is than the dependency: 1 is as large.
func (s *Sizing) scale() float64 {
	places := float64(s.Input.Workers())
	if places == 0 {
		places = heavier * s.Rate * s.Input.Latency.Mean()
	}
	rate := max(overload*s.Input.Capacity, heavier*s.Rate)
	return max(1, places/mostPlaces, min(rate/mostRate, places/enoughPlaces))
}

// Recommend finds out what to set. On an error, which is that of ctx if it ended, the result has
// the stages that were over.
func (s *Sizing) Recommend(ctx context.Context) (*Recommendation, error) {
	times := s.scale()
	if times == 1 {
		return s.recommend(ctx)
	}
	in, smaller := *s.Input, *s
	in.Capacity /= times
	smaller.Input, smaller.Rate = &in, s.Rate/times
	r, err := smaller.recommend(ctx)
	r.grow(times)
	return r, err
}

// scaled says that the model is smaller than the dependency, empty if it is not.
func (s *Sizing) scaled() string {
	times := s.scale()
	if times == 1 {
		return ""
	}
	return fmt.Sprintf("what is simulated is %.4g times smaller than the dependency, at as much less load, and its limits are made so many times larger again", times)
}

// grow makes what was found of a smaller model so many times larger.
func (r *Recommendation) grow(times float64) {
	whole := func(n *int) { *n = int(math.Ceil(times * float64(*n))) }
	effects := []*Effects{}
	if l := r.Limit; l != nil {
		whole(&l.Limit)
		whole(&l.InFlight)
		for i := range l.Rows {
			whole(&l.Rows[i].Limit)
			l.Rows[i].AnsweredRate *= times
		}
	}
	if w := r.Waiting; w != nil {
		whole(&w.MaxWaiting)
		effects = append(effects, &w.Refused, &w.Waited)
	}
	if h := r.Hedging; h != nil {
		effects = append(effects, &h.None)
		for i := range h.Rows {
			effects = append(effects, &h.Rows[i].Effects)
			if p := h.Rows[i].AsPasted; p != nil {
				effects = append(effects, p)
			}
		}
	}
	if r.Unhedged != nil {
		effects = append(effects, r.Unhedged)
	}
	for _, e := range effects {
		e.Present.AnsweredRate *= times
		e.Heavier.AnsweredRate *= times
	}
}
