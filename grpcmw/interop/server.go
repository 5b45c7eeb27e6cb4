package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// serverCases are calls of their client, the first attempt of which is refused.
var serverCases = []struct {
	name     string
	pushback time.Duration
	freed    bool // the permit is free for the second attempt
	code     codes.Code
	attempts int
}{
	{name: "a retry comes when the pushback says so", pushback: 400 * time.Millisecond, freed: true, attempts: 2},
	{name: "each retry does", pushback: 300 * time.Millisecond, code: codes.Unavailable, attempts: 3},
	{name: "no retry comes where it says so", pushback: -1, code: codes.ResourceExhausted, attempts: 1},
}

// theirRetries has their client retry at once, were it not for the pushback.
const theirRetries = `{"loadBalancingConfig": [], "methodConfig": [{"name": [{"service": "shop.Stock"}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// ourServer refuses calls of their client.
func ourServer(ctx context.Context) error {
	for _, c := range serverCases {
		for _, method := range []string{"Get", "List"} {
			s, err := newShop(c.pushback, c.freed)
			if err != nil {
				return err
			}
			end, err := s.visit(ctx, method)
			s.server.Stop()
			s.permit.Release(permit.Ignored)
			if err != nil {
				return err
			}
			name := method + ", " + c.name
			if end.Code != c.code {
				return fmt.Errorf("%s: their client got %v %q, want %v", name, end.Code, end.Details, c.code)
			}
			if err := s.check(c.pushback, c.attempts); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Printf("  %s: ok\n", name)
		}
	}
	return nil
}

// shop is our server, with a limit of one, which is taken.
type shop struct {
	listener net.Listener
	server   *grpc.Server
	permit   limiter.Permit
	arrivals chan arrival
	freed    bool
}

type arrival struct {
	at       time.Time
	previous []string
}

func newShop(pushback time.Duration, freed bool) (*shop, error) {
	algorithm, err := gradient.NewFixed(1)
	if err != nil {
		return nil, err
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm, Reserve: limiter.NoReserve})
	if err != nil {
		return nil, err
	}
	server, err := grpcmw.NewServer(grpcmw.ServerLimiter(l), grpcmw.Pushback(pushback))
	if err != nil {
		return nil, err
	}
	s := &shop{arrivals: make(chan arrival, 100), freed: freed}
	s.permit, _ = l.TryAcquire(limiter.Bypass)
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	// A service that is not registered is a stream to grpc-go, unary methods included.
	s.server = grpc.NewServer(append([]grpc.ServerOption{grpc.ChainStreamInterceptor(s.note)},
		append(server.ServerOptions(), grpc.UnknownServiceHandler(echo))...)...)
	go func() { _ = s.server.Serve(s.listener) }() // until Stop
	return s, nil
}

// note is the outer interceptor.
func (s *shop) note(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s.arrivals <- arrival{time.Now(), metadata.ValueFromIncomingContext(ss.Context(), "grpc-previous-rpc-attempts")}
	err := handler(srv, ss)
	if s.freed {
		s.permit.Release(permit.Ignored)
	}
	return err
}

func echo(_ any, ss grpc.ServerStream) error {
	m := new(emptypb.Empty)
	if err := ss.RecvMsg(m); err != nil {
		return err
	}
	return ss.SendMsg(m)
}

// ending is how a call has ended for their client.
type ending struct {
	Code    codes.Code
	Details string
}

// visit has their client make one call.
func (s *shop) visit(ctx context.Context, method string) (end ending, err error) {
	port := s.listener.Addr().(*net.TCPAddr).Port
	p, err := startPeer(ctx, "client", strconv.Itoa(port), theirRetries)
	if err != nil {
		return ending{}, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := p.tell(map[string]string{"method": method}); err != nil {
		return ending{}, err
	}
	return end, p.hear(&end)
}

// check compares what came with the pushback. Their timers may be early by a millisecond.
func (s *shop) check(pushback time.Duration, attempts int) error {
	close(s.arrivals) // the server has stopped
	var last arrival
	n := 0
	for a := range s.arrivals {
		var want []string
		if n > 0 {
			want = []string{strconv.Itoa(n)}
			if gap := a.at.Sub(last.at); gap < pushback-5*time.Millisecond {
				return fmt.Errorf("attempt %d came after %v, the pushback was %v", n+1, gap, pushback)
			}
		}
		if !slices.Equal(a.previous, want) {
			return fmt.Errorf("attempt %d came with %q previous ones, want %q", n+1, a.previous, want)
		}
		last = a
		n++
	}
	if n != attempts {
		return fmt.Errorf("%d attempts came, want %d", n, attempts)
	}
	return nil
}
