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
// Each attempt gets a deep copy of the request and its own body. Request.Host is
// kept when PickTarget sends an attempt elsewhere. The hooks of a httptrace.ClientTrace
// see the first attempt only: they were written for one request, and two at once
// would run them at the same time. They may be called after RoundTrip has
// returned, as net/http allows itself too.
package httpmw
