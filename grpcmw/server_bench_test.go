package grpcmw_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

func BenchmarkServer(b *testing.B) {
	refusing := fixedLimiter(b, 1, 0)
	held, _ := refusing.TryAcquire(limiter.Bypass)
	defer held.Release(permit.Ignored)
	unaryHandler := func(context.Context, any) (any, error) { return nil, nil }
	streamHandler := func(any, grpc.ServerStream) error { return nil }
	for name, row := range map[string]struct {
		opts  []grpcmw.ServerOption
		extra []string
	}{
		"served":               {},
		"served, with reports": {opts: []grpcmw.ServerOption{grpcmw.AcceptReports()}},
		"served, a hedge":      {opts: []grpcmw.ServerOption{grpcmw.MaxExtra(1)}, extra: []string{"1"}},
		"refused":              {opts: []grpcmw.ServerOption{grpcmw.ServerLimiter(refusing)}},
		"exempt":               {opts: []grpcmw.ServerOption{grpcmw.Exempt(func(string) bool { return true })}},
	} {
		s, err := grpcmw.NewServer(row.opts...)
		if err != nil {
			b.Fatal(err)
		}
		// As many entries as grpc-go's own client sends, and the one that is looked for.
		md := metadata.MD{":authority": {"localhost"}, "content-type": {"application/grpc"}, "user-agent": {"grpc-go/1.83.2"}}
		if row.extra != nil {
			md[attempts] = row.extra
		}
		ctx := metadata.NewIncomingContext(grpc.NewContextWithServerTransportStream(b.Context(), &transportStream{}), md)
		b.Run(name+", unary", func(b *testing.B) {
			interceptor, info := s.UnaryInterceptor(), &grpc.UnaryServerInfo{FullMethod: get}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = interceptor(ctx, nil, info, unaryHandler)
			}
		})
		b.Run(name+", stream", func(b *testing.B) {
			interceptor, info, ss := s.StreamInterceptor(), &grpc.StreamServerInfo{FullMethod: list}, &nullStream{ctx: ctx}
			b.ReportAllocs()
			for b.Loop() {
				_ = interceptor(nil, ss, info, streamHandler)
			}
		})
	}
}
