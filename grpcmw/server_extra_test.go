package grpcmw_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

const attempts = "grpc-previous-rpc-attempts"

// asker asks a Server directly, as often as a test likes.
func asker(t testing.TB, opts ...grpcmw.ServerOption) (*grpcmw.Server, func(values ...string) bool) {
	t.Helper()
	s, err := grpcmw.NewServer(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s, func(values ...string) bool {
		t.Helper()
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{attempts: values})
		_, err := s.UnaryInterceptor()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) { return nil, nil })
		return err == nil
	}
}

// A marked call takes a permit only if one is free at once and beyond the reserve. What
// marks one is a single number above 0, as gRFC A6 writes it (H12, H18); whatever else is
// there, the call is treated like one without it.
func TestMarkedCallsLeaveTheReserve(t *testing.T) {
	algorithm, err := gradient.NewFixed(3)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm, Reserve: 1, MaxWaiting: limiter.Unbounded})
	if err != nil {
		t.Fatal(err)
	}
	s, ask := asker(t, grpcmw.ServerLimiter(l), grpcmw.MaxExtra(1))
	for marked, rows := range map[bool][][]string{
		true: {{"1"}, {"2"}, {"10"}, {"2147483647"}},
		false: {
			{}, {""}, {"0"}, {"01"}, {"2147483648"}, {"10000000000000001"}, {"-1"}, {"+1"}, {" 1"}, {"1 "}, {"1.0"}, {"1,2"}, {"0x1"},
			{"١"}, {"one"}, {"1\n"}, {"1", "1"}, {"0", "1"}, {strings.Repeat("1", 1<<16)},
		},
	} {
		for _, values := range rows {
			name := fmt.Sprintf("%.40q", values)
			if !ask(values...) {
				t.Errorf("%s: refused with all permits free", name)
			}
			a, _ := l.TryAcquire(limiter.Bypass)
			b, _ := l.TryAcquire(limiter.Bypass)
			if ask(values...) == marked {
				t.Errorf("%s: let in with the reserve free: %v", name, !marked)
			}
			a.Release(permit.Ignored)
			b.Release(permit.Ignored)
		}
	}
	if r := s.Stats().Refused; r != (grpcmw.Refusals{ExtraFull: 4}) {
		t.Errorf("refused %+v", r)
	}
	probe(t, l)
}

// Of the calls of the last ten seconds one tenth may be hedges and retries, and three in any
// case. The next one is refused though a permit is free, and a call that is not marked never
// is.
func TestMarkedCallsAreAShareOfAll(t *testing.T) {
	for name, row := range map[string]struct {
		opts       []grpcmw.ServerOption
		few, after int // marked calls let in at first, and with 90 others besides
	}{
		"default":      {few: 3, after: 10},
		"half":         {opts: []grpcmw.ServerOption{grpcmw.MaxExtra(0.5)}, few: 3, after: 90},
		"next to none": {opts: []grpcmw.ServerOption{grpcmw.MaxExtra(0.001)}, few: 3, after: 3},
		"none":         {opts: []grpcmw.ServerOption{grpcmw.MaxExtra(0)}},
		"all, if any":  {opts: []grpcmw.ServerOption{grpcmw.MaxExtra(1)}, few: 100, after: 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixedLimiter(t, 2, 0)
				s, ask := asker(t, append(row.opts, grpcmw.ServerLimiter(l))...)
				held, _ := l.TryAcquire(limiter.Bypass) // half of it, so that the share is asked
				for range 2 {
					in := 0
					marked := func(want int) {
						for range 100 {
							if ask("1") {
								in++
							}
						}
						if in != want {
							t.Errorf("%d marked calls were let in, want %d", in, want)
						}
					}
					marked(row.few)
					for range 90 {
						if !ask() {
							t.Error("a first attempt was refused")
						}
					}
					marked(row.after)
					time.Sleep(10 * time.Second) // all is forgotten
				}
				if got, want := s.Stats().Refused, (grpcmw.Refusals{ExtraShare: uint64(400 - 2*row.after)}); got != want {
					t.Errorf("refused %+v, want %+v", got, want)
				}
				held.Release(permit.Ignored)
				probe(t, l)
			})
		})
	}
}

// A marked call that finds no permit leaves its share to the next, and does not wait.
func TestMarkedCallWithoutRoomUsesNoShare(t *testing.T) {
	l := fixedLimiter(t, 2, limiter.Unbounded)
	s, ask := asker(t, grpcmw.ServerLimiter(l))
	half, _ := l.TryAcquire(limiter.Bypass) // so that the share is asked
	held, _ := l.TryAcquire(limiter.Bypass)
	for range 100 {
		if ask("1") {
			t.Error("a marked call was let in without a permit")
		}
	}
	held.Release(permit.Ignored)
	for range 3 {
		if !ask("1") {
			t.Error("a marked call was refused with a permit free")
		}
	}
	if ask("1") {
		t.Error("the fourth was let in")
	}
	if got := s.Stats().Refused; got != (grpcmw.Refusals{ExtraFull: 100, ExtraShare: 1}) {
		t.Errorf("refused %+v", got)
	}
	half.Release(permit.Ignored)
	probe(t, l)
}

// The hedges of a Client are refused first by a Server: while the limit has room for no
// more than primaries every call is served, by its first attempt, and the pushback keeps
// the third attempt at home.
func TestServerRefusesTheHedgesOfAClient(t *testing.T) {
	for _, method := range []string{get, list} {
		synctest.Test(t, func(t *testing.T) {
			c, err := grpcmw.NewClient(config(t, `{"methodConfig": [{"name": [{}], "hedgingPolicy": {
				"maxAttempts": 3, "hedgingDelay": "0.1s", "nonFatalStatusCodes": ["UNAVAILABLE"]}}]}`), grpcmw.HedgeStreams(list))
			if err != nil {
				t.Fatal(err)
			}
			var options []any
			for _, o := range c.DialOptions() {
				options = append(options, o)
			}
			algorithm, err := gradient.NewFixed(3)
			if err != nil {
				t.Fatal(err)
			}
			l, err := limiter.New(limiter.Config{Algorithm: algorithm, Reserve: 1})
			if err != nil {
				t.Fatal(err)
			}
			inBubble(t, l, second, func(t *testing.T, s *shop) {
				results := make(chan error, 2)
				for range 2 {
					go func() { results <- s.call(t.Context(), method) }()
				}
				for range 2 {
					if err := <-results; err != nil {
						t.Errorf("%s: %v", method, err)
					}
				}
				if got := s.server.Stats(); got.Refused != (grpcmw.Refusals{ExtraFull: 2}) || got.Limiter.Ledger.Granted != 2 {
					t.Errorf("%s: %+v", method, got)
				}
				for _, err := range s.refused {
					if status.Code(err) != codes.Unavailable { // which the config says is not fatal
						t.Errorf("%s: refused with %v", method, err)
					}
				}
			}, append(options, grpcmw.Pushback(-1))...)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
