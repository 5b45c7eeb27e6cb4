package httpmw_test

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing/fstest"
	"time"
)

const whyUpgrade = "HTTP/2 has no upgrade"

// Upgrades of the protocol.
var upgradeRows = []behaviour{
	{name: "101 gives a connection in both directions", only: http1, why: whyUpgrade, run: func(s *scene) {
		server := s.serve(s.upgrade)
		a := s.head(s.client(), s.upgrading(server.URL))
		s.talk(a.Body.(io.ReadWriteCloser))
		s.note("%s", describe(a.Body.Close()))
		_, err := a.Body.Read(make([]byte, 1))
		s.note("%s", describe(err))
		_, err = a.Body.(io.Writer).Write([]byte("x"))
		s.note("%s", describe(err))
	}},
	{name: "an upgrade that is refused", only: http1, why: whyUpgrade, run: func(s *scene) {
		server := s.serve(s.echo)
		s.do(s.client(), s.upgrading(server.URL))
	}},
	{name: "an upgrade that fails", only: http1, why: whyUpgrade, run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			http.Error(w, "not now", http.StatusServiceUnavailable)
		})
		s.do(s.client(), s.upgrading(server.URL))
	}},
	{name: "Upgrade over HTTP/2 is refused", only: http2, why: "HTTP/1.1 allows it", run: func(s *scene) {
		server := s.serve(s.echo)
		s.do(s.client(), s.upgrading(server.URL))
	}},
	{name: "an upgrade through httputil.ReverseProxy", only: http1, why: whyUpgrade, run: func(s *scene) {
		front := s.reverse(s.serve(s.upgrade))
		conn, a := s.switched(front, "/chat")
		defer conn.Close()
		s.note("status %d, header %q", a.StatusCode, a.Header["Upgrade"])
		s.talk(conn)
	}},
	{name: "an upgrade whose client ends its half", only: http1, why: whyUpgrade, run: func(s *scene) {
		front := s.reverse(s.serve(s.upgrade))
		conn, a := s.switched(front, "/chat")
		defer conn.Close()
		s.note("status %d", a.StatusCode)
		_ = conn.(*net.TCPConn).CloseWrite()
		rest, err := io.ReadAll(conn)
		s.note("%q, %s", rest, describe(err))
	}},
	{name: "an upgrade that is answered when its client has ended its half", only: http1, why: whyUpgrade, run: func(s *scene) {
		front := s.reverse(s.serve(func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				s.Error(err)
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			all, err := io.ReadAll(rw)
			s.note("the server read %q, %s", all, describe(err))
			_, _ = io.WriteString(conn, "the answer")
		}))
		conn, a := s.switched(front, "/ask")
		defer conn.Close()
		s.note("status %d", a.StatusCode)
		_, _ = io.WriteString(conn, "the question")
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second)) // of one that hangs
		rest, err := io.ReadAll(conn)
		s.note("%q, %s", rest, describe(err))
	}},
	{name: "CONNECT", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.write(&s.seen, "%s %q", []any{r.Method, r.RequestURI})
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "no tunnels here")
		})
		r := s.request(http.MethodConnect, server.URL, nil)
		r.URL.Opaque = "target.test:443"
		s.do(s.client(), r)
	}},
}

// httputil.ReverseProxy with a transport of ours.
var reverseRows = []behaviour{
	{name: "ReverseProxy passes requests and answers on", run: func(s *scene) {
		backend := s.serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("X-Many", "1")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write(s.saw(r))
			w.Header().Set("X-Sum", "42")
		})
		front := s.reverse(backend)
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		s.get(c, front.URL+"/path?q")
		s.do(c, s.request(http.MethodPost, front.URL, strings.NewReader("content")))
	}},
	{name: "ReverseProxy flushes events as they come", run: func(s *scene) {
		next := make(chan struct{})
		backend := s.serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, event := range []string{"data: one\n\n", "data: two\n\n"} {
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
			}
		})
		front := s.reverse(backend)
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		// It is not hedged, so that each event is waited for by one handler.
		a := s.head(c, s.request(http.MethodPost, front.URL, strings.NewReader("subscribe")))
		for range 2 {
			event := make([]byte, len("data: one\n\n"))
			_, err := io.ReadFull(a.Body, event)
			s.note("%q, %s", event, describe(err))
			s.hand(next)
		}
		s.body(a)
	}},
	{name: "ReverseProxy aborts when its upstream does", run: func(s *scene) {
		backend := s.serve(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "the first part")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		front := s.reverse(backend)
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		s.get(c, front.URL)
	}},
	{name: "ReverseProxy tells its error handler", failing: true, run: func(s *scene) {
		backend := s.serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		front := s.reverse(backend)
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		s.get(c, front.URL)
	}},
	{name: "ReverseProxy cancels when its client has gone", run: func(s *scene) {
		gone := make(chan struct{}, 8)
		backend := s.serve(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "the first part")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			gone <- struct{}{}
		})
		front := s.reverse(backend)
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		a := s.head(c, s.request(http.MethodGet, front.URL, nil))
		first := make([]byte, 9)
		_, err := io.ReadFull(a.Body, first)
		s.note("%q, %s, %s", first, describe(err), describe(a.Body.Close()))
		<-gone
	}},
}

