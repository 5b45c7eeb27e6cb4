// Package gradient holds the algorithms that set a concurrency limit: [Gradient],
// which finds the capacity of the other side by itself, [AIMD], which follows
// drops or a target latency, and [Fixed].
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
// has never met a queue.
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
package gradient
