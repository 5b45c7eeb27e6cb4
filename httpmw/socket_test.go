package httpmw_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// protocols runs a test over HTTP/1.1 and HTTP/2 on real sockets. The base that
// it is given is that of the server's own client.
func protocols(t *testing.T, handler http.Handler, test func(t *testing.T, server *httptest.Server, base *http.Transport)) {
	t.Helper()
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2 ", h2), func(t *testing.T) {
			server := httptest.NewUnstartedServer(handler)
			server.EnableHTTP2 = h2
			server.StartTLS()
			defer server.Close()
			base := server.Client().Transport.(*http.Transport)
			defer base.CloseIdleConnections()
			test(t, server, base)
		})
	}
}

func request(t tb, method, target string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Field case B37: a body longer than any buffer below arrives whole, whoever won
// and however late the caller reads; then, and not before, the context ends.
func TestWholeBody(t *testing.T) {
	const chunk, chunks = 32 << 10, 16
	content := bytes.Repeat([]byte("0123456789abcdef"), chunk/16)
	for _, winner := range []string{"1", "2"} {
		lost := make(chan struct{}, 1)  // the loser's handler has seen its end
		other := make(chan struct{}, 1) // the loser has arrived
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(httpmw.AttemptHeader) != winner {
				other <- struct{}{}
				<-r.Context().Done()
				lost <- struct{}{}
				return
			}
			<-other
			for range chunks {
				_, _ = w.Write(content)
				_ = http.NewResponseController(w).Flush()
			}
		})
		t.Run("attempt "+winner+" wins", func(t *testing.T) {
			protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
				l := fixed(t, 2, 0)
				f := &recorder{base: base}
				tr := transport(t, f, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, ms, hedgedlimit.Cancel())))
				for range 100 {
					f.reset()
					r, err := tr.RoundTrip(request(t, http.MethodGet, server.URL, nil))
					if err != nil {
						t.Fatal(err)
					}
					<-lost // cancelled promptly, long before the body is read
					ctx := f.context(winner)
					if ctx.Err() != nil {
						t.Fatal("the winner's context has ended before its body")
					}
					if n, err := io.Copy(io.Discard, r.Body); n != chunk*chunks || err != nil {
						t.Fatalf("read %d of %d bytes, error %v", n, chunk*chunks, err)
					}
					if err := r.Body.Close(); err != nil {
						t.Fatal(err)
					}
					eventually(t, "the winner's context ends", func() bool { return ctx.Err() != nil })
					eventually(t, "all permits are back", func() bool { return l.InFlight() == 0 })
				}
				settle(t, l)
			})
		})
	}
}

// recorder passes requests on, and remembers them by their attempt header.
type recorder struct {
	base     http.RoundTripper
	mu       sync.Mutex
	requests map[string]*http.Request
}

func (f *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.requests[r.Header.Get(httpmw.AttemptHeader)] = r
	f.mu.Unlock()
	return f.base.RoundTrip(r)
}

func (f *recorder) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = make(map[string]*http.Request)
}

func (f *recorder) context(attempt string) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[attempt].Context()
}

// Field case B02, on sockets: as many responses stream at once as the limit says.
func TestPermitCoversBodyOnSockets(t *testing.T) {
	step := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "head")
		_ = http.NewResponseController(w).Flush()
		<-step
		_, _ = io.WriteString(w, "tail")
	})
	protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		l := fixed(t, 1, 0)
		tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
		first, err := tr.RoundTrip(request(t, http.MethodGet, server.URL, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.RoundTrip(request(t, http.MethodGet, server.URL, nil)); err != limiter.ErrLimitExceeded { //nolint:errorlint // bare is what is asked
			t.Errorf("while a body streams: %v", err)
		}
		step <- struct{}{}
		if got := read(t, first); got != "headtail" {
			t.Errorf("body %q", got)
		}
		settle(t, l)
	})
}

// Field case B40: a protocol switch gets a body that can be written to, is not
// hedged, and holds its permit until the tunnel is closed.
func TestTunnel(t *testing.T) {
	var arrived atomic.Int32
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	}))
	defer backend.Close()
	l := fixed(t, 2, 0)
	tr := transport(t, http.DefaultTransport, httpmw.WithHedger(hedged(t, l, 0, hedgedlimit.Cancel())),
		httpmw.Hedgeable(func(*http.Request) bool { return true }))
	echo := func(t *testing.T, rw io.ReadWriter) {
		t.Helper()
		lines := bufio.NewReader(rw)
		for _, message := range []string{"one\n", "two\n", "three\n"} {
			if _, err := io.WriteString(rw, message); err != nil {
				t.Fatal(err)
			}
			if got, err := lines.ReadString('\n'); got != message || err != nil {
				t.Fatalf("echo %q, error %v, want %q", got, err, message)
			}
		}
	}

	req := request(t, http.MethodGet, backend.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	r, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, ok := r.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("the body of a 101 is a %T, without Write", r.Body)
	}
	echo(t, body)
	if l.InFlight() != 1 || arrived.Load() != 1 {
		t.Errorf("%d in flight, %d arrived, want 1 and 1", l.InFlight(), arrived.Load())
	}
	_ = body.Close()
	settle(t, l)

	// The reverse proxy refuses a body without Write.
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = tr
	front := httptest.NewServer(proxy)
	defer front.Close()
	conn, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 1), req)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("through the proxy: %v, error %v", answer, err)
	}
	echo(t, conn)
	_ = conn.Close()
	settle(t, l)
}