// Other things than a plain http.Transport below.
var baseRows = []behaviour{
	{name: "http.NewFileTransport as the base", run: func(s *scene) {
		files := fstest.MapFS{"a.txt": {Data: []byte("content of a")}, "large": {Data: large[:200_000]}}
		c := &http.Client{Transport: s.wrap(http.NewFileTransportFS(files))}
		s.get(c, "file:///a.txt")
		s.get(c, "file:///large")
		s.get(c, "file:///none")
		s.do(c, s.request(http.MethodHead, "file:///a.txt", nil))
	}},
	{name: "RegisterProtocol of the base", run: func(s *scene) {
		s.base.RegisterProtocol("file", http.NewFileTransportFS(fstest.MapFS{"a.txt": {Data: []byte("content of a")}}))
		server := s.serve(s.echo)
		c := s.client()
		s.get(c, "file:///a.txt")
		s.get(c, server.URL)
	}},
	{name: "a base of the caller's own", run: func(s *scene) {
		c := &http.Client{Transport: s.wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
			var data []byte
			if r.Body != nil {
				data, _ = io.ReadAll(r.Body)
				_ = r.Body.Close()
			}
			return &http.Response{
				Status: "299 Own", StatusCode: 299, Proto: "OWN/1.0", ProtoMajor: 1, Header: http.Header{"x-own": {"kept"}},
				Body: io.NopCloser(strings.NewReader("got " + string(data))), ContentLength: -1, TransferEncoding: []string{"own"},
				Uncompressed: true, Close: true, Trailer: http.Header{"X-Own": {"t"}}, Request: r,
			}, nil
		}))}
		s.get(c, "own://anything/at/all")
		s.do(c, s.request(http.MethodPost, "own://anything", strings.NewReader("content")))
	}},
	{name: "an error of a base of the caller's own", failing: true, run: func(s *scene) {
		c := &http.Client{Transport: s.wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
			closeBody(r)
			return nil, &net.OpError{Op: "own", Err: errors.Join(errOwn, errorText("own text"))}
		}))}
		s.get(c, "own://anything/")
		s.do(c, s.request(http.MethodPost, "own://anything/", strings.NewReader("content")))
	}},
}

// switched asks a server for a protocol switch by hand, and returns the connection when it
// has answered: of that it has read no byte too much.
func (s *scene) switched(server *httptest.Server, path string) (net.Conn, *http.Response) {
	conn := s.dial(server)
	_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: host.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	a, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 1), nil)
	if err != nil {
		s.Fatal(err)
	}
	return conn, a
}

// upgrade is a handler that switches to an echo of lines, or of all until the end.
func (s *scene) upgrade(w http.ResponseWriter, r *http.Request) {
	s.write(&s.seen, "%s %s %q %q", []any{r.Method, r.RequestURI, r.Header["Upgrade"], r.Header["Connection"]})
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.Error(err)
		return
	}
	defer conn.Close()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello\n")
	_ = rw.Flush()
	_, _ = io.Copy(conn, rw)
}

// upgrading is a request for upgrade.
func (s *scene) upgrading(target string) *http.Request {
	s.Helper()
	r := s.request(http.MethodGet, target, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	return r
}

// talk has a talk with upgrade.
func (s *scene) talk(rw io.ReadWriter) {
	lines := bufio.NewReader(rw)
	for _, line := range []string{"", "one\n", "two\n", strings.Repeat("three", 20_000) + "\n"} {
		go func() { _, _ = io.WriteString(rw, line) }()
		got, err := lines.ReadString('\n')
		s.note("%s, %s", digest([]byte(got)), describe(err))
	}
}

// reverse starts a proxy in front of a server, which sends the way of the scene and
// speaks HTTP/1.1 itself.
func (s *scene) reverse(backend *httptest.Server) *httptest.Server {
	s.Helper()
	target, err := url.Parse(backend.URL)
	if err != nil {
		s.Fatal(err)
	}
	quietLog := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		Transport: s.wrap(s.base),
		ErrorLog:  quietLog,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			s.note("the error handler: %s", describe(err))
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	front := httptest.NewUnstartedServer(proxy)
	front.Config.ErrorLog = quietLog
	front.Start()
	s.servers = append(s.servers, front)
	s.address(front.Listener.Addr().String(), "front")
	return front
}

func (s *scene) dial(server *httptest.Server) net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	return conn
}
