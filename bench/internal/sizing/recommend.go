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
	// AsRecommended is what all of it together does, and Unhedged the same limiter without
	// hedging: behind the limit that moves, where the rows before are behind one that does not.
	AsRecommended *Effects `json:"as_recommended"`
	Unhedged      *Effects `json:"unhedged"`
}

// Complete tells that every stage was reached.
func (r *Recommendation) Complete() bool { return r.AsRecommended != nil }

// Recommend finds out what to set. On an error, which is that of ctx if it ended, the result has
// the stages that were over.
func (s *Sizing) Recommend(ctx context.Context) (*Recommendation, error) {
	r := &Recommendation{}
	limit, err := s.findLimit(ctx)
	if err != nil {
		return r, err
	}
	r.Limit = &limit
	waiting, err := s.compareWaiting(ctx, limit.Limit)
	if err != nil {
		return r, err
	}
	r.Waiting = &waiting
	hedging, err := s.compareHedging(ctx, limit.Limit, &waiting)
	if err != nil {
		return r, err
	}
	if hedging.Recommended && s.Doubt != "" {
		hedging.Reasons = append(hedging.Reasons, s.Doubt)
	}
	r.Hedging = &hedging
	policies := []hedgearena.Policy{unhedged()}
	if c := hedging.Chosen; c != nil {
		policies = append(policies, s.policy(candidate{quantile: c.Quantile, ratio: c.Ratio}))
	}
	var setups []setup
	for _, p := range policies {
		setups = append(setups, setup{adaptive(limit.Limit, waiting.Wait, s), p})
	}
	both, err := s.runBoth(ctx, "recommendation", setups)
	if err != nil {
		return r, err
	}
	r.Unhedged, r.AsRecommended = &both[0], &both[len(both)-1]
	if !harmless(&r.AsRecommended.Present, &r.Unhedged.Present) || !harmless(&r.AsRecommended.Heavier, &r.Unhedged.Heavier) {
		hedging.Reasons = append(hedging.Reasons, "behind the limit that moves, the calls as recommended did a little worse in failures or p99 at one of the loads than without hedging: a moving limit adds chance of its own, and more -calls and -seeds tell the one from the other")
	}
	return r, nil
}
