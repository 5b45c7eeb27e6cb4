package grpcmw_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// BenchmarkUnary is what a unary call costs beside that of the channel: with an invoker that
// answers at once, sent once and as a call that may be hedged.
func BenchmarkUnary(b *testing.B) {
	answer := []byte{0x0a, 3, 'y', 'e', 's'}
	invoker := func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		reply.(*wrapperspb.BytesValue).Value = answer
		return nil
	}
	for name, policy := range map[string]string{"once": `{}`, "hedged": threeHedges} {
		b.Run(name, func(b *testing.B) {
			c, err := grpcmw.NewClient(config(b, policy))
			if err != nil {
				b.Fatal(err)
			}
			interceptor, request, reply := c.UnaryInterceptor(), wrapperspb.Bytes([]byte("ask")), new(wrapperspb.BytesValue)
			b.ReportAllocs()
			for b.Loop() {
				if err := interceptor(b.Context(), get, request, reply, nil, invoker); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
