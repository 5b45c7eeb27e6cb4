package soak

import (
	"context"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

const (
	// drainTime is how long what still runs may take to end, once no call is begun: far
	// above the longest call, and a collection or two.
	drainTime = 30 * time.Second
	// drainStep is how often that is looked at.
	drainStep = 50 * time.Millisecond
	// heapMargin and heapSlack are how far the heap of the last third may be above that of
	// the first: a quarter for the pools and connections that only came later, and 4 MiB,
	// which is what the calls that happen to be under way differ by.
	heapMargin = 1.25
	heapSlack  = 4 << 20
	// minHeaps is below how many samples nothing is said of the heap.
	minHeaps = 12
)

// drain waits until nothing is left of the calls, and tells what is. Bodies that were
// dropped need a collection to be found, and a use of the Transport to be closed.
func (r *run) drain(inner byHost, goroutines int) {
	deadline := time.Now().Add(r.config.drain)
	left := func() (permits, waiting int) {
		for _, t := range r.transports {
			for _, h := range t.Stats().Hosts {
				permits += h.Limiter.Ledger.InFlight
				waiting += h.Limiter.Ledger.Waiting
			}
		}
		return permits, waiting
	}
	until(deadline, func() bool {
		runtime.GC()
		permits, waiting := left()
		return permits == 0 && waiting == 0 && r.base.responses.Load() == 0 && r.base.requests.Load() == 0 && r.base.roundTrips.Load() == 0
	})
	if permits, waiting := left(); permits != 0 || waiting != 0 {
		r.tell("%d permits are in flight and %d callers wait, want 0", permits, waiting)
	}
	if n := r.base.responses.Load(); n != 0 {
		r.tell("%d bodies of responses are open, want 0", n)
	}
	if n := r.base.requests.Load(); n != 0 {
		r.tell("%d bodies of requests are open, want 0", n)
	}
	if n := r.base.roundTrips.Load(); n != 0 {
		r.tell("%d round trips run, want 0", n)
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	for _, t := range r.transports {
		if err := t.Close(ctx); err != nil {
			r.tell("a transport cannot be closed: %v", err)
		}
	}
	for _, t := range inner {
		t.CloseIdleConnections()
	}
	r.closeServers()
	for _, t := range r.targets {
		h := t.server.limit
		if h == nil {
			continue
		}
		if err := h.Close(ctx); err != nil {
			r.tell("requests are inside the Handler over %s: %v", t.name, err)
		}
		if s := h.Stats(); s.Inside != 0 || s.Limiter.Ledger.InFlight != 0 || s.Limiter.Ledger.Waiting != 0 || s.Limiter.Ledger.Granted == 0 {
			r.tell("the Handler over %s has granted %d permits, %d are in flight, %d requests wait and %d are inside, want 0", t.name,
				s.Limiter.Ledger.Granted, s.Limiter.Ledger.InFlight, s.Limiter.Ledger.Waiting, s.Inside)
		}
	}
	until(deadline, func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := runtime.NumGoroutine(); n > goroutines {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a Builder takes everything
		r.tell("%d goroutines run, %d did at the beginning:\n%s", n, goroutines, stacks.String())
	}
}

// until waits until done says so, or the deadline has passed.
func until(deadline time.Time, done func() bool) {
	for !done() && time.Now().Before(deadline) {
		time.Sleep(drainStep)
	}
}

// judgeHeap compares the heap of the last third of the run with that of the first.
func (r *run) judgeHeap() (first, last uint64) {
	third := len(r.heaps) / 3
	first, last = median(r.heaps[:third]), median(r.heaps[len(r.heaps)-third:])
	if len(r.heaps) >= minHeaps && float64(last) > heapMargin*float64(first)+heapSlack {
		r.tell("the heap has grown from %d to %d bytes: more than %v × and %d bytes", first, last, heapMargin, heapSlack)
	}
	return first, last
}

// judgeLoad tells if the run was no soak: calls were not answered, or not refused.
func (r *run) judgeLoad(last Snapshot, interrupted bool) {
	if interrupted {
		return // it may have been an instant
	}
	for n, t := range r.targets {
		if r.good[n].Load() == 0 {
			r.tell("no call was answered over %s", t.name)
		}
	}
	if last.Hedged == 0 {
		r.tell("no call was hedged")
	}
	if r.ends[refused].Load()+r.ends[failed].Load() == 0 {
		r.tell("at %d × the capacity no call was refused by anybody", overload)
	}
}
