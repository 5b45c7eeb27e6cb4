package hedgearena

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// server is the set of replicas. It runs in a bubble: a slot that is busy is a timer.
type server struct {
	mu sync.Mutex // a leaf
	// Guarded by mu.

	replicas []*replica
	drops    bool // queued work that is cancelled is dropped
	closed   bool
	// Each attempt that came is in one of these, or in a queue or a slot.
	came, served, dropped int
}

type replica struct {
	server *server
	queue  []*job // from head on
	head   int
	free   []*slot
	busy   int
	open   int // Invariant: none begins while busy ≥ open.
	frozen bool
	slots  []*slot
}

// slot serves one attempt at a time.
type slot struct {
	replica *replica
	timer   *time.Timer
	job     *job
	ends    time.Time     // while it is busy and not frozen
	left    time.Duration // while it is busy and frozen
}

// job is an attempt at a server.
type job struct {
	service   time.Duration
	done      chan struct{} // closed when it has been served
	cancelled bool
}

func newServer(s *Scenario) *server {
	x := &server{drops: s.Drops}
	for range s.Replicas {
		r := &replica{server: x, open: s.Slots}
		for range s.Slots {
			r.slots = append(r.slots, &slot{replica: r})
		}
		r.free = append(r.free, r.slots...)
		x.replicas = append(x.replicas, r)
	}
	return x
}

// serve has an attempt served by a replica, and returns when it has been or ctx has
// ended: with the error of ctx then.
func (s *server) serve(ctx context.Context, to int, service time.Duration) error {
	j := &job{service: service, done: make(chan struct{})}
	s.mu.Lock()
	s.came++
	r := s.replicas[to]
	r.queue = append(r.queue, j)
	r.begin()
	s.mu.Unlock()
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		j.cancelled = true
		s.mu.Unlock()
		return ctx.Err()
	}
}

// begin gives queued work to free slots. server.mu must be held.
func (r *replica) begin() {
	for r.head < len(r.queue) && r.busy < r.open && !r.frozen && !r.server.closed {
		j := r.queue[r.head]
		r.queue[r.head] = nil
		if r.head++; r.head > 1024 && 2*r.head > len(r.queue) {
			r.queue = r.queue[:copy(r.queue, r.queue[r.head:])]
			r.head = 0
		}
		if j.cancelled && r.server.drops {
			r.server.dropped++
			continue
		}
		last := len(r.free) - 1
		s := r.free[last]
		r.free = r.free[:last]
		r.busy++
		s.job, s.ends = j, time.Now().Add(j.service)
		if s.timer == nil {
			s.timer = time.AfterFunc(j.service, s.end)
		} else {
			s.timer.Reset(j.service)
		}
	}
}

// end is called by the timer.
func (s *slot) end() {
	r := s.replica
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if r.frozen || r.server.closed || s.job == nil {
		return // The freeze came in the same instant: thaw sets the timer again.
	}
	close(s.job.done)
	r.server.served++
	s.job = nil
	r.free = append(r.free, s)
	r.busy--
	r.begin()
}

// freeze stops a replica: nothing begins, and what is in a slot stays there.
func (s *server) freeze(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.replicas[i]
	r.frozen = true
	for _, x := range r.slots {
		if x.job != nil {
			x.timer.Stop()
			x.left = max(0, time.Until(x.ends))
		}
	}
}

// thaw lets it go on.
func (s *server) thaw(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.replicas[i]
	r.frozen = false
	for _, x := range r.slots {
		if x.job != nil {
			x.ends = time.Now().Add(x.left)
			x.timer.Reset(x.left)
		}
	}
	r.begin()
}

// freezer freezes the replicas named, again and again, until stop is closed. What lies
// between is even from half to one and a half of the mean.
func (s *server) freezer(f Freeze, rng *rand.Rand, stop <-chan struct{}, replicas ...int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := func(d time.Duration) bool {
		timer.Reset(d)
		select {
		case <-timer.C:
			return true
		case <-stop:
			return false
		}
	}
	for pause(seconds((0.5 + rng.Float64()) * f.Every.Seconds())) {
		for _, i := range replicas {
			s.freeze(i)
		}
		if !pause(f.For) {
			return
		}
		for _, i := range replicas {
			s.thaw(i)
		}
	}
}

// setOpen changes how many slots of each replica are open. What is in a slot that
// closes is served to its end.
func (s *server) setOpen(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		r.open = n
		r.begin()
	}
}

// close ends it, with what is left in queues and slots.
func (s *server) close() (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, r := range s.replicas {
		left += len(r.queue) - r.head + r.busy
		for _, x := range r.slots {
			if x.timer != nil {
				x.timer.Stop()
			}
		}
	}
	return left
}
