// Package hedgedlimit runs a call as one or more attempts, each under a permit
// of its own.
//
// A call begins with one attempt, the primary. If it has not answered after a
// delay, a second copy of it, a hedge, may be sent; the first success is the
// call's result. That cuts the tail of the latency, and it costs extra work, so
// a hedge is sent only if the budget allows it and a permit is free at once:
//
//	hedger, err := hedgedlimit.New(hedgedlimit.Config{})
//	…
//	page, err := hedgedlimit.Do(ctx, hedger,
//		func(ctx context.Context, a hedgedlimit.Attempt) (*Page, error) {
//			return fetch(ctx, url)
//		})
//
// # Words
//
// An attempt is one execution of a call. Number 1 is the primary. The others are
// hedges, started while an earlier one runs, or retries, started after one has
// failed with none running. The winner is the attempt whose result the call
// returns, the others are losers. A hedge that was due and not sent is a skip.
// It is counted, and it is never an error.
//
// # When a hedge is sent
//
// A hedge that is due must pass, in this order: the attempts that are left, a pushback
// that asked for none, the deadline, the Gates for pressure, standstill, surge and win
// rate, the Budget, and last the permit, for which it never waits. Each no is counted
// under its own reason, as a Skip. It uses up no attempt and no budget, and the hedge is
// due again after the delay, unless the no is final for the call: that of the win gate,
// and that of attempts that layers around this one have used up. So hedging sends what
// the dependency has room for, and backs off by itself, down to a probe, where it does
// not pay; Config.Holdback measures what it brings.
//
// A retry, sent after a failure with nothing running, passes the attempts, the
// deadline, the budget and the permit only, and may wait for the permit.
//
// # The life of a call
//
// The goroutine of the caller decides everything; attempts run in goroutines of
// their own and report to it. Left counts the attempts that may still be sent, none of
// them once the other side asked for no more (pushback below 0). Active counts the
// others that run.
//
//	event                    left  active   what follows
//	primary got no permit     –      –      decided: its error
//	success                   *      *      decided: the result
//	failure, Fatal or panic   *      *      decided: the errors, or the panic
//	context done              *      *      decided: the context's error
//	failure, NonFatal         0      0      decided: the errors
//	failure, NonFatal         0     >0      wait for the others
//	– with pushback n ≥ 0,   >0      *      timer := n, or the rest of the longest such
//	  or after such a one                   wait that was asked for
//	– with Retry             >0      0      timer := back-off
//	– otherwise              >0     >0      gates: a hedge now, or a skip; timer := delay
//	– otherwise              >0      0      a retry now, or decided: the errors
//	timer                    >0     >0      gates: a hedge now, or a skip; timer := delay
//	timer                    >0      0      a retry now, or decided: the errors
//
// A timer with nothing active that would run beyond the deadline is not set: the call
// is decided at once. After a retry the timer is set to the delay too. With Retry, or if
// the call is held back, no hedge is ever due and the delay is never set. A skip that is
// final for the call leaves the timer off.
//
// What has been reported when the caller's goroutine looks counts as one instant: a
// success beats everything else in it, then the lower number does, and then what has
// failed beats the context and the timer. TestCallFollowsItsTable compares calls with
// this table, step by step.
//
// # The life of an attempt
//
//	launched ──▶ fn runs ──▶ fn has returned ──▶ ended
//	                              │ failed: at once
//	                              │ won: when the call is decided
//	                              │ lost: when its result has been discarded
//	                              └ and, in each case, after every Hold is released,
//	                                and the linger of a loser is over
//
// The permit is taken before the launch, and released when the attempt has
// ended, and by nothing else. Cancelling the attempt, deciding the call and the
// caller's leaving do not end it. So the number of permits out is the number of
// attempts whose work goes on, which is the load that the other side feels.
//
// Every goroutine belongs to one attempt and ends with it.
package hedgedlimit
