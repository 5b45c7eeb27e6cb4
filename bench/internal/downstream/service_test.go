package downstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// profile is one in which every request takes about the mean.
var profile = Profile{Mean: time.Second, Longest: time.Minute}

func TestWorkIsFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := semaphore.NewWeighted(2)
		var mu sync.Mutex
		var ended []string
		start := time.Now()
		for i := range 6 {
			go func() {
				if err := work(t.Context(), slots, time.Second); err != nil {
					t.Errorf("work %d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, fmt.Sprint(i/2, " at ", time.Since(start)))
			}()
			synctest.Wait() // so that they come in order
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"0 at 1s", "0 at 1s", "1 at 2s", "1 at 2s", "2 at 3s", "2 at 3s"}
		if !slices.Equal(ended, want) {
			t.Errorf("ended = %v, want %v", ended, want)
		}
	})
}

// Whoever leaves the queue or a slot lets the next one in.
func TestWorkCancelled(t *testing.T) {
	for _, tt := range []struct {
		name       string
		leave      int           // 0 has the slot, 1 is queued, 2 is behind it
		wantOthers time.Duration // when the last of the others has ended
	}{
		{"in the slot", 0, 2500 * time.Millisecond},
		{"in the queue", 1, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slots := semaphore.NewWeighted(1)
				start := time.Now()
				var ends [3]time.Duration
				leaver, leave := context.WithCancel(t.Context())
				for i := range 3 {
					ctx := t.Context()
					if i == tt.leave {
						ctx = leaver
					}
					go func() {
						err := work(ctx, slots, time.Second)
						if i == tt.leave {
							if !errors.Is(err, context.Canceled) {
								t.Errorf("the one who left: %v, want context.Canceled", err)
							}
							return
						}
						if err != nil {
							t.Errorf("work %d: %v", i, err)
						}
						ends[i] = time.Since(start)
					}()
					synctest.Wait()
				}
				time.Sleep(500 * time.Millisecond)
				leave()
				time.Sleep(time.Minute)
				synctest.Wait()
				if others := slices.Max(ends[:]); others != tt.wantOthers {
					t.Errorf("the others had ended after %v, want %v", others, tt.wantOthers)
				}
			})
		})
	}
}

// The handler counts those in the queue too, and a request whose client has gone
// leaves at once only if the service honours that.
func TestHandlerCancelled(t *testing.T) {
	for _, protocol := range []string{HTTP, GRPC} {
		for _, honours := range []bool{true, false} {
			t.Run(fmt.Sprint(protocol, " honours ", honours), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &Service{config: Config{Slots: 1, HonoursCancel: honours, Profile: profile}}
					call, stop := callHTTP(s), func() {}
					if protocol == GRPC {
						call, stop = callGRPC(t, s)
					}
					defer stop()
					ctx, gone := context.WithCancel(t.Context())
					var done [2]bool
					for i := range done {
						go func() { done[i] = call(ctx, uint64(i)) }()
						synctest.Wait()
					}
					time.Sleep(time.Millisecond)
					synctest.Wait()
					if n := s.Inside(); n != 2 {
						t.Errorf("Inside() = %d, want 2", n)
					}
					gone()
					synctest.Wait()
					if left := s.Inside() == 0; left != honours {
						t.Errorf("all left at once = %t, want %t", left, honours)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					visits, peak := s.Log()
					if n := s.Inside(); n != 0 || peak != 2 || len(visits) != 2 {
						t.Errorf("Inside() = %d, peak = %d, %d visits, want 0, 2, 2", n, peak, len(visits))
					}
					// A client that says no number makes a first attempt.
					for _, v := range visits {
						if v.Attempt != 1 {
							t.Errorf("visit %+v, want attempt 1", v)
						}
					}
					// A client of gRPC that has gone learns nothing any more.
					want := !honours && protocol == HTTP
					if done != [2]bool{want, want} {
						t.Errorf("answered as done: %v, want %t for both", done, want)
					}
				})
			})
		}
	}
}

