package httpmw_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Requests that cannot be sent.
var errorRows = []behaviour{
	{name: "a connection that is refused", failing: true, run: func(s *scene) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.Fatal(err)
		}
		_ = l.Close() // nobody listens there now
		s.address(l.Addr().String(), "nobody")
		c := s.client()
		s.get(c, s.scheme()+"://"+l.Addr().String())
		s.do(c, s.request(http.MethodPost, s.scheme()+"://"+l.Addr().String(), strings.NewReader("content")))
	}},
	{name: "an error of the dialer", failing: true, run: func(s *scene) {
		s.base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errOwn }
		s.get(s.client(), s.scheme()+"://host.test/")
	}},
	{name: "a name that does not resolve", failing: true, run: func(s *scene) {
		s.base.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
		}
		s.get(s.client(), s.scheme()+"://host.test/")
	}},
	{name: "a dial that takes longer than the deadline", failing: true, run: func(s *scene) {
		s.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		c := s.client()
		c.Timeout = 30 * ms
		s.wordless = true // see whyWordless
		s.get(c, s.scheme()+"://host.test/")
	}},
	{name: "a time-out of the dialer", failing: true, run: func(s *scene) {
		d := &net.Dialer{Deadline: time.Unix(1e9, 0)} // passed
		s.base.DialContext = d.DialContext
		s.get(s.client(), s.scheme()+"://127.0.0.1:1/")
	}},
	{name: "an unknown scheme", failing: true, run: func(s *scene) { s.get(s.client(), "gopher://host.test/") }},
	{name: "no scheme", failing: true, run: func(s *scene) { s.get(s.client(), "//host.test/path") }},
	{name: "no host", failing: true, run: func(s *scene) { s.get(s.client(), s.scheme()+":///path") }},
	{name: "no URL", run: func(s *scene) {
		r := s.request(http.MethodGet, "http://host.test/", nil)
		r.URL = nil
		s.do(s.client(), r)
	}},
	{name: "no header map", run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodGet, server.URL, nil)
		r.Header = nil
		s.do(s.client(), r)
	}},
	{name: "a bad method", failing: true, run: func(s *scene) {
		r := s.request(http.MethodGet, s.scheme()+"://host.test/", nil)
		r.Method = "BAD METHOD"
		s.do(s.client(), r)
	}},
	{name: "a bad header name", failing: true, run: func(s *scene) {
		r := s.request(http.MethodGet, s.scheme()+"://host.test/", nil)
		r.Header["bad name"] = []string{"x"}
		s.do(s.client(), r)
	}},
	{name: "a bad header value", failing: true, run: func(s *scene) {
		r := s.request(http.MethodPost, s.scheme()+"://host.test/", strings.NewReader("content"))
		r.Header.Set("X-Bad", "line\nfeed")
		s.do(s.client(), r)
	}},
	{name: "a bad trailer name", failing: true, run: func(s *scene) {
		r := s.request(http.MethodPost, s.scheme()+"://host.test/", strings.NewReader("content"))
		r.Trailer = http.Header{"bad name": {"x"}}
		s.do(s.client(), r)
	}},
	{name: "a bad Host", failing: true, run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodGet, server.URL, nil)
		r.Host = "bad host\x00"
		s.do(s.client(), r)
	}},
	{name: "a length without a body", failing: true, run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodPost, server.URL, nil)
		r.ContentLength = 5
		s.do(s.client(), r)
	}},
	{name: "ResponseHeaderTimeout", failing: true, run: func(s *scene) {
		s.base.ResponseHeaderTimeout = 50 * ms
		server := s.serve(func(_ http.ResponseWriter, r *http.Request) { s.hold(r) })
		s.get(s.client(), server.URL)
	}},
	{name: "ResponseHeaderTimeout does not count the body", run: func(s *scene) {
		s.base.ResponseHeaderTimeout = 100 * ms
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			_, _ = io.WriteString(w, "first ")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(150 * ms): // longer than the time-out
				_, _ = io.WriteString(w, "second")
			case <-r.Context().Done():
			}
		})
		s.get(s.client(), server.URL)
	}},
}

// What TLS adds.
var tlsRows = []behaviour{
	{name: "the state of the TLS connection", run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.get(s.client(), server.URL)
	}},
	{name: "a certificate of an unknown authority", failing: true, run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.base.TLSClientConfig.RootCAs = nil
		s.get(s.client(), server.URL)
	}},
	{name: "a certificate for another host", failing: true, run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.base.TLSClientConfig.ServerName = "another.test"
		s.get(s.client(), server.URL)
	}},
	{name: "a certificate that has expired", failing: true, run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.base.TLSClientConfig.Time = func() time.Time { return time.Unix(1<<40, 0) }
		s.get(s.client(), server.URL)
	}},
	{name: "a certificate that a function of the caller refuses", failing: true, run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.base.TLSClientConfig.VerifyConnection = func(tls.ConnectionState) error { return errOwn }
		s.get(s.client(), server.URL)
	}},
	{name: "a server that wants a certificate of the client", failing: true, run: func(s *scene) {
		server := s.serveTLS(s.echo, func(server *httptest.Server) {
			server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
		})
		s.get(s.client(), server.URL)
	}},
	{name: "https to a server without TLS", failing: true, run: func(s *scene) {
		address := s.speak(func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		})
		s.get(s.client(), "https://"+address)
	}},
	{name: "http to a server with TLS", run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.get(s.client(), strings.Replace(server.URL, "https", "http", 1))
	}},
	{name: "TLSHandshakeTimeout", failing: true, run: func(s *scene) {
		s.base.TLSHandshakeTimeout = 50 * ms
		address := s.speak(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		s.get(s.client(), "https://"+address)
	}},
	{name: "DialTLSContext of the caller", run: func(s *scene) {
		server := s.serveTLS(s.echo)
		s.base.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			d := tls.Dialer{Config: s.base.TLSClientConfig.Clone()}
			return d.DialContext(ctx, network, address)
		}
		s.get(s.client(), server.URL)
	}},
}

// scheme is that of the scene's servers.
func (s *scene) scheme() string {
	if s.h2 {
		return "https"
	}
	return "http"
}

// dialing sends the connections that are meant for a host to an address.
func dialing(address, host string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, to string) (net.Conn, error) {
		if strings.HasPrefix(to, host+":") {
			to = address
		}
		var d net.Dialer
		return d.DialContext(ctx, network, to)
	}
}
