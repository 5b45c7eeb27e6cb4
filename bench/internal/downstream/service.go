package downstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// CallHeader carries the number of the call over HTTP, from which the service time
// is drawn. AttemptHeader carries the number of the attempt, 1 if it is absent.
const (
	CallHeader    = "X-Bench-Call"
	AttemptHeader = "X-Hedge-Attempt"
)

// The protocols of a service.
const (
	HTTP = "http"
	GRPC = "grpc"
)

// Config describes a service.
type Config struct {
	Protocol string `json:"protocol"` // HTTP or GRPC
	Seed     uint64 `json:"seed"`
	Replicas int    `json:"replicas"`
	// Slots is how many requests each replica works on at once. Others queue in
	// the order of their coming, without a bound.
	Slots int `json:"slots"`
	// HonoursCancel tells whether a request whose client has gone leaves its
	// queue or slot at once. Otherwise it is worked on to its end.
	HonoursCancel bool    `json:"honours_cancel"`
	Profile       Profile `json:"profile"`
}

func (c Config) validate() error {
	switch {
	case c.Protocol != HTTP && c.Protocol != GRPC:
		return fmt.Errorf("downstream: Protocol %q is neither %s nor %s", c.Protocol, HTTP, GRPC)
	case c.Replicas < 1:
		return fmt.Errorf("downstream: Replicas %d is below 1", c.Replicas)
	case c.Slots < 1:
		return fmt.Errorf("downstream: Slots %d is below 1", c.Slots)
	case c.Profile.Mean <= 0:
		return fmt.Errorf("downstream: Profile.Mean %v is not positive", c.Profile.Mean)
	case c.Profile.Longest <= 0:
		return fmt.Errorf("downstream: Profile.Longest %v is not positive", c.Profile.Longest)
	}
	return nil
}

// Visit is the stay of one attempt in its handler, the queue included, on the
// wall clock in nanoseconds. Exit is 0 while it lasts.
type Visit struct {
	Call    uint64 `json:"c"`
	Attempt int    `json:"a"`
	Enter   int64  `json:"i"`
	Exit    int64  `json:"o"`
}

// Service is a set of replicas that share one log. It must be made by Listen.
type Service struct {
	// Immutable after Listen.
	config    Config
	closes    []func() error
	addresses []string

	mu sync.Mutex
	// Guarded by mu.

	visits []Visit
	inside int // Invariant: inside == visits with Exit == 0.
	peak   int // Invariant: inside ≤ peak.
}

// Listen starts the replicas on ports of 127.0.0.1 that are free. Close must
// follow. On error nothing is left open.
func Listen(config Config) (*Service, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &Service{config: config}
	for range config.Replicas {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			_ = s.Close() // the first error is the one to tell
			return nil, err
		}
		serve, closeServer := s.httpReplica()
		if config.Protocol == GRPC {
			serve, closeServer = s.grpcReplica()
		}
		s.closes = append(s.closes, closeServer)
		s.addresses = append(s.addresses, l.Addr().String())
		go func() { _ = serve(l) }() // its error is that of Close
	}
	return s, nil
}

// Addresses returns where the replicas listen.
func (s *Service) Addresses() []string { return s.addresses }

// Close stops the replicas at once, and what they work on is cut off.
func (s *Service) Close() error {
	var errs []error
	for _, closeServer := range s.closes {
		errs = append(errs, closeServer())
	}
	return errors.Join(errs...)
}

// slots are those of one replica.
func (s *Service) slots() *semaphore.Weighted { return semaphore.NewWeighted(int64(s.config.Slots)) }

// visit is the stay of one attempt: it is counted, and worked on in one of the slots.
func (s *Service) visit(ctx context.Context, slots *semaphore.Weighted, call uint64, attempt int) error {
	visit := s.enter(call, attempt)
	// The count goes down before the client can know of the end, so that the stay
	// lies within the client's hold.
	defer s.exit(visit)
	if !s.config.HonoursCancel {
		ctx = context.WithoutCancel(ctx)
	}
	return work(ctx, slots, s.config.Profile.Draw(s.config.Seed, call, attempt))
}

// work waits for a slot, keeps it for d, and returns nil; or ctx.Err() if ctx
// ends before.
func work(ctx context.Context, slots *semaphore.Weighted, d time.Duration) error {
	// First come, first served is what semaphore.Weighted promises for equal
	// weights.
	if err := slots.Acquire(ctx, 1); err != nil {
		return err
	}
	defer slots.Release(1)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Service) enter(call uint64, attempt int) (visit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visits = append(s.visits, Visit{Call: call, Attempt: attempt, Enter: time.Now().UnixNano()})
	s.inside++
	s.peak = max(s.peak, s.inside)
	return len(s.visits) - 1
}

func (s *Service) exit(visit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visits[visit].Exit = time.Now().UnixNano()
	s.inside--
}

// Inside returns how many requests are inside now, in a queue or a slot.
func (s *Service) Inside() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inside
}

// Quiet waits until no request is inside, and returns ctx.Err() if ctx ends
// before.
func (s *Service) Quiet(ctx context.Context) error {
	// The end of the last one is not worth a signal: this is asked once a row.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		inside := s.Inside()
		if inside == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("downstream: %d requests are still inside: %w", inside, ctx.Err())
		}
	}
}

// Log returns a copy of all visits so far, in the order of their coming, and the
// most that were inside at once.
func (s *Service) Log() (visits []Visit, peak int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Visit(nil), s.visits...), s.peak
}
