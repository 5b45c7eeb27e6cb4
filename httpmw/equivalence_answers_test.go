package httpmw_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Statuses, headers, and answers without a body.
var answerRows = []behaviour{
	{name: "200 with a body", run: status(http.StatusOK, "content")},
	{name: "200 with an empty body", run: status(http.StatusOK, "")},
	{name: "201 with a Location and a body", run: status(http.StatusCreated, "made")},
	{name: "204 has no body", run: status(http.StatusNoContent, "")},
	{name: "206 of a part", run: part},
	{name: "204 whose handler goes on", run: flushedFirst(http.StatusNoContent)},
	{name: "304 whose handler goes on", run: flushedFirst(http.StatusNotModified)},
	{name: "304 has headers but no body", run: status(http.StatusNotModified, "")},
	{name: "404 with a body", run: status(http.StatusNotFound, "not found")},
	{name: "408 with a body", failing: true, run: status(http.StatusRequestTimeout, "too slow")},
	{name: "429 with a body", failing: true, run: status(http.StatusTooManyRequests, "too many")},
	{name: "500 with a body", failing: true, run: status(http.StatusInternalServerError, "broken")},
	{name: "503 with a body", failing: true, run: status(http.StatusServiceUnavailable, "busy")},
	{name: "503 without a body", failing: true, run: status(http.StatusServiceUnavailable, "")},
	{name: "503 of chunks with trailers", failing: true, run: brokenWithTrailers},
	{name: "an unknown status", run: status(299, "odd")},
	{name: "500 of a request that cannot be repeated", run: brokenOnce},
	{name: "103 and other informational answers", run: informational},
	{name: "a trace hook refuses an informational answer", run: refusedInformational},
	{name: "HEAD tells a length", run: headWithLength},
	{name: "HEAD without a length", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) { s.saw(r); _, _ = io.WriteString(w, "unseen") })
		s.do(s.client(), s.request(http.MethodHead, server.URL, nil))
	}},
	{name: "OPTIONS and TRACE", run: func(s *scene) {
		server := s.serve(s.echo)
		c := s.client()
		s.do(c, s.request(http.MethodOptions, server.URL+"/*", nil))
		s.do(c, s.request(http.MethodTrace, server.URL, nil))
		s.do(c, s.request("", server.URL, nil))
		s.do(c, s.request("UNHEARD-OF", server.URL, nil))
	}},
	{name: "header names are canonical and values stay apart", run: headers},
	{name: "header keys that are not canonical are sent as they are", run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodGet, server.URL, nil)
		r.Header["x-lower-CASE"] = []string{"1", "2"}
		r.Header["X-Empty"] = []string{""}
		r.Header["User-Agent"] = nil
		s.do(s.client(), r)
	}},
	{name: "a large header", run: largeHeader(false)},
	{name: "a header beyond MaxResponseHeaderBytes", failing: true, run: largeHeader(true)},
	{name: "a path that is escaped, with a query and a fragment", run: func(s *scene) {
		server := s.serve(s.echo)
		s.get(s.client(), server.URL+"/a%2Fb/%20c//d?q=1&q=%26;x#fragment")
	}},
	{name: "a Host of its own", run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodGet, server.URL, nil)
		r.Host = "virtual.test:8443"
		s.do(s.client(), r)
	}},
	{name: "user and password in the URL", run: func(s *scene) {
		server := s.serve(s.echo)
		s.get(s.client(), strings.Replace(server.URL, "://", "://user:pass%20word@", 1))
	}},
	{name: "an answer of HTTP/1.0", only: http1, why: "HTTP/2 has one version", run: spoken(
		"HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nuntil the end")},
	{name: "a malformed status line", only: http1, why: "HTTP/2 has no status line", failing: true, run: spoken(
		"HTTP/1.1 two hundred\r\n\r\n")},
	{name: "a malformed header", only: http1, why: "HTTP/2 frames its headers", failing: true, run: spoken(
		"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n")},
	{name: "two lengths that differ", only: http1, why: "HTTP/2 frames its bodies", failing: true, run: spoken(
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc")},
	{name: "something that is not HTTP", only: http1, why: "HTTP/2 is agreed upon by TLS", failing: true, run: spoken("SSH-2.0-x\r\n")},
	{name: "a connection closed without an answer", only: http1, why: "HTTP/2 ends streams, not connections", failing: true, run: spoken("")},
}

// status answers with a status and a body, to a GET and then to a POST.
func status(code int, body string) func(*scene) {
	return func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Etag", `"tag"`)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
		c := s.client()
		s.get(c, server.URL+"/path?q")
		s.do(c, s.request(http.MethodPost, server.URL, strings.NewReader("sent")))
	}
}

