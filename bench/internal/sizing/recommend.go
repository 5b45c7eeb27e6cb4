package sizing

import (
	"context"

	"github.com/holdfast-go/holdfast/bench/internal/hedgearena"
)

// Recommendation is what to set, and why. A stage that was not reached is nil.
type Recommendation struct {
	Limit   *Limit   `json:"limit"`
	Waiting *Waiting `json:"waiting"`
	Hedging *Hedging `json:"hedging"`
	// Unhedged is without hedging behind the limit that moves, where the rows before are behind
	// one that does not. AsRecommended is what the Go configuration does, and ServiceConfig
	// what the service config does behind the same limiter. They are Unhedged where they hedge
	// nothing.
	AsRecommended *Effects `json:"as_recommended"`
	ServiceConfig *Effects `json:"service_config"`
	Unhedged      *Effects `json:"unhedged"`
}

// Complete tells that every stage was reached.
func (r *Recommendation) Complete() bool { return r.AsRecommended != nil }

// moreSeeds is the same with confirmTimes as many seeds.
func (s *Sizing) moreSeeds() *Sizing {
	more := *s
	more.Seeds = nil
	for i := range uint64(confirmTimes) {
		for _, seed := range s.Seeds {
			more.Seeds = append(more.Seeds, seed^i<<40)
		}
	}
	return &more
}

// recommend is Recommend for a model of this size.
func (s *Sizing) recommend(ctx context.Context) (*Recommendation, error) {
	r := &Recommendation{}
	limit, err := s.findLimit(ctx)
	if err != nil {
		return r, err
	}
	r.Limit = &limit
	waiting, err := s.compareWaiting(ctx, &limit)
	if err != nil {
		return r, err
	}
	r.Waiting = &waiting
	hedging, err := s.compareHedging(ctx, &limit, &waiting)
	if err != nil {
		return r, err
	}
	r.Hedging = hedging
	moving := adaptive(limit.Limit, waiting.Wait, s)
	again := s.moreSeeds()
	none, err := again.compare(ctx, "recommendation", moving, []hedgearena.Policy{unhedged()}, nil)
	if err != nil {
		return r, err
	}
	if err := again.confirm(ctx, hedging, moving, &none[0]); err != nil {
		return r, err
	}
	if hedging.best() == nil {
		// The gates of what was dropped may have been in the way.
		if err := s.tryWithoutGates(ctx, hedging, &limit, waiting.Wait); err != nil {
			return r, err
		}
		if err := again.confirm(ctx, hedging, moving, &none[0]); err != nil {
			return r, err
		}
	}
	s.choose(hedging)
	if hedging.Recommended && s.Doubt != "" {
		hedging.Reasons = append(hedging.Reasons, s.Doubt)
	}
	r.Unhedged, r.AsRecommended, r.ServiceConfig = &none[0], &none[0], &none[0]
	if c := hedging.Chosen; c != nil {
		r.AsRecommended = c.AsPasted
	}
	if c := hedging.GRPC; c != nil {
		r.ServiceConfig = c.AsPasted
	}
	return r, nil
}
