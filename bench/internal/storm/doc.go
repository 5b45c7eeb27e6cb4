// Package storm is a model of a retry storm: clients that try again turn an outage of half
// a minute into one that does not end, unless something keeps them from it.
//
// # The model
//
// Time goes in ticks of a second. A server does so many requests a second, in the order in
// which they came, and does not know which of them nobody waits for any more. In each tick,
// in this order,
//
//  1. an attempt that came Timeout+1 ticks ago and was not answered has timed out, and one
//     that was refused in the tick before has failed: the client tries again at once (or after
//     its back-off) if it has tries left and a budget for it, and else the call has failed;
//  2. the calls of the tick come, and with those of the attempts that are due again they join
//     the queue, or are refused;
//  3. the server takes as many as its capacity off the head of the queue, and none in an
//     outage. An answer within Timeout ticks is an answer to the call; a later one is wasted.
//
// So with a time-out of one second an attempt has the tick in which it came and the next, and
// comes again in the one after that. The outage begins when Start is over.
//
// The server has recovered in the tick from whose end on its queue never again holds more
// than it can do within a time-out; that is told only if a minute of the run is left, for a
// queue that is short for a few ticks may be so by chance. Peak is how many attempts came to the server in the
// worst tick, as a multiple of the calls. Peak queue is that at the end of a tick. Wasted is
// the share of what the server did that nobody waited for.
//
// Retries come from [Layer]s: a call passes through all of them, and each of them tries what
// is below it several times. A budget is a hedgedlimit.RatioBudget, one for a layer, with the
// time of the tick as its argument: calls and what comes from above pay in when they start,
// retries take out. It holds what the calls of one second pay in, and time pays in nothing.
//
// # Within a tick
//
// A limit has to be told when, within its second, an attempt came and ended. Where there is a
// limit, or a bound to the queue, the attempts of a tick come at equal distances, calls and
// retries evenly mixed, and the server does one after the other, each in the same time. The
// figures of a queue without either are the same whether one looks into the tick or not:
// equal distances of no less than what a request takes make no queue by themselves, and if
// there are more attempts than that, the server is busy all the time. Only the order of calls
// and retries within a tick is another, which decides who has tries left; in the rows that are
// known it changes nothing. TestInsideOfATick shows both.
//
// The limits are limiter.Limiter with their defaults, run as they are in a bubble of
// testing/synctest (package bubble), by one goroutine. [AtClient] is one in front of the server,
// for all calls: a permit is held until the answer or the time-out, so what the client has
// given up lies in the queue of the server without one, and a retry that gets none has cost
// nothing of its budget. [AtServer] holds its permit until the server is done.
// [AtServerMarked] is the same behind the gate of the servers of httpmw and grpcmw, which has
// an eye on which attempts are retries, as their header says: they get a permit only beyond
// the reserve or where nothing is in flight, and from half of the permits on no more of them,
// in ten seconds, than a tenth of what came.
package storm
