package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// How connections are kept, closed and limited.
var connectionRows = []behaviour{
	{name: "one connection serves requests whose bodies are read", run: several(func(s *scene, c *http.Client, target string) {
		s.get(c, target)
	})},
	{name: "a body that is closed early", run: several(func(s *scene, c *http.Client, target string) {
		a := s.head(c, s.request(http.MethodGet, target+"/large", nil))
		_, err := io.ReadFull(a.Body, make([]byte, 100))
		s.note("%s; %s", describe(err), describe(a.Body.Close()))
	})},
	{name: "bodies with a length that are read to it, without the end", run: several(func(s *scene, c *http.Client, target string) {
		a := s.head(c, s.request(http.MethodGet, target, nil))
		_, err := io.ReadFull(a.Body, make([]byte, a.ContentLength))
		s.note("%s; %s", describe(err), describe(a.Body.Close()))
	})},
	{name: "HEAD and 204 keep the connection", run: several(func(s *scene, c *http.Client, target string) {
		s.do(c, s.request(http.MethodHead, target, nil))
		s.get(c, target+"/none")
	})},
	{name: "DisableKeepAlives", run: func(s *scene) {
		s.base.DisableKeepAlives = true
		several(func(s *scene, c *http.Client, target string) { s.get(c, target) })(s)
	}},
	{name: "Request.Close", run: several(func(s *scene, c *http.Client, target string) {
		r := s.request(http.MethodGet, target, nil)
		r.Close = true
		s.do(c, r)
	})},
	{name: "Connection: close of the request", run: several(func(s *scene, c *http.Client, target string) {
		r := s.request(http.MethodGet, target, nil)
		r.Header.Set("Connection", "close")
		s.do(c, r)
	})},
	// Over HTTP/2 the server takes it for the wish to say GOAWAY.
	{name: "Connection: close of the answer", run: several(func(s *scene, c *http.Client, target string) {
		s.get(c, target+"/close")
	})},
	{name: "CloseIdleConnections of the client", run: several(func(s *scene, c *http.Client, target string) {
		s.get(c, target)
		// A stream of HTTP/2 may take a while to end after its body.
		eventually(s, "every connection is closed", func() bool {
			c.CloseIdleConnections()
			return s.open.Load() == 0
		})
	})},
	{name: "MaxConnsPerHost lets all requests through", run: maxConns},
	{name: "a deadline while MaxConnsPerHost makes a request wait", only: http1, why: "HTTP/2 shares the one connection", failing: true, run: maxConnsDeadline},
	{name: "a GET is sent again if the idle connection was closed", only: http1, why: "the close of an idle connection of HTTP/2 is GOAWAY", run: stale(http.MethodGet, nil)},
	{name: "a POST with a key is sent again if the idle connection was closed", only: http1, why: "the close of an idle connection of HTTP/2 is GOAWAY",
		run: stale(http.MethodPost, http.Header{"Idempotency-Key": {"1"}})},
	{name: "many requests at once", run: manyAtOnce(http.MethodGet)},
	{name: "MaxConcurrentStreams of the server", only: http2, why: "HTTP/1.1 has no streams", run: manyAtOnce(http.MethodGet, threeStreams)},
	{name: "bodies beyond MaxConcurrentStreams, of which net/http forgets some", only: http2, why: "HTTP/1.1 has no streams",
		run: manyAtOnce(http.MethodPost, threeStreams)},
	{name: "small windows of flow control", only: http2, why: "HTTP/1.1 leaves it to TCP", run: func(s *scene) {
		s.base.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
		server := s.serve(s.echo, func(server *httptest.Server) {
			server.Config.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReadFrameSize: 16 << 10}
		})
		s.do(s.client(), s.request(http.MethodPost, server.URL, strings.NewReader(string(large[:2<<20]))))
	}},
	{name: "no server push", only: http2, why: "HTTP/1.1 has none", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			err := http.ErrNotSupported
			if p, ok := w.(http.Pusher); ok {
				err = nil
				if pushed := p.Push("/pushed", nil); pushed != nil {
					_, _ = fmt.Fprint(w, "refused: ", pushed)
				}
			}
			_, _ = fmt.Fprint(w, " ", err)
		})
		s.get(s.client(), server.URL)
	}},
}

