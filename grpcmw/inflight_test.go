package grpcmw_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// rpcs counts on its own the RPCs of a channel whose work goes on.
type rpcs struct{ running, peak atomic.Int64 }

func (r *rpcs) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (r *rpcs) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *rpcs) HandleConn(context.Context, stats.ConnStats)                       {}

func (r *rpcs) HandleRPC(_ context.Context, event stats.RPCStats) {
	switch event.(type) {
	case *stats.Begin:
		n := r.running.Add(1)
		for old := r.peak.Load(); n > old && !r.peak.CompareAndSwap(old, n); old = r.peak.Load() {
		}
	case *stats.End:
		r.running.Add(-1)
	}
}

// plan is what one caller does.
type plan struct {
	method        string
	start, cancel time.Duration
	messages      int // received at most before the caller leaves; −1: all
}

func drawPlan(t *rapid.T, label string) plan {
	millis := func(name string, least, most int) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(t, label+name)) * ms
	}
	return plan{
		method:   rapid.SampledFrom([]string{get, get, other, list, list, collect, chat}).Draw(t, label+" method"),
		start:    millis(" start", 0, 5),
		cancel:   millis(" cancel", 1, 30),
		messages: rapid.IntRange(-1, 2).Draw(t, label+" messages"),
	}
}

func (p plan) run(s *service) {
	time.Sleep(p.start)
	ctx, cancel := context.WithTimeout(context.Background(), p.cancel)
	defer cancel()
	if descs[p.method] == nil {
		_ = s.invoke(ctx, p.method)
		return
	}
	stream, err := s.cc.NewStream(ctx, descs[p.method], p.method)
	if err != nil {
		return
	}
	if stream.SendMsg(wrapperspb.Bytes(nil)) != nil {
		p.messages = -1 // it has ended, and gRPC holds on to it until the caller has heard how
	}
	if p.messages != 1 { // a client that is in no hurry to close
		_ = stream.CloseSend()
	}
	for n := 0; n != p.messages && stream.RecvMsg(new(wrapperspb.BytesValue)) == nil; n++ {
	}
	<-ctx.Done() // or else the caller would be done with a stream that is not at its end
}

// L1: permits in flight are the RPCs whose work goes on, at every step, whatever servers and
// callers do; and nothing is left at the end.
func TestPermitsInFlightAreRunningRPCs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			const limit = 4
			var scripts []script
			for i := range rapid.IntRange(1, 6).Draw(t, "scripts") {
				label := fmt.Sprint("attempt ", i)
				scripts = append(scripts, script{
					after:    time.Duration(rapid.IntRange(0, 9).Draw(t, label)) * ms,
					deaf:     rapid.Bool().Draw(t, label+" deaf"),
					headers:  rapid.Bool().Draw(t, label+" headers"),
					messages: rapid.IntRange(0, 3).Draw(t, label+" messages"),
					code:     rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.Unavailable, codes.NotFound}).Draw(t, label+" code"),
				})
			}
			policy := rapid.SampledFrom([]string{
				`{}`,
				`{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.002s", "nonFatalStatusCodes": ["UNAVAILABLE"]}}]}`,
				`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.002s", "maxBackoff": "0.002s",
					"backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}], "retryThrottling": {"maxTokens": 3, "tokenRatio": 1}}`,
			}).Draw(t, "policy")
			losers := rapid.SampledFrom([]hedgedlimit.LoserPolicy{hedgedlimit.Cancel(), hedgedlimit.Drain(3 * ms)}).Draw(t, "losers")
			var plans []plan
			for i := range rapid.IntRange(1, 6).Draw(t, "calls") {
				plans = append(plans, drawPlan(t, fmt.Sprint("call ", i)))
			}
			service, err := grpcmw.ParseServiceConfig(policy)
			if err != nil {
				t.Fatal(err)
			}

			// Nothing is drawn and nothing fails from here on before all has ended.
			s := newServiceOf(t, limit, func(n int, _ arrival) script { return scripts[n%len(scripts)] },
				grpcmw.WithServiceConfig(service), grpcmw.HedgeStreams(list), unjittered,
				configured(func(c *hedgedlimit.Config) { c.Losers = losers }))
			var counted rpcs
			_ = s.cc.Close()
			s.cc = s.backend.dial(t, append(s.client.DialOptions(), grpc.WithStatsHandler(&counted))...)
			var callers sync.WaitGroup
			for _, p := range plans {
				callers.Go(func() { p.run(s) })
			}
			var broken []string
			for range 60 {
				synctest.Wait()
				if permits, running := s.limiter.InFlight(), int(counted.running.Load()); permits != running || permits > limit {
					broken = append(broken, fmt.Sprintf("in flight: %d, running: %d", permits, running))
				}
				time.Sleep(ms)
			}
			callers.Wait()
			s.close()
			if counted.peak.Load() > limit {
				broken = append(broken, fmt.Sprintf("%d ran at a time", counted.peak.Load()))
			}
			if broken != nil {
				t.Error(broken)
			}
		})
	})
}
