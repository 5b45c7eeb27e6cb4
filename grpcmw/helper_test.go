package grpcmw_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// describe writes a config in one line.
func describe(c *grpcmw.ServiceConfig) string {
	var parts []string
	for _, m := range c.Options().Methods {
		var b strings.Builder
		for _, n := range m.Names {
			fmt.Fprintf(&b, "%s/%s ", n.Service, n.Method)
		}
		if m.Timeout != 0 {
			fmt.Fprintf(&b, "timeout %v ", m.Timeout)
		}
		if r := m.Retry; r != nil {
			fmt.Fprintf(&b, "retry %d %v %v ×%v %v ", r.MaxAttempts, r.InitialBackoff, r.MaxBackoff, r.BackoffMultiplier, r.Retryable)
		}
		if h := m.Hedging; h != nil {
			fmt.Fprintf(&b, "hedge %d %v %v ", h.MaxAttempts, h.Delay, h.NonFatal)
		}
		parts = append(parts, strings.TrimSpace(b.String()))
	}
	if t := c.Throttling(); t != nil {
		parts = append(parts, fmt.Sprintf("throttle %v %v", t.MaxTokens, t.TokenRatio))
	}
	return strings.Join(parts, "; ")
}

// newChannelParser returns grpc-go's own parser of service configs, which a resolver is
// given.
func newChannelParser(t testing.TB) func(document string) (*grpc.ServiceConfig, error) {
	t.Helper()
	r := manual.NewBuilderWithScheme("test")
	r.InitialState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "unused"}}}}})
	built := make(chan resolver.ClientConn, 1)
	r.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) { built <- cc }
	conn, err := grpc.NewClient("test:///", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(refuse))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it never had a connection
	conn.Connect()
	cc := <-built
	return func(document string) (*grpc.ServiceConfig, error) {
		result := cc.ParseServiceConfig(document)
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Config.(*grpc.ServiceConfig), nil
	}
}
