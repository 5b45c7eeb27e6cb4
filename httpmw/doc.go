// Package httpmw limits and hedges the requests of an http.Client, with a limit
// that follows what each host can take. Only GET, HEAD, OPTIONS and TRACE are
// hedged by default, and other methods if they carry an Idempotency-Key: whatever
// must not be done twice is sent once.
//
//	transport, err := httpmw.NewTransport(http.DefaultTransport)
//	…
//	client := &http.Client{Transport: transport}
//
// A [Transport] wraps another http.RoundTripper. Each request to it is one call
// of package hedgedlimit: it takes a permit of its host's limiter, and if the
// answer takes long, a second copy of the request, the hedge, may be sent under a
// permit of its own. The first good answer is returned.
//
// A request that may be sent again is also retried: after a transport error, or an answer
// with status 408, 425, 429 or 5xx, the next attempt is sent at once, or when Retry-After
// says, within the attempts and the budget of the hedger. Whoever retries in a layer of
// their own should leave one of the two out: MaxAttempts 1 of hedgedlimit.Config neither
// hedges nor retries.
//
// # Close every response body
//
// A permit is held until the response body is at its end, has failed, or has been
// closed; not just until the headers are there. Streaming a response is work of
// the host, and a limit that left it out would not hold. So a caller that neither
// reads a body to its end nor closes it keeps a permit, and when all are kept, no
// request is let through. Close is mandatory, as it is with http.Client alone.
// Stats().Hosts[i].Limiter.Ledger.InFlight shows the permits that are out. A response that was dropped unclosed is
// counted as lost when the garbage collector has found it, and closed by the next
// use of the Transport after that; requests that wait already do not help.
//
// OnLostBody tells which.
//
// The latency that the limit and the hedge delay learn from ends at the headers, or at
// the first byte: how fast a caller reads says nothing about the host.
//
// # The life of an attempt
//
// An attempt is one RoundTrip of the base transport. Its work has up to three
// parts, and each part ends once:
//
//	permit taken
//	     │
//	     ▼           the base has returned
//	 round trip ─────────────────────────────────────────▶ ended ─┐
//	     │           the base has closed it                       │
//	     ├─ request body ────────────────────────────────▶ ended ─┤
//	     │           io.EOF, an error, or Close           │
//	     └─ response body ───────────────────────────────▶ ended ─┤
//	                                                              ▼
//	                                         permit released, context ended
//
// Invariants:
//
//   - permit held ⇔ some part has not ended. The count of the parts is work.parts;
//     no part begins once it has come down to 0.
//   - The context of an attempt whose response was returned ends with the permit,
//     so no body is cut off by it.
//   - The response of an attempt belongs to one owner: the caller if it won,
//     discard if it lost, failure if its status is one. Whoever owns it closes its
//     body, or hands it on.
//   - The body of the caller's request is closed exactly once: by the base if the
//     first attempt got as far as sending it, by RoundTrip otherwise.
//   - The caller's request is not read after RoundTrip has returned, and never
//     written to.
//
// # Answers
//
// An answer with status 408, 425, 429 or 5xx, and a transport error, is a failure
// that the next attempt may mend; every other answer wins. A failed answer is read
// into memory, up to 64 KiB, and its permit released before the next attempt. How long
// that takes is no latency of the host. It holds the call up for 100 ms at most: an answer
// whose body has not come by then is treated as one that is too long.
//
// If it asks for time by Retry-After, the next attempt is sent then, if that is soon; if
// it is not, none is sent. See MaxRetryAfter.
//
// If all attempts fail, the caller gets an answer all the same if there was one:
//
//   - that of the attempt that was the last to fail, if it is as good as those before.
//     As nothing can follow, it is passed through like a good one, while its body streams;
//   - else the best that was kept. One of the service itself is better than one of the
//     way to it, which are 502, 503 and 504, and any of them is better than one whose body
//     broke off, of which the caller gets what there was and then the error; of equals, the
//     latest is.
//
// So it is if the deadline of the caller passes while a further attempt runs: http.Client
// alone would have returned the answer that was kept long before. A caller that cancels
// has no use for it, and gets the cause.
//
// An answer that is too long or too slow to keep is passed through too, if no other attempt runs,
// though one might have followed. If others run, it is given up for them, and if
// they then fail without an answer, the call ends with a [StatusError] among its errors:
// that is the only case in which a caller gets an error where http.Client alone would
// have had a response.
//
// A request that is sent once gets its answer untouched. All answers teach the limit by
// their status, whether they are returned or not.
//
// # Losers
//
// A loser over HTTP/1 may finish for as long as the hedge delay of its call was, 1 s at
// most and 100 ms if there was none, and up to 256 KiB of its body are read then, since
// cancelling it costs its connection. After that it is cancelled. Over HTTP/2 and above,
// where a stream ends alone, it is cancelled at once. The latest answer of the host tells
// which it is. The caller never waits for a loser; it keeps its permit until its work has
// ended.
//
// # Where answers begin
//
// The hedge delay runs until the headers of the response are there. A server that sends
// them at once, and then thinks, is never hedged so: DelayFrom(FirstByte) waits for the
// body to begin.
//
// # Streams of HTTP/2
//
// An HTTP/2 server says how many requests one connection may carry at once, which is a
// limit below this one that nobody sees. When it is reached, net/http opens another
// connection, or waits if http.HTTP2Config.StrictMaxConcurrentRequests is set. Then a
// hedge waits for the attempt that it is to overtake, the wait is learnt as the host's
// latency, and with more requests at once than streams net/http may stand still for good
// (golang/go#70809). So with strict limits keep Max of the algorithm at the number of
// streams or below. In any case a hedge on the connection of the first attempt shares
// what befalls that connection; PickTarget sends it elsewhere.
//
// # What an attempt gets
//
// Each attempt gets a deep copy of the request and its own body, and with
// DeadlineFraction an earlier deadline. Request.Host is
// kept when PickTarget sends an attempt elsewhere. The hooks of a httptrace.ClientTrace
// see the first attempt only: they were written for one request, and two at once
// would run them at the same time. They may be called after RoundTrip has
// returned, as net/http allows itself too. So an error of Got1xxResponse ends the first
// attempt alone, and another one may follow that asks nobody. The response refers to the caller's request,
// or to a copy that the base has made and changed, as it does without a Transport.
//
// # Servers
//
// A [Handler] limits how many requests another http.Handler serves at once, by a limit
// that follows what the server itself can do:
//
//	handler, err := httpmw.NewHandler(mux)
//	…
//	server := &http.Server{Handler: handler}
//
// A permit is held until the handler has returned or panicked, and so for as long as it
// writes its answer; its latency is the time from the permit until then. A request that
// finds no permit waits for one, as far as the limiter allows, or is refused: 503 with
// Retry-After and a short constant body, its own body unread. Hedges and retries that say
// so by [AttemptHeader] are refused first: while half of the permits are in use they are a
// share of all requests at most ([MaxExtra]), and a hedge, which [KindHeader] does not call
// a retry, never waits and leaves the limiter's reserve to others.
//
// By what a handler does the limit learns as follows; [Report] overrides it.
//
//	it returns                                      Success
//	the deadline of the request's context passes    Expired
//	the client leaves, or its own deadline passes   Canceled
//	a panic, runtime.Goexit                         Ignored
//	CONNECT, the handshake of a WebSocket           Ignored
//
// Put the Handler where all that costs goes through it, and nothing else: inside of what
// logs and counts, so that refusals are seen, and outside of authentication only if that
// is work too. A tunnel that its handler serves itself, as most do, holds a permit until
// it is closed; a connection that was hijacked and whose handler has returned is not
// counted any more. The handler of a tunnel by another protocol than WebSocket should say
// Ignored by Report. An http.TimeoutHandler goes outside: inside, it would answer and
// return while the work goes on, without a permit.
//
// The permit covers the reading of the request's body as well, since the handler does it: a
// client that sends a byte a minute holds one as long as the server lets it, and a few of
// them hold all. So set the ReadTimeout of the http.Server, or an own deadline by
// http.ResponseController where uploads may take long, and its WriteTimeout for those who
// read as slowly.
//
// A client that leaves while its request waits gives up its place at once. Over HTTP/1
// net/http notices that only once the request's body has been read to its end, so a POST
// that waits may go on waiting for nobody, as long as the limiter lets it.
package httpmw
