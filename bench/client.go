package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// callTimeout is far above any latency below overload.
const callTimeout = 30 * time.Second

// client makes the calls of one row, over one protocol. Any number of goroutines may
// call do at once.
type client interface {
	// do makes one call and reads its answer to the end.
	do(ctx context.Context, call uint64) error
	// stats returns those of the only service.
	stats() clientStats
	// close waits until all work has ended, or ctx has, and closes the connections.
	close(ctx context.Context) error
}

// clientStats is what the middleware of either protocol knows.
type clientStats struct {
	limiter limiter.Stats
	hedging hedgedlimit.Stats
}

// newClient returns a client for the replicas at the addresses. close must follow.
func newClient(e experiment, rec *recorder, protocol string, addresses []string, seed uint64) (client, error) {
	if protocol == downstream.GRPC {
		return newGRPCClient(e, rec, addresses)
	}
	return newHTTPClient(e, rec, addresses, seed)
}

// quiet waits until no permit is out: no loser is left of the calls before.
func quiet(ctx context.Context, c client) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.stats().limiter.Ledger.InFlight > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
