// Package gradient holds the algorithms that set a concurrency limit: [Gradient],
// which finds the capacity of the other side by itself, [AIMD], which follows
// drops or a target latency, and [Fixed]. [FromLimit] makes one of a limit of another
// library.
//
// They are pure: data in, limit out. The caller (package limiter) counts what
// happens, closes a [Window] when the last [Decision] says it is due, and puts the
// answer in force. So everything here is driven in tests without a clock.
//
// # How Gradient works
//
// It steers by the number of requests that queue at the other side. By Little's
// law that is
//
//	Q = X · (q25 − B)
//
// with X the throughput of a window, q25 the 25th percentile of its latency, and B
// what that percentile is without a queue. A quantile moves by the queueing time
// whatever the shape of the latency, so this holds for a heavy tail too, and
// requests are the right unit for a service of one worker and of a thousand.
//
// Some queue must be allowed, or workers idle whenever the traffic pauses: of the
// order of the square root of the workers that are busy (the square-root staffing
// rule of Halfin and Whitt, 1981). Busy workers are X·M, with M the mean latency
// without a queue. So the target is
//
//	Q* = a + b·√(X·M)
//
// and the limit moves by what Q is off. From above it lands on X·M + Q* in one
// window; from below it grows by half of Q* a window, or by half of itself while it
// has never met a queue. Growing is an experiment as well: if throughput does not
// follow, something queues.
//
// B and M must be measured without a queue, never averaged out of busy traffic:
// that would make a long overload the new normal. They are learnt from windows in
// which the limit was not needed, and by a probe: the limit is lowered to 0.7 of
// itself, and again for as long as the throughput does not follow. Lowering it costs
// nothing while there is a queue, and the last step is free of one. A longer
// latency in a probe is believed only if throughput was lost as well; otherwise it
// is a queue of somebody else's making. Probes come rarely (a hundredth of the
// time), and on a grid of the wall clock, so that clients of one server probe
// together and see it drained, as the ProbeRTT phase of BBR does (Cardwell et al.,
// 2016).
//
// Drops cut the limit, but never below what the traffic that does get through
// needs: a share of calls that always fails must not close the way for the rest.
//
// Every latency is of attempts admitted under the present limit (an epoch).
//
// # What decides, and where
//
// A window goes through these, in this order. Each is a file with its own tests, and
// the reason of each constant stands beside it.
//
//   - sample.go reads the window: throughput, mean in flight, the lower quartile with
//     its noise, and the shares refused and dropped. It decides whether the window can
//     teach at all, whether its drops are more than an accident, and whether it was
//     clean, which means that the limit was not needed and there is no queue in it.
//   - knee.go, while it compares two limits, takes the window for itself. It decides
//     whether the target for the queue is to be smaller or larger than the square root
//     says, by the throughput at either.
//   - reference.go keeps the throughput that the service has been seen to reach. It
//     decides by how much throughput was lost, which is the one proof of a slower service
//     that is not somebody's queue, and whether some has gone missing since the last
//     probe, which asks for another.
//   - baseline.go keeps B, M and their noise. It decides what may teach them: clean
//     windows, once two agree, and probes, by a jump if the difference is beyond noise and
//     by a weighted mean otherwise; a busy window only downwards; a window with one in
//     flight, which has no queue of its own.
//   - target.go works out Q and Q*. It decides whether the mean of the latency may have a
//     say beside its quartile: where the two agree within noise.
//   - mean.go decides whether the mean is believed where they do not agree: if throughput
//     stands still when the limit grows, there is a queue which the quartile does not see.
//   - step.go chooses the next limit: cut for drops, hold what is not needed, take back
//     what queues too much, grow otherwise. It decides when growth may be fast.
//   - ceiling.go cuts a limit under which callers wait longer than Config.MaxLatency, and
//     bounds growth near it. It asks no baseline.
//   - idle.go lowers a limit that has not been needed for a minute, so that a spike does
//     not meet what another day had left.
//   - schedule.go decides when a probe is due, and when it would be of no use.
//   - probe.go lowers the limit until the throughput follows, and decides what of the
//     latency there is believed, and which limit to go on with.
//   - cutshort.go decides about windows of which so many calls were cut short that the
//     latency is not known: a queue that there is at least counts, and nothing is learnt.
//   - bounds.go keeps all of it between Min and Max.
//   - gradient.go holds the state and puts the above in order, and decides how long the
//     next window is and whether it begins a new epoch.
//   - histogram.go counts latencies, with those that were cut short as what they are:
//     lower bounds.
//
// Every decision carries the [Reason] for it. The folder testdata/traces shows them, in
// one story after the other.
//
// Beside these, aimd.go and fixed.go are algorithms of their own, and fromlimit.go feeds
// the limits of other libraries, which learn from single calls. algorithm.go says what
// all of them are asked and answer, and when a window is due.
//
// # What it does not see
//
// A server on which nobody queues, but everybody slows everybody down, does most with a
// limit at which there is no queue to be seen. The comparison of two limits finds it, in
// seconds, and loses as much: goodput is 92 to 94 % of what is possible. It needs 60 calls
// a window, so on such a server with less traffic the limit is too high.
//
// Calls that pass the bottleneck by, such as cache hits, hide a queue from the lower
// quartile once they are a fourth of all. The mean then tells of it, after a second or
// two in which the limit is too high. If they come and go, give them a limiter of their own,
// or mark them so that they do not teach.
//
// Two classes of calls with latencies a hundred times apart are one service with a mean,
// and a change of their mix is another mean at the same quartile. When the slow ones go
// from one in ten to one in two, the limit takes half a minute to follow, and may lose
// as much again in a probe. Give each class a limiter of its own.
//
// A share of calls that always runs into its deadline holds most of the permits if it is
// large, and then looks like an overload of the rest: one in twenty takes nothing from
// the others, one in five takes most.
//
// Clients of one server under lasting overload cannot tell the queue of the others from
// a slower service, so the latency creeps up: ten clients at half as much again as the
// server can do are at a median of 60 ms after five minutes, with 10 ms of service.
// With [Config].MaxLatency at 50 ms they are at 40, the 99th percentile is a fourth of
// what it was, and no goodput is lost.
package gradient
