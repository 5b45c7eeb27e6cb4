package httpmw_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// counted is a base that counts the response bodies that are open.
type counted struct {
	base http.RoundTripper
	open atomic.Int32
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.base.RoundTrip(r)
	if err == nil {
		c.open.Add(1)
		answer.Body = &openBody{ReadCloser: answer.Body, open: &c.open}
	}
	return answer, err
}

type openBody struct {
	io.ReadCloser
	open   *atomic.Int32
	closed atomic.Bool
}

func (b *openBody) Close() error {
	if !b.closed.Swap(true) {
		b.open.Add(-1)
	}
	return b.ReadCloser.Close()
}

// Field cases B03 and B10, over net/http: in whatever state an attempt is when it has
// lost, its body is closed, its permit comes back when the policy says, and neither a
// goroutine nor a connection under way is left; the bubble could not be left otherwise.
// The caller waits for none of it.
func TestLoserEndsInEveryState(t *testing.T) {
	const bound = 80 * ms // it ends before the time in which a failed answer is read
	// The loser's handler, its base if it is not like the winner's, and whether it has
	// a result in the end, which is the end of a linger too.
	type state struct {
		handler http.HandlerFunc
		change  func(base *http.Transport)
		wrap    func(base http.RoundTripper) http.RoundTripper
		result  bool
	}
	wait := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	stall := func(status int, after time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_ = pause(r.Context(), after, false)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "half of it")
			_ = http.NewResponseController(w).Flush()
			wait(w, r)
		}
	}
	states := map[string]state{
		"dialling": {change: func(base *http.Transport) {
			base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}},
		"in the TLS handshake": {change: func(base *http.Transport) {
			base.DialContext = func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, server) }() // until it is closed
				return client, nil
			}
		}},
		"before its headers": {handler: wait},
		"with its headers": {handler: stall(200, 0), result: true, wrap: func(base http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				answer, err := base.RoundTrip(r)
				<-r.Context().Done() // has them, and comes too late with them
				return answer, err
			})
		}},
		"in the body of a failure": {handler: stall(503, 0)},
		"in a body that came late": {handler: stall(200, 20*ms)},
	}
	for name, s := range states {
		for losers, held := range map[hedgedlimit.LoserPolicy]time.Duration{
			hedgedlimit.Cancel(): 0, hedgedlimit.Drain(bound): bound, hedgedlimit.Linger(bound): bound,
		} {
			if s.result && losers == hedgedlimit.Linger(bound) {
				held = 0
			}
			t.Run(name+", "+losers.String(), func(t *testing.T) {
				inBubbles(t, func(t *testing.T, n *network) {
					url := n.start(func(w http.ResponseWriter, r *http.Request) {
						if r.Header.Get(httpmw.AttemptHeader) == "1" {
							s.handler(w, r)
							return
						}
						_, _ = io.WriteString(w, "hedge")
					})
					// A base for each attempt: over HTTP/2 a first attempt that waits for
					// its connection would be given that of the second.
					first := n.base.Clone()
					if s.change != nil {
						s.change(first)
					}
					var lost http.RoundTripper = first
					if s.wrap != nil {
						lost = s.wrap(lost)
					}
					bodies := &counted{base: roundTripper(func(r *http.Request) (*http.Response, error) {
						if r.Header.Get(httpmw.AttemptHeader) == "1" {
							return lost.RoundTrip(r)
						}
						return n.base.RoundTrip(r)
					})}
					l := fixed(t, 2, 0)
					tr := transport(t, bodies, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 10*ms, losers)))
					start := time.Now()
					r, err := tr.RoundTrip(request(t, http.MethodGet, url, nil))
					if err != nil {
						t.Fatal(err)
					}
					if got := read(t, r); got != "hedge" || time.Since(start) != 10*ms {
						t.Errorf("body %q after %v, want that of the hedge after 10ms", got, time.Since(start))
					}
					if held > 0 {
						time.Sleep(held - time.Nanosecond)
						synctest.Wait()
						if n := l.InFlight(); n != 1 {
							t.Errorf("%d in flight before the bound of the policy, want 1", n)
						}
						time.Sleep(time.Nanosecond)
					}
					synctest.Wait()
					probe(t, l)
					if n := bodies.open.Load(); n != 0 {
						t.Errorf("%d bodies were not closed", n)
					}
					first.CloseIdleConnections()
				})
			})
		}
	}
}
