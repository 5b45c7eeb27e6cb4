package httpmw_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// A behaviour is something that an http.Client does over an http.Transport. It is run
// over the transport alone, through a Transport of ours that never hedges since its
// delay is an hour, and through one that hedges at once whatever can be repeated; and
// what was noted down must be the same.
type behaviour struct {
	name string

	// only is the protocol of a behaviour that the other one does not have, and why says
	// what it lacks.
	only, why string

	// failing says that the answer is a failure or the error one of the transport, after
	// which a request that can be repeated is sent once more by design. What the caller
	// sees must be the same nevertheless; how many requests and connections that took is
	// not compared, and of what the server saw only what is distinct.
	failing bool

	run func(s *scene)
}

const (
	http1 = "HTTP/1.1"
	http2 = "HTTP/2"
)

func behaviours() []behaviour {
	return slices.Concat(answerRows, codingRows, bodyRows, uploadRows, expectRows, redirectRows, clientRows,
		cancelRows, errorRows, tlsRows, connectionRows, proxyRows, upgradeRows, reverseRows, baseRows)
}

// way is how a scene sends its requests.
type way string

const (
	bare  way = "bare"
	quiet way = "wrapped, no hedge fires"
	early way = "wrapped, hedges fire at once"
)

func TestClientBehavesAsWithTheTransportAlone(t *testing.T) {
	var hedges, played atomic.Uint64
	t.Run("rows", func(t *testing.T) {
		for _, b := range behaviours() {
			for _, protocol := range []string{http1, http2} {
				if b.only != "" && b.only != protocol {
					continue
				}
				t.Run(b.name+" over "+protocol, func(t *testing.T) {
					t.Parallel()
					played.Add(1)
					want := play(t, b, protocol, bare, &hedges)
					for _, w := range []way{quiet, early} {
						got := play(t, b, protocol, w, &hedges)
						got.compare(t, want, b.failing || w == early)
					}
				})
			}
		}
	})
	if n := hedges.Load(); n < played.Load()/2 {
		t.Errorf("%d hedges were sent by %d rows together; the early way is to hedge nearly every request", n, played.Load())
	}
}

func TestTableOfBehavioursIsLong(t *testing.T) {
	names := make(map[string]bool)
	for _, b := range behaviours() {
		if names[b.name] {
			t.Errorf("two rows are named %q", b.name)
		}
		names[b.name] = true
		if (b.only == "") != (b.why == "") {
			t.Errorf("%s: a row on one protocol has a reason, and no other one: %q, %q", b.name, b.only, b.why)
		}
	}
	if len(names) < 60 {
		t.Errorf("%d behaviours, want 60 at least", len(names))
	}
}

// scene is one run of a behaviour in one way.
type scene struct {
	*testing.T
	h2  bool
	way way

	// base is the transport that rows may set up before the first request.
	base *http.Transport

	// wordless leaves the words of errors out of the notes, and uncounted the number of
	// connections, where they differ from run to run without us.
	wordless, uncounted bool

	wrapped     []*httpmw.Transport
	servers     []*httptest.Server
	connections atomic.Int32 // that the servers have accepted
	open        atomic.Int32 // those of them that are not closed or hijacked
	left        chan struct{}

	mu sync.Mutex
	// Guarded by mu.

	names []string // address, name, …: what stands for the addresses in the notes
	notes []string // what the caller saw, compared in every way
	once  []string // what depends on how often a request was sent
	seen  []string // whole requests that the servers saw
	cut   []string // requests whose body broke off: of the losers too, if there are any
}

// play runs a behaviour in one way, and returns when nothing of it runs any more.
func play(t *testing.T, b behaviour, protocol string, w way, hedges *atomic.Uint64) *scene {
	t.Helper()
	s := &scene{T: t, h2: protocol == http2, way: w, left: make(chan struct{})}
	s.base = &http.Transport{ForceAttemptHTTP2: s.h2, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	leave := sync.OnceFunc(func() { close(s.left) })
	defer s.end(hedges)
	defer leave()
	b.run(s)
	return s
}

// end checks that every permit comes back, and waits for the handlers.
func (s *scene) end(hedges *atomic.Uint64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, tr := range s.wrapped {
		for _, h := range tr.Stats().Hosts {
			hedges.Add(h.Hedging.Hedged)
		}
		if err := tr.Close(ctx); err != nil {
			s.Errorf("%s: a permit did not come back: %v", s.way, err)
		}
	}
	s.base.CloseIdleConnections()
	for _, server := range s.servers {
		server.Close()
	}
	if !s.uncounted {
		s.single("connections %d", s.connections.Load())
	}
}

// compare reports every note that differs. Without several, also what depends on how
// often a request was sent.
func (s *scene) compare(t *testing.T, want *scene, several bool) {
	t.Helper()
	// Over HTTP/2 the handler of a request that was cancelled may begin when all else has
	// ended: Close of a server does not wait for it.
	s.mu.Lock()
	defer s.mu.Unlock()
	want.mu.Lock()
	defer want.mu.Unlock()
	s.same(t, "the caller", s.notes, want.notes)
	if several {
		s.same(t, "the server", distinct(s.seen), distinct(want.seen))
		return
	}
	s.same(t, "the server", s.seen, want.seen)
	s.same(t, "the server (bodies that broke off)", s.cut, want.cut)
	s.same(t, "who counts", s.once, want.once)
}

func (s *scene) same(t *testing.T, who string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("%s: %s saw\n  %s\nbare:\n  %s", s.way, who, g, w)
		}
	}
}