// Proxies.
var proxyRows = []behaviour{
	{name: "a proxy of plain requests", only: http1, why: "HTTP/2 without TLS goes through no proxy", run: func(s *scene) {
		proxy := s.serve(s.echo)
		s.base.Proxy = s.through(proxy.URL)
		s.get(s.client(), "http://user:pass@host.test/path?q")
	}},
	{name: "a tunnel of a proxy, with headers for it", run: func(s *scene) {
		server := s.serveTLS(s.echo)
		proxy := s.tunnels(server)
		s.base.Proxy = s.through(proxy)
		s.base.ProxyConnectHeader = http.Header{"X-Proxy": {"yes"}}
		c := s.client()
		s.get(c, "https://example.com/path")
		s.do(c, s.request(http.MethodPost, "https://example.com/path", strings.NewReader("content")))
	}},
	{name: "headers for the proxy by a function", run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.base.Proxy = s.through(s.tunnels(server))
		s.base.GetProxyConnectHeader = func(_ context.Context, _ *url.URL, target string) (http.Header, error) {
			return http.Header{"X-Target": {target}}, nil
		}
		s.get(s.client(), "https://example.com/path")
	}},
	{name: "a proxy that wants to know who asks", failing: true, run: func(s *scene) {
		proxy := s.speak(func(conn net.Conn) {
			answer(conn, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
		})
		s.base.Proxy = s.through("http://" + proxy)
		s.get(s.client(), "https://host.test/")
	}},
	{name: "407 of a proxy of plain requests", only: http1, why: "HTTP/2 without TLS goes through no proxy", run: func(s *scene) {
		proxy := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(http.StatusProxyAuthRequired)
		})
		s.base.Proxy = s.through(proxy.URL)
		s.get(s.client(), "http://host.test/")
	}},
	{name: "an error of the proxy function", failing: true, run: func(s *scene) {
		s.base.Proxy = func(*http.Request) (*url.URL, error) { return nil, errOwn }
		s.get(s.client(), s.scheme()+"://host.test/")
	}},
	{name: "a proxy that refuses the connection", failing: true, run: func(s *scene) {
		s.base.Proxy = s.through("http://proxy.test:1")
		s.base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errOwn}
		}
		s.get(s.client(), s.scheme()+"://host.test/")
	}},
	{name: "OnProxyConnectResponse of the caller", failing: true, run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.base.Proxy = s.through(s.tunnels(server))
		s.base.OnProxyConnectResponse = func(context.Context, *url.URL, *http.Request, *http.Response) error { return errOwn }
		s.get(s.client(), "https://example.com/path")
	}},
	{name: "a SOCKS5 proxy that hangs up", failing: true, run: func(s *scene) {
		proxy := s.speak(func(conn net.Conn) { _, _ = conn.Read(make([]byte, 3)) })
		s.base.Proxy = s.through("socks5://" + proxy)
		s.get(s.client(), s.scheme()+"://host.test/")
	}},
}

// several sends three times the same, one after the other: the connections tell how
// well they are used again.
func several(send func(s *scene, c *http.Client, target string)) func(*scene) {
	return func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			switch r.URL.Path {
			case "/large":
				_, _ = w.Write(large)
				return
			case "/none":
				w.WriteHeader(http.StatusNoContent)
				return
			case "/close":
				w.Header().Set("Connection", "close")
			}
			_, _ = io.WriteString(w, "content")
		})
		c := s.client()
		for range 3 {
			send(s, c, server.URL)
		}
	}
}

