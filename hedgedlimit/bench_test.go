package hedgedlimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// A call whose hedge never fires, under a limiter with budget, gates and a delay that
// was learnt, against the same written by hand without any of them: a goroutine, a
// channel, a timer and a context.
//
//	go test -run '^$' -bench Call -count 10 ./hedgedlimit
func BenchmarkCall(b *testing.B) {
	b.Run("hedgedlimit", func(b *testing.B) {
		fixed, err := gradient.NewFixed(1 << 20)
		if err != nil {
			b.Fatal(err)
		}
		l, err := limiter.New(limiter.Config{Algorithm: fixed})
		if err != nil {
			b.Fatal(err)
		}
		h, err := hedgedlimit.New(hedgedlimit.Config{Limiter: l, Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: time.Hour, MinSamples: 1})})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, err := hedgedlimit.Do(b.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) { return 1, nil })
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("by-hand", func(b *testing.B) {
		work := func(context.Context) (int, error) { return 1, nil }
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				ctx, cancel := context.WithCancel(b.Context())
				type result struct {
					v   int
					err error
				}
				results := make(chan result, 2)
				run := func() {
					v, err := work(ctx)
					results <- result{v, err}
				}
				go run()
				timer := time.NewTimer(time.Hour)
				select {
				case <-results:
				case <-timer.C:
					go run()
					<-results
				}
				timer.Stop()
				cancel()
			}
		})
	})
}
