// Package sizing works out which limit, hedge delay and budget suit a dependency, and what
// each of them does.
//
// An [Input] is what is known of the dependency: how long it takes, how often it is called, what
// it can do, and whether calls that are close in time are slow together. It comes from a table
// of percentiles ([ParseTable]), from the result of a load generator or a log ([Read]), or from
// load that is sent while it is watched ([Sweep]).
//
// A [Sizing] lets the limiter and the hedger of the library stand before a model of that
// dependency, in virtual time (package hedgearena), at the present load and at half as much
// again, and chooses from what it sees. Nothing is recommended that was not run.
//
// # The model
//
// The dependency has workers that serve one call each, first come, first served, and calls come
// as a Poisson process. It fails no call; only a client gives up. A hedge takes as long as
// another call: one that was begun at about the same time, where the order of the calls is
// known, and any other where it is not. Latencies are taken for service times, without a queue.
// Where the workers are not known there are enough of them, so nothing queues, and what is said
// of a higher load is said of the client alone. Of latencies in an order a simulation takes all,
// or stretches from all over a long file, every seed others. More than a thousand workers
// are modelled as fewer, under as much less load.
//
// # How the choice is made
//
// The limit is the smallest under which half as much traffic again as the dependency can serve
// still gets 99 % of the answers that any limit gets: below it workers idle, above it calls
// only queue.
//
// Candidates for hedging are quantiles of the latency and, where it has a gap, delays within
// that: behind the gates of the library, and as a gRPC hedgingPolicy, which has none. Where those
// do far better, they are tried in Go without the gates as well. One suits if it cuts the 99th
// percentile by a tenth at the present load, with every seed, while at both loads it fails at
// most 0.1 points more than no hedging, or twice that or a fourth more if seeds differ by as
// much, and raises the 99th percentile by at most 2 %. A refused call counts as slower than any other. Calls must not
// be slow together after that delay. Among those within five points of the best, the one that
// sends least is chosen. It is then tried behind the limit that moves, as it will be; if it does harm
// there, the next is.
package sizing