func maxConns(s *scene) {
	s.base.MaxConnsPerHost = 2
	var running, most atomic.Int32
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		if n := running.Add(1); !s.h2 && n > 2 {
			most.Store(n)
		}
		defer running.Add(-1)
		s.saw(r)
		_, _ = io.WriteString(w, r.URL.Path)
	})
	s.uncounted = true // one or two
	s.together(s.client(), 8, http.MethodGet, server.URL)
	// The handler of a loser may outlive its connection.
	s.single("more than two handlers at once: %t", most.Load() > 2)
}

func maxConnsDeadline(s *scene) {
	s.base.MaxConnsPerHost = 1
	held := make(chan struct{})
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first part")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-held:
		case <-r.Context().Done():
		}
	})
	c := s.client()
	a := s.head(c, s.request(http.MethodPost, server.URL, io.MultiReader(strings.NewReader("once"))))
	ctx, cancel := context.WithTimeout(s.Context(), 40*ms)
	defer cancel()
	s.do(c, s.request(http.MethodGet, server.URL, nil).WithContext(ctx))
	close(held)
	s.body(a)
}

// stale sends a request over a connection that its server closes as it comes.
func stale(method string, header http.Header) func(*scene) {
	return func(s *scene) {
		var connections atomic.Int32
		address := s.speak(func(conn net.Conn) {
			first := connections.Add(1) == 1
			answered := answer(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if answered && first {
				_, _ = conn.Read(make([]byte, 1)) // the second request begins
				return
			}
			_, _ = io.Copy(io.Discard, conn)
		})
		c := s.client()
		for range 2 {
			r := s.request(method, "http://"+address, nil)
			for k, v := range header {
				r.Header[k] = v
			}
			s.do(c, r)
		}
	}
}

// together sends n requests at once, and notes down the answers in order.
func (s *scene) together(c *http.Client, n int, method, target string) {
	answers := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			r := s.request(method, fmt.Sprint(target, "/", i), nil)
			if method == http.MethodPost {
				r = s.request(method, r.URL.String(), strings.NewReader("content"))
			}
			a, err := c.Do(r)
			if err != nil {
				answers[i] = describe(err)
				return
			}
			data, err := io.ReadAll(a.Body)
			answers[i] = fmt.Sprintf("%d %s %s %s", a.StatusCode, a.Proto, digest(data), describe(err))
			_ = a.Body.Close()
		})
	}
	all.Wait()
	s.note("%q", answers)
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.seen)
}

func manyAtOnce(method string, set ...func(*httptest.Server)) func(*scene) {
	return func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			_, _ = io.WriteString(w, r.URL.Path)
		}, set...)
		c := s.client()
		s.get(c, server.URL) // connects
		s.uncounted = true   // as many as there are at once
		s.together(c, 12, method, server.URL)
	}
}

func threeStreams(server *httptest.Server) {
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 3}
}

// through is a function for Transport.Proxy.
func (s *scene) through(proxy string) func(*http.Request) (*url.URL, error) {
	u, err := url.Parse(proxy)
	if err != nil {
		s.Fatal(err)
	}
	return http.ProxyURL(u)
}

// tunnels starts a proxy that connects whatever is asked for to server.
func (s *scene) tunnels(server *httptest.Server) string {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.write(&s.seen, "proxy: %s %s, header %q", []any{r.Method, r.RequestURI, r.Header})
		up, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			// A hedge may come when the server is gone, and nobody waits for it then.
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer up.Close()
		down, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			s.Error(err)
			return
		}
		defer down.Close()
		_, _ = io.WriteString(down, "HTTP/1.1 200 Connected\r\nX-Via: proxy\r\n\r\n")
		splice(up, down)
	}))
	s.servers = append(s.servers, proxy)
	s.address(proxy.Listener.Addr().String(), "proxy")
	return proxy.URL
}

// splice copies in both directions until both have ended.
func splice(a, b net.Conn) {
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}