// The count goes down before the client can know that its attempt has ended: else a permit that
// comes back in time would look as if it had come back too early.
func TestVisitIsOverBeforeItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{config: Config{Slots: 1, Profile: profile}}
		slots := s.slots()
		for call := range uint64(100) {
			if err := s.visit(t.Context(), slots, call, 1); err != nil {
				t.Fatal(err)
			}
			if n := s.Inside(); n != 0 {
				t.Fatalf("call %d has its answer, and %d are inside", call, n)
			}
		}
	})
}

// A report waits for those that nobody waits for any more, so that each visit in it has an end.
func TestReportWaitsForWhoIsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{config: Config{Slots: 1, Profile: profile}}
		slots := s.slots()
		for call := range uint64(2) {
			go func() { _ = s.visit(t.Context(), slots, call, 1) }() // it is not cut short
		}
		synctest.Wait()
		r := s.answer(t.Context(), request{Command: commandReport})
		if r.Error != "" || len(r.Report.Visits) != 2 {
			t.Fatalf("%+v", r)
		}
		for _, v := range r.Report.Visits {
			if v.Exit <= v.Enter {
				t.Errorf("visit %+v has no end", v)
			}
		}
	})
}

// callHTTP returns how a handler of s is called, and whether it then answers 200 and
// not 503.
func callHTTP(s *Service) func(ctx context.Context, call uint64) bool {
	handler := s.handler()
	return func(ctx context.Context, call uint64) bool {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
		r.Header.Set(CallHeader, fmt.Sprint(call))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code == http.StatusOK
	}
}

// callGRPC returns how a replica of s is called in memory, and whether it answers.
// stop must be called before the end of a bubble.
func callGRPC(t *testing.T, s *Service) (call func(ctx context.Context, call uint64) bool, stop func()) {
	t.Helper()
	channel, stop := dialGRPC(t, s)
	return func(ctx context.Context, call uint64) bool {
		return channel.Invoke(ctx, Method, wrapperspb.UInt64(call), new(emptypb.Empty)) == nil
	}, stop
}

// dialGRPC starts a replica of s in memory, and returns a channel to it.
func dialGRPC(t *testing.T, s *Service) (channel *grpc.ClientConn, stop func()) {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	serve, closeServer := s.grpcReplica()
	go func() { _ = serve(listener) }() // until stop
	channel, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return channel, func() {
		if err := errors.Join(channel.Close(), closeServer()); err != nil {
			t.Error(err)
		}
	}
}

func TestHandlerBadNumbers(t *testing.T) {
	s := &Service{config: Config{Slots: 1, Profile: profile}}
	for _, header := range []http.Header{
		{},
		{CallHeader: {"-1"}},
		{CallHeader: {"1"}, AttemptHeader: {"two"}},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header = header
		s.handler().ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || s.peak != 0 {
			t.Errorf("%v: status %d with a peak of %d, want 400 and 0", header, w.Code, s.peak)
		}
	}
}

// What is no number of an attempt is refused and not counted.
func TestGRPCHandlerBadNumber(t *testing.T) {
	s := &Service{config: Config{Slots: 1, Profile: profile}}
	channel, stop := dialGRPC(t, s)
	defer stop()
	ctx := metadata.AppendToOutgoingContext(t.Context(), previousAttempts, "two")
	if err := channel.Invoke(ctx, Method, wrapperspb.UInt64(1), new(emptypb.Empty)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a number in words: %v, want InvalidArgument", err)
	}
	if visits, _ := s.Log(); len(visits) != 0 {
		t.Errorf("the log has %+v, want nothing", visits)
	}
}

func TestConfigValidate(t *testing.T) {
	good := Config{Protocol: HTTP, Replicas: 1, Slots: 1, Profile: profile}
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Protocol = "smtp" }, `downstream: Protocol "smtp" is neither http nor grpc`},
		{func(c *Config) { c.Replicas = 0 }, "downstream: Replicas 0 is below 1"},
		{func(c *Config) { c.Slots = -2 }, "downstream: Slots -2 is below 1"},
		{func(c *Config) { c.Profile.Mean = -1 }, "downstream: Profile.Mean -1ns is not positive"},
		{func(c *Config) { c.Profile.Longest = 0 }, "downstream: Profile.Longest 0s is not positive"},
	} {
		c := good
		tt.change(&c)
		if _, err := Listen(c); err == nil || err.Error() != tt.want {
			t.Errorf("Listen(%+v): %v, want %s", c, err, tt.want)
		}
	}
}
