package grpcmw_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// On a socket, in real time, with all kinds of calls at once, of which some are cancelled,
// some fail, some panic and some are retries: the peak of what runs is never above the
// limit, it is reached, and nothing is left.
func TestServerPeakOnASocket(t *testing.T) {
	const limit, callers, each = 4, 32, 60
	l := fixedLimiter(t, limit, callers)
	var b books
	var meeting atomic.Int64
	met := make(chan struct{})
	s := open(t, l, func(ctx context.Context, _ string) error {
		switch metadata.ValueFromIncomingContext(ctx, "end")[0] {
		case "status":
			return status.Error(codes.Internal, "")
		case "panic":
			panic("boom")
		case "until":
			<-ctx.Done()
		case "meet": // the first few must be inside at once
			if meeting.Add(1) == limit {
				close(met)
			}
			<-met
		}
		return nil
	}, around(b.outside), inside(around(b.inside)), grpcmw.AcceptReports())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve(listener)
	var clients sync.WaitGroup
	for caller := range callers {
		cc, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			defer func() { _ = cc.Close() }()
			c := shop{cc: cc}
			for i := range each {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				end := []string{"return", "return", "status", "panic", "until"}[i%5]
				if i == 0 {
					end = "meet"
				}
				if end == "until" {
					ctx, cancel = context.WithTimeout(ctx, ms)
				}
				ctx = metadata.AppendToOutgoingContext(ctx, "end", end)
				if i%7 == 3 {
					ctx = metadata.AppendToOutgoingContext(ctx, attempts, "1")
				}
				_ = c.call(ctx, allKinds[(caller+i)%4]) // the books tell how it went
				cancel()
			}
		})
	}
	clients.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.server.Close(ctx); err != nil {
		t.Errorf("%d calls are inside a minute after the last one: %v", s.server.Stats().Inside, err)
	}
	s.backend.server.Stop()
	if err := s.cc.Close(); err != nil {
		t.Error(err)
	}
	b.check(t, s.server.Stats(), limit)
	if peak := b.peak.Load(); peak < limit {
		t.Errorf("%d ran at once at most, the limit is %d", peak, limit)
	}
	probe(t, l)
}
