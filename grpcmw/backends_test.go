package grpcmw_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// H19: each attempt is a pick of its own, so with round_robin, which the channel takes from
// the same service config, a hedge goes to the other backend: calls are answered though one
// of the two is stuck.
func TestHedgeGoesToTheOtherBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backends := map[string]*backend{
			"stuck":   newBackend(t, always(script{after: time.Hour})),
			"healthy": newBackend(t, always(script{after: 5 * ms})),
		}
		names := manual.NewBuilderWithScheme("two")
		names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "stuck"}, {Addr: "healthy"}}})
		options, err := grpcmw.DialOptions(grpcmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
			c.Budget = hedgedlimit.Unlimited
			return nil
		}), config(t, `{"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [{"name": [{}], "waitForReady": true,
			"hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0.02s"}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		cc, err := grpc.NewClient("two:///", append(options, grpc.WithResolvers(names), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				return backends[addr].listener.DialContext(ctx)
			}))...)
		if err != nil {
			t.Fatal(err)
		}
		cc.Connect()
		synctest.Wait() // both are connected
		for range 20 {
			began := time.Now()
			if err := cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue)); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d > 25*ms {
				t.Errorf("a call took %v", d)
			}
		}
		synctest.Wait()
		if n := len(backends["stuck"].seen()); n == 0 || backends["stuck"].now() != 0 {
			t.Errorf("of %d attempts that were stuck %d go on", n, backends["stuck"].now())
		}
		_ = cc.Close()
		for _, b := range backends {
			b.server.Stop()
		}
	})
}
