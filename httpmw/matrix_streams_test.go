//go:build go1.26

package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// strictness is what may be done to the configuration of an HTTP/2 client: nothing, or
// to let it wait for a stream rather than dial.
var strictness = []func(*http.HTTP2Config){
	nil,
	func(c *http.HTTP2Config) { c.StrictMaxConcurrentRequests = true },
}

// Field case B67: HTTP/2 has a limit of streams below ours. Whether the base waits for
// a stream or opens another connection, nothing stands still, no caller is told of a
// connection, and the permit of a hedge that waits for its stream comes back with the
// call, at once. The seconds that all take are virtual.
//
// A base that waits for streams and has more requests at once than the server allows
// stands still by itself (golang/go#70809: each request that queues counts as a stream).
// There our limit is the server's, as the package comment advises, until the calls come
// one by one.
func TestStreamLimitBelowTheLimiter(t *testing.T) {
	for _, streams := range []int{1, 10} {
		for _, strict := range strictness {
			t.Run(fmt.Sprintf("%d streams, strict %v", streams, strict != nil), func(t *testing.T) {
				inBubble(t, "HTTP/2.0", func(t *testing.T, n *network) {
					n.server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
					n.base.HTTP2 = &http.HTTP2Config{}
					if strict != nil {
						strict(n.base.HTTP2)
					}
					url := n.start(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/quick" && r.Header.Get(httpmw.AttemptHeader) == "2" {
							_, _ = io.WriteString(w, "hedge")
							return
						}
						if pause(r.Context(), 300*ms, false) == nil {
							_, _ = io.WriteString(w, "after 300 ms")
						}
					})
					limit := 20
					if strict != nil {
						limit = streams
					}
					l := fixed(t, limit, limiter.Unbounded)
					tr := transport(t, n.base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 20*ms, hedgedlimit.Cancel())))
					send := func(path string) {
						answer, err := tr.RoundTrip(request(t, http.MethodGet, url+path, nil))
						if err != nil {
							t.Error(err)
							return
						}
						read(t, answer)
					}
					// The first one finds out what the server's limit is.
					send("")
					var callers sync.WaitGroup
					for range 50 {
						callers.Go(func() { send("") })
					}
					callers.Wait()
					synctest.Wait()
					probe(t, l)

					l = fixed(t, 20, 0)
					tr = transport(t, n.base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 20*ms, hedgedlimit.Cancel())))
					start := time.Now()
					for range streamCalls {
						send("quick")
						synctest.Wait()
						if n := l.InFlight(); n != 0 {
							t.Fatalf("%d in flight when the call has returned", n)
						}
					}
					// Where the hedge gets no stream while the first attempt has it, it
					// cannot win; everywhere else it must.
					each := 20 * ms
					if strict != nil && streams == 1 {
						each = 300 * ms
					}
					if n := tr.Stats().Hosts[0].Hedging.Hedged; n != streamCalls || time.Since(start) != streamCalls*each {
						t.Errorf("%d hedges in %v, want one for each of %d calls of %v", n, time.Since(start), streamCalls, each)
					}
					probe(t, l)
				})
			})
		}
	}
}

// streamCalls is how many calls in a row are hedged: 2,000 in all four rows.
const streamCalls = 500