func part(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		http.ServeContent(w, r, "digits.txt", time.Unix(1e9, 0), strings.NewReader("0123456789"))
	})
	c := s.client()
	for _, ranges := range []string{"bytes=2-4", "bytes=100-"} {
		r := s.request(http.MethodGet, server.URL, nil)
		r.Header.Set("Range", ranges)
		s.do(c, r)
	}
}

func brokenWithTrailers(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		w.Header().Set("Trailer", "X-Why")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "part ")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "and part")
		w.Header().Set("X-Why", "busy")
	})
	a, err := s.client().Do(s.request(http.MethodGet, server.URL, nil))
	if err != nil {
		s.Fatal(err)
	}
	// Of an answer that was kept, the trailers are there before its end.
	s.note("status %d, length %d, coding %q", a.StatusCode, a.ContentLength, a.TransferEncoding)
	s.body(a)
}

func brokenOnce(s *scene) {
	long := strings.Repeat("broken ", 20_000) // longer than what is ever kept
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, long)
	})
	s.do(s.client(), s.request(http.MethodPost, server.URL, io.MultiReader(strings.NewReader("sent once"))))
}

// informational sends several 1xx. The hooks of a trace see the first attempt only, and
// that one may have lost.
func informational(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		w.Header().Add("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.Header().Add("Link", "</script.js>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "content")
	})
	var mu sync.Mutex
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		mu.Lock()
		defer mu.Unlock()
		hints = append(hints, fmt.Sprintf("%d %q", code, header))
		return nil
	}}
	r := s.request(http.MethodGet, server.URL, nil)
	s.do(s.client(), r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	mu.Lock()
	defer mu.Unlock()
	s.single("hints %v", hints)
}

// refusedInformational sends a body that cannot be repeated: any other request would be
// sent again without the hook.
func refusedInformational(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		w.WriteHeader(http.StatusEarlyHints)
	})
	trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { return errOwn }}
	r := s.request(http.MethodPost, server.URL, io.MultiReader(strings.NewReader("once")))
	s.do(s.client(), r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

func headWithLength(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		w.Header().Set("Content-Length", "123456789")
		w.Header().Set("Content-Encoding", "br")
	})
	c := s.client()
	s.do(c, s.request(http.MethodHead, server.URL, nil))
	s.do(c, s.request(http.MethodHead, server.URL, nil)) // over the same connection
}

func headers(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		w.Header()["x-small-letters"] = []string{"a"}
		w.Header().Add("X-Many", "one, two")
		w.Header().Add("X-Many", "three")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2; Path=/; HttpOnly")
		w.Header().Set("X-Empty", "")
		w.Header().Set("X-High", "caf\xe9 ☕")
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	})
	r := s.request(http.MethodGet, server.URL, nil)
	r.Header.Add("accept", "a/b")
	r.Header.Add("Accept", "c/d;q=0.5")
	r.Header.Set("Cookie", "x=1; y=2")
	s.do(s.client(), r)
}

func largeHeader(tooLarge bool) func(*scene) {
	return func(s *scene) {
		if tooLarge {
			s.base.MaxResponseHeaderBytes = 8 << 10
		}
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			for i := range 40 {
				w.Header().Set("X-Large-"+strconv.Itoa(i), strings.Repeat("v", 1<<10))
			}
		}, func(server *httptest.Server) { server.Config.MaxHeaderBytes = 1 << 20 })
		r := s.request(http.MethodGet, server.URL, nil)
		r.Header.Set("X-Sent", strings.Repeat("s", 32<<10))
		s.do(s.client(), r)
	}
}

// answer reads one request without a body and writes raw bytes in answer to it. It
// reports whether there was one.
func answer(conn net.Conn, raw string) bool {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_, err = io.WriteString(conn, raw)
	return err == nil
}

// spoken is a GET that is answered with raw bytes and the end of the connection.
func spoken(raw string) func(*scene) {
	return func(s *scene) {
		address := s.speak(func(conn net.Conn) { answer(conn, raw) })
		s.get(s.client(), "http://"+address)
	}
}

// flushedFirst has a handler that goes on after it has sent a status which allows no body.
// Over HTTP/2 its stream is open then, and trailers may follow.
func flushedFirst(code int) func(*scene) {
	return func(s *scene) {
		next := make(chan struct{})
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(code)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
				w.Header().Set("X-Sum", "42")
			case <-r.Context().Done(): // the stream was reset
			}
		})
		// It is not hedged, so that there is one handler to wait for.
		a := s.head(s.client(), s.request(http.MethodPost, server.URL, io.MultiReader(strings.NewReader("once"))))
		s.hand(next)
		s.body(a)
		s.note("trailer %q", a.Trailer)
	}
}
