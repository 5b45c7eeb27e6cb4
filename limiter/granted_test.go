package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A permit tells when it was granted: at once, or when the wait for it was over.
func TestGrantedAtIsTheTimeOfTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		held := make([]limiter.Permit, 0, l.Limit())
		for range l.Limit() {
			p, _ := l.TryAcquire(limiter.Primary)
			held = append(held, p)
		}
		if at := held[0].GrantedAt(); !at.Equal(time.Now()) {
			t.Errorf("granted at %v, now is %v", at, time.Now())
		}
		time.AfterFunc(time.Second, func() { held[0].Release(permit.Success) })
		p, err := l.Acquire(t.Context(), limiter.Primary)
		if at := p.GrantedAt(); err != nil || !at.Equal(time.Now()) {
			t.Errorf("granted at %v after a wait, now is %v; %v", at, time.Now(), err)
		}
		if at := (limiter.Permit{}).GrantedAt(); !at.IsZero() {
			t.Errorf("the zero Permit was granted at %v", at)
		}
		for _, p := range append(held[1:], p) {
			p.Release(permit.Success)
		}
	})
}
