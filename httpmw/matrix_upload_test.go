package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// stuck is a request body that gives a part of itself and then waits, in Read and in
// Close, until it is let go.
type stuck struct {
	part        io.Reader
	read, close chan struct{} // closed to let go
	closing     atomic.Int32  // calls of Close
}

func newStuck() *stuck {
	return &stuck{part: strings.NewReader(strings.Repeat("x", 64<<10)), read: make(chan struct{}), close: make(chan struct{})}
}

func (b *stuck) Read(p []byte) (int, error) {
	if n, err := b.part.Read(p); err == nil {
		return n, nil
	}
	<-b.read
	return 0, io.EOF
}

func (b *stuck) Close() error {
	b.closing.Add(1)
	<-b.close
	return nil
}

// Field case B41: a server that answers before it has the whole body ends neither the
// reading of it nor the permit: Close of the body does, when it has returned.
func TestEarlyAnswerLeavesThePermitToTheRequestBody(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 100))
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "early")
	})
	for _, status := range []int{http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
				l := fixed(t, 2, 0)
				tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				b := newStuck()
				r := request(t, http.MethodPost, fmt.Sprint(server.URL, "/", status), nil)
				// More than net/http's server reads of its own accord before it answers.
				r.Body, r.ContentLength = b, 1<<20
				answer, err := tr.RoundTrip(r)
				if err != nil || answer.StatusCode != status {
					t.Fatalf("response %v, error %v", answer, err)
				}
				if got, err := io.ReadAll(answer.Body); string(got) != "early" || err != nil {
					t.Errorf("the answer: %q, %v", got, err)
				}
				held := func(where string) {
					t.Helper()
					if n := l.InFlight(); n != 1 {
						t.Errorf("%d in flight while the body waits in %s, want 1", n, where)
					}
				}
				held("Read")
				close(b.read)
				eventually(t, "the body is closed", func() bool { return b.closing.Load() > 0 })
				held("Close")
				close(b.close)
				_ = answer.Body.Close() // over HTTP/2 it waits for Close of the other body
				settle(t, l)
				if n := b.closing.Load(); n != 1 {
					t.Errorf("the body was closed %d times", n)
				}
			})
		})
	}
}

// Field case B41: a GetBody that works once and then fails costs the attempt that it was
// asked for, and not the call.
func TestGetBodyThatFailsLaterEndsNoCall(t *testing.T) {
	inBubbles(t, func(t *testing.T, n *network) {
		var arrived atomic.Int32
		url := n.start(func(w http.ResponseWriter, r *http.Request) {
			got, _ := io.ReadAll(r.Body)
			arrived.Add(1)
			_ = pause(r.Context(), 100*ms, false)
			_, _ = w.Write(got)
		})
		l := fixed(t, 3, 0)
		h, err := hedgedlimit.New(hedgedlimit.Config{
			Gates: hedgedlimit.NoGates, Limiter: l, MaxAttempts: 3, Delay: hedgedlimit.Fixed(10 * ms), Budget: hedgedlimit.Unlimited,
		})
		if err != nil {
			t.Fatal(err)
		}
		bodies := &readers{content: []byte("content")}
		asked := 0
		r := request(t, http.MethodPut, url, nil)
		r.Header.Set("Idempotency-Key", "1")
		r.ContentLength = int64(len(bodies.content))
		r.Body, _ = bodies.open()
		r.GetBody = func() (io.ReadCloser, error) {
			if asked++; asked > 1 {
				return nil, errRefused
			}
			return bodies.open()
		}
		start := time.Now()
		answer, err := transport(t, n.base, httpmw.WithHedger(h)).RoundTrip(r)
		if err != nil || time.Since(start) != 100*ms {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if got := read(t, answer); got != "content" {
			t.Errorf("body %q", got)
		}
		synctest.Wait()
		if asked != 2 || arrived.Load() != 2 {
			t.Errorf("GetBody was called %d times and %d attempts arrived, want 2 and 2", asked, arrived.Load())
		}
		bodies.check(t, 2)
		probe(t, l)
	})
}

// Expect: 100-continue works as without us: the body is read when the server asks for
// it, and not at all if it does not; and it is sent once, though a hedge was due.
func TestExpectContinue(t *testing.T) {
	for name, row := range map[string]struct {
		asks   time.Duration // when the server does
		status int
		body   string
		reads  bool
	}{
		"asked for": {time.Second, 200, "content", true},
		"refused":   {0, 417, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, n *network) {
				n.base.ExpectContinueTimeout = time.Hour
				var arrived atomic.Int32
				url := n.start(func(w http.ResponseWriter, r *http.Request) {
					arrived.Add(1)
					if row.status != 200 {
						w.WriteHeader(row.status)
						return
					}
					_ = pause(r.Context(), row.asks, false)
					_, _ = io.Copy(w, r.Body)
				})
				l := fixed(t, 2, 0)
				tr := transport(t, n.base, httpmw.WithHedger(hedged(t, l, 10*ms, hedgedlimit.Cancel())),
					httpmw.Hedgeable(func(*http.Request) bool { return true }))
				start := time.Now()
				var read time.Duration // when the first byte was
				bodies := &readers{content: []byte("content")}
				inner, _ := bodies.open()
				r := request(t, http.MethodPut, url, nil)
				r.Header.Set("Expect", "100-continue")
				r.ContentLength, r.GetBody = int64(len(bodies.content)), bodies.open
				r.Body = &observed{inner, func() {
					if read == 0 {
						read = time.Since(start)
					}
				}}
				answer, err := tr.RoundTrip(r)
				if err != nil || answer.StatusCode != row.status || time.Since(start) != row.asks {
					t.Fatalf("response %v, error %v, after %v", answer, err, time.Since(start))
				}
				got, err := io.ReadAll(answer.Body)
				if string(got) != row.body || err != nil {
					t.Errorf("body %q, error %v, want %q", got, err, row.body)
				}
				_ = answer.Body.Close()
				synctest.Wait()
				if read != row.asks || arrived.Load() != 1 {
					t.Errorf("the body was read from %v on by %d handlers, want %v and 1", read, arrived.Load(), row.asks)
				}
				bodies.check(t, 1)
				probe(t, l)
			})
		})
	}
}

// observed is a body that tells when it is read.
type observed struct {
	io.ReadCloser
	onRead func()
}

func (b *observed) Read(p []byte) (int, error) { b.onRead(); return b.ReadCloser.Read(p) }