// oneByte keeps a buffered reader from taking more than it needs.
type oneByte struct{ net.Conn }

func (c oneByte) Read(p []byte) (int, error) { return c.Conn.Read(p[:1]) }

// Only the body of a 101 shows Write.
func TestOnlyTunnelsWrite(t *testing.T) {
	l := fixed(t, 1, 0)
	tr := transport(t, &fake{scripts: []script{{body: "body", writable: true}}}, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
	r, err := tr.RoundTrip(get(t.Context(), t))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Body.(io.Writer); ok {
		t.Errorf("the body of a 200 can be written to")
	}
	read(t, r)
	settle(t, l)
}

// Field case B44: the caller's request is the same after a thousand hedged calls
// through a base that writes to what it gets, and attempts share nothing.
func TestRequestUntouched(t *testing.T) {
	l := fixed(t, 10, 0)
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Add("X-Inner", "1")
		r.URL.Path += "/inner"
		r.URL.Host = "elsewhere.test"
		if r.Trailer != nil {
			r.Trailer.Add("X-Trailer", "1")
		}
		if n := len(r.Header["X-Inner"]); n != 1 {
			t.Errorf("%d inner headers, want 1", n)
		}
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil // so that there is another
	})
	tr := transport(t, base, httpmw.WithHedger(hedged(t, l, 0, hedgedlimit.Cancel())), httpmw.WithAttemptHeader())
	for _, header := range []http.Header{nil, {"X-Own": {"1"}}} {
		r := get(t.Context(), t)
		r.Header = header
		r.Trailer = http.Header{"X-Trailer": nil}
		before := r.Clone(r.Context())
		for range 1000 {
			answer, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			read(t, answer)
			// The request is ours again, though losers may still run.
			r.Header, r.URL.Path = header.Clone(), "/path"
		}
		if !reflect.DeepEqual(r, before) {
			t.Errorf("the request was %+v, and is %+v", before, r)
		}
	}
	settle(t, l)
}

// Field case B44, second half: hooks of a client trace run for the first attempt
// only, so two attempts never run one at the same time. ConnectStart is called by
// package net, which has it from elsewhere in the context.
func TestClientTrace(t *testing.T) {
	hinted := make(chan struct{}, 1) // the hook of the first attempt has run
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		if r.Header.Get(httpmw.AttemptHeader) == "1" {
			<-r.Context().Done() // the hedge wins
			return
		}
		<-hinted
	})
	protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		l := fixed(t, 2, 0)
		tr := transport(t, base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 20*ms, hedgedlimit.Cancel())))
		var mu sync.Mutex // net/http calls hooks of one request from several goroutines
		calls := make(map[string]int)
		count := func(hook string) {
			mu.Lock()
			defer mu.Unlock()
			calls[hook]++
		}
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			ConnectStart: func(string, string) { count("ConnectStart") },
			WroteHeaders: func() { count("WroteHeaders") },
			Got1xxResponse: func(int, textproto.MIMEHeader) error {
				count("Got1xxResponse")
				select {
				case hinted <- struct{}{}:
				default: // counted, and complained of
				}
				return nil
			},
			GotConn:           func(httptrace.GotConnInfo) { count("GotConn") },
			TLSHandshakeStart: func() { count("TLSHandshakeStart") },
		})
		answer, err := tr.RoundTrip(request(t, http.MethodGet, server.URL, nil).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		read(t, answer)
		settle(t, l)
		server.Close() // no hook runs any more
		mu.Lock()
		defer mu.Unlock()
		// GetConn is not among them: over HTTP/2 net/http asks again, for the same
		// attempt, if the connection that it was given has no room any more.
		for _, hook := range []string{"ConnectStart", "TLSHandshakeStart", "GotConn", "WroteHeaders", "Got1xxResponse"} {
			if n := calls[hook]; n != 1 {
				t.Errorf("%s ran %d times, want once", hook, n)
			}
		}
	})
}

// Trailers come into the response that the caller has, announced or not.
func TestTrailers(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		announced := r.URL.Path == "/announced"
		if announced {
			w.Header().Set("Trailer", "X-Announced")
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		if announced {
			w.Header().Set("X-Announced", "1")
		}
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "2")
	})
	protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		l := fixed(t, 1, 0)
		tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
		for path, want := range map[string]string{"/announced": "1", "/": ""} {
			answer, err := tr.RoundTrip(request(t, http.MethodGet, server.URL+path, nil))
			if err != nil {
				t.Fatal(err)
			}
			read(t, answer)
			if got := answer.Trailer; got.Get("X-Announced") != want || got.Get("X-Sudden") != "2" {
				t.Errorf("trailers of %s: %v", path, got)
			}
			eventually(t, "the permit is back", func() bool { return l.InFlight() == 0 })
		}
		settle(t, l)
	})
}
