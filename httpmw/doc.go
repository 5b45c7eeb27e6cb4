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
// # Close every response body
//
// A permit is held until the response body is at its end, has failed, or has been
// closed; not just until the headers are there. Streaming a response is work of
// the host, and a limit that left it out would not hold. So a caller that neither
// reads a body to its end nor closes it keeps a permit, and when all are kept, no
// request is let through. Close is mandatory, as it is with http.Client alone.
// Stats shows the permits in flight. A response that was dropped unclosed is
// counted as lost when the garbage collector has found it, and closed by the next
// use of the Transport after that; requests that wait already do not help.
//
// The latency that the limit and the hedge delay learn from ends at the headers:
// how fast a caller reads says nothing about the host.
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
//     discard if it lost, keep if its status is a failure. Whoever owns it closes
//     its body exactly once, or hands it on.
//   - The body of the caller's request is closed exactly once: by the base if the
//     first attempt got as far as sending it, by RoundTrip otherwise.
//   - The caller's request is not read after RoundTrip has returned, and never
//     written to.
//
// # Answers
//
// An answer with status 408, 425, 429 or 5xx, and a transport error, is a failure
// that the next attempt may mend; every other answer wins. If all attempts fail,
// the answer of the last one that had one is returned, like any other response.
// To that end a failed answer is read into memory, up to 64 KiB, and its permit
// released before the next attempt. A longer one is not kept: if nothing better
// follows, the call ends with a [StatusError]. A request that is not hedged is
// not retried either, and its answer is passed through untouched.
//
// # Losers
//
// By default a loser may finish for 100 ms, and up to 256 KiB of its body are
// read then, since cancelling an HTTP/1 request costs its connection. After that
// it is cancelled. The caller never waits for it; it keeps its permit until its
// work has ended.
//
// # What an attempt gets
//
// Each attempt gets a deep copy of the request and its own body. Request.Host is
// kept when PickTarget sends an attempt elsewhere. The hooks of a httptrace.ClientTrace
// see the first attempt only: they were written for one request, and two at once
// would run them at the same time. They may be called after RoundTrip has
// returned, as net/http allows itself too.
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
// so by [AttemptHeader] are refused first: they never wait, leave the limiter's reserve
// to others, and are a share of all requests at most ([MaxExtra]).
//
// By what a handler does the limit learns as follows; [Report] overrides it.
//
//	it returns                                      Success
//	the deadline of the request's context passes    Expired
//	the client leaves, or its own deadline passes   Canceled
//	a panic, runtime.Goexit                         Ignored
//	CONNECT, Upgrade (but for h2c)                  Ignored
//
// Put the Handler where all that costs goes through it, and nothing else: inside of what
// logs and counts, so that refusals are seen, and outside of authentication only if that
// is work too. A tunnel that its handler serves itself, as most do, holds a permit until
// it is closed; a connection that was hijacked and whose handler has returned is not
// counted any more. An http.TimeoutHandler goes outside: inside, it would answer and
// return while the work goes on, without a permit.
//
// A client that leaves while its request waits gives up its place at once. Over HTTP/1
// net/http notices that only once the request's body has been read to its end, so a POST
// that waits may go on waiting for nobody, as long as the limiter lets it.
package httpmw