// distinct leaves out what has come before: the copies of a request are equal.
func distinct(list []string) []string {
	var d []string
	for _, x := range list {
		if !slices.Contains(d, x) {
			d = append(d, x)
		}
	}
	return d
}

// note writes down what the caller sees.
func (s *scene) note(format string, args ...any) { s.write(&s.notes, format, args) }

// hand lets a handler go on that waits for next. One that has gone already shows among the
// notes, instead of holding up all the rows.
func (s *scene) hand(next chan<- struct{}) {
	select {
	case next <- struct{}{}:
	case <-time.After(10 * time.Second):
		s.note("the handler has gone")
	}
}

// single writes down what is the same only if each request is sent as often as by the
// transport alone.
func (s *scene) single(format string, args ...any) { s.write(&s.once, format, args) }

func (s *scene) write(to *[]string, format string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	text = strings.NewReplacer(s.names...).Replace(text)
	text = loopback.ReplaceAllString(text, "client:0")
	*to = append(*to, stream.ReplaceAllString(text, "stream"))
}

// loopback matches the addresses that are left when those of the servers have names.
var loopback = regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):\d+`)

// stream matches the number of a stream of HTTP/2: each attempt has its own.
var stream = regexp.MustCompile(`stream ID \d+`)

// address gives an address that differs from run to run a name for the notes.
func (s *scene) address(a, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, a, name)
}

// client is one over the base, the way of the scene.
func (s *scene) client() *http.Client {
	s.Helper()
	return &http.Client{Transport: s.wrap(s.base)}
}

// wrap is the only difference between the ways.
func (s *scene) wrap(base http.RoundTripper) http.RoundTripper {
	s.Helper()
	delay, losers := time.Hour, hedgedlimit.Drain(100*ms)
	if s.way == early {
		delay, losers = 0, hedgedlimit.Cancel()
	}
	config := httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Limiter = fixed(s.T, 64, limiter.Unbounded)
		c.Delay, c.Losers = hedgedlimit.Fixed(delay), losers
		c.Gates, c.Budget = hedgedlimit.NoGates, hedgedlimit.Unlimited
		return nil
	})
	opts := []httpmw.Option{config}
	switch s.way {
	case bare:
		return base
	case early:
		opts = append(opts, httpmw.Hedgeable(func(*http.Request) bool { return true }))
	}
	tr := transport(s, base, opts...)
	s.wrapped = append(s.wrapped, tr)
	return tr
}

// serve starts a server of the scene's protocol, which is plain over HTTP/1.1, and
// makes the base trust it.
func (s *scene) serve(h http.HandlerFunc, set ...func(*httptest.Server)) *httptest.Server {
	s.Helper()
	return s.start(h, s.h2, set)
}

// serveTLS starts a server that speaks TLS over either protocol.
func (s *scene) serveTLS(h http.HandlerFunc, set ...func(*httptest.Server)) *httptest.Server {
	s.Helper()
	return s.start(h, true, set)
}

func (s *scene) start(h http.Handler, secure bool, set []func(*httptest.Server)) *httptest.Server {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.connections.Add(1)
			s.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.open.Add(-1)
		}
	}
	server.EnableHTTP2 = s.h2
	for _, f := range set {
		f(server)
	}
	if secure {
		server.StartTLS()
		s.base.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	} else {
		server.Start()
	}
	s.servers = append(s.servers, server)
	s.address(server.Listener.Addr().String(), fmt.Sprintf("server%d", len(s.servers)))
	return server
}

// speak starts a server that answers each connection by itself, over plain TCP. It
// returns its address. The connection is closed when answer returns.
func (s *scene) speak(answer func(net.Conn)) string {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.address(l.Addr().String(), "speaker")
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			all.Go(func() {
				defer conn.Close()
				answer(conn)
			})
		}
	})
	s.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// hold blocks a handler until its request is over or the row has returned.
func (s *scene) hold(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.left:
	}
}
