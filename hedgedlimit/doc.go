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
// # The life of a call
//
// The goroutine of the caller decides everything; attempts run in goroutines of
// their own and report to it.
//
//	          permit refused
//	 start ─────────────────────────────────────────────────▶ decided (error)
//	   │ primary launched
//	   ▼
//	running ──delay over──▶ gates ──all yes──▶ launch a hedge ──▶ running
//	   │                      └──any no──▶ skip, arm the delay again ──▶ running
//	   ├──an attempt failed, NonFatal──▶ the same gates, at once
//	   ├──an attempt succeeded──────────────────────────────▶ decided (result)
//	   ├──an attempt failed, Fatal, or panicked─────────────▶ decided (error)
//	   ├──context done──────────────────────────────────────▶ decided (error)
//	   └──none runs and none can start──────────────────────▶ decided (error)
//
// What has been reported when the caller's goroutine looks counts as one
// instant: a success beats everything else in it, then the lower number does.
//
// # The life of an attempt
//
//	launched ──▶ fn runs ──▶ fn has returned ──▶ ended
//	                              │ failed: at once
//	                              │ won: when the call is decided
//	                              │ lost: when its result has been discarded
//	                              └ and, in each case, after every Hold is released
//
// The permit is taken before the launch, and released when the attempt has
// ended, and by nothing else. Cancelling the attempt, deciding the call and the
// caller's leaving do not end it. So the number of permits out is the number of
// attempts whose work goes on, which is the load that the other side feels.
//
// Every goroutine belongs to one attempt and ends with it.
package hedgedlimit
