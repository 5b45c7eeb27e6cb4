package httpmw_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing/iotest"
	"time"
)

// Bodies of requests.
var uploadRows = []behaviour{
	{name: "no body and http.NoBody of GET, POST, PUT and DELETE", run: func(s *scene) {
		server := s.serve(s.echo)
		c := s.client()
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			for _, body := range []io.Reader{nil, http.NoBody, strings.NewReader("")} {
				s.do(c, s.request(method, server.URL, body))
			}
		}
	}},
	{name: "a body of bytes.Reader", run: upload(func(*scene) io.Reader { return bytes.NewReader(large[:100_000]) })},
	{name: "a body of strings.Reader", run: upload(func(*scene) io.Reader { return strings.NewReader("content") })},
	{name: "a body of bytes.Buffer", run: upload(func(*scene) io.Reader { return bytes.NewBufferString("content") })},
	{name: "a body of io.Pipe", run: upload(func(*scene) io.Reader {
		r, w := io.Pipe()
		go func() {
			for _, word := range []string{"one ", "two ", "three"} {
				_, _ = io.WriteString(w, word)
			}
			_ = w.Close()
		}()
		return r
	})},
	{name: "a body of os.File", run: upload(func(s *scene) io.Reader {
		name := filepath.Join(s.TempDir(), "body")
		if err := os.WriteFile(name, large[:200_000], 0o600); err != nil {
			s.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			s.Fatal(err)
		}
		return f
	})},
	{name: "a body of 8 MiB in both directions", run: upload(func(*scene) io.Reader { return bytes.NewReader(large) })},
	{name: "a body that comes byte by byte", run: upload(func(*scene) io.Reader {
		return iotest.OneByteReader(strings.NewReader("byte by byte"))
	})},
	{name: "a GET with a body", run: func(s *scene) {
		server := s.serve(s.echo)
		s.do(s.client(), s.request(http.MethodGet, server.URL, strings.NewReader("content")))
	}},
	{name: "an empty body of unknown length", run: upload(func(*scene) io.Reader { return iotest.DataErrReader(strings.NewReader("")) })},
	{name: "an error of the body's reader", run: func(s *scene) {
		server := s.serve(unnoted)
		body := io.MultiReader(strings.NewReader("part"), iotest.ErrReader(errOwn))
		s.do(s.client(), s.request(http.MethodPost, server.URL, body))
	}},
	{name: "an error of the body's first read", run: func(s *scene) {
		server := s.serve(unnoted)
		s.do(s.client(), s.request(http.MethodPost, server.URL, iotest.ErrReader(errorText("no body today"))))
	}},
	{name: "a body shorter than ContentLength", run: mislength("short", 10)},
	{name: "a body longer than ContentLength", run: mislength("much too long", 4)},
	{name: "a ContentLength of -1 of a body that is known", run: mislength("known", -1)},
	{name: "the body is closed once", run: closedOnce},
	{name: "an early answer while the body is still sent", run: earlyAnswer},
	{name: "Transfer-Encoding chunked of the request", run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodPut, server.URL, strings.NewReader("content"))
		r.TransferEncoding = []string{"chunked"}
		s.do(s.client(), r)
	}},
	{name: "headers that the transport owns", run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodPost, server.URL, strings.NewReader("content"))
		r.Header.Set("Content-Length", "99")
		r.Header.Set("Transfer-Encoding", "chunked")
		r.Header.Set("Host", "not.this")
		r.Header.Set("Trailer", "X-None")
		s.do(s.client(), r)
	}},
}

// Expect: 100-continue.
var expectRows = []behaviour{
	{name: "Expect: 100-continue is agreed to", run: expect(time.Hour, func(s *scene, w http.ResponseWriter, r *http.Request) {
		s.echo(w, r) // Read sends the 100
	})},
	{name: "Expect: 100-continue is refused with 417", run: expect(time.Hour, func(_ *scene, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusExpectationFailed)
	})},
	{name: "Expect: 100-continue is answered with 413", run: expect(time.Hour, func(_ *scene, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	})},
	{name: "Expect: 100-continue is answered with 200", run: expect(time.Hour, func(_ *scene, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "not needed")
	})},
	{name: "ExpectContinueTimeout sends the body unasked", only: http1, why: "a server of HTTP/2 cannot be kept from answering the Expect here",
		run: func(s *scene) {
			s.base.ExpectContinueTimeout = 20 * ms
			address := s.speak(func(conn net.Conn) { answer(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") })
			r := s.request(http.MethodPut, "http://"+address, strings.NewReader("unasked"))
			r.Header.Set("Expect", "100-continue")
			s.do(s.client(), r)
		}},
	{name: "Expect: 100-continue without a timeout sends the body at once", run: expect(0, func(s *scene, w http.ResponseWriter, r *http.Request) {
		s.echo(w, r)
	})},
}

// upload sends a body twice over, with a length if net/http finds one, and has it back.
func upload(body func(*scene) io.Reader) func(*scene) {
	return func(s *scene) {
		server := s.serve(s.echo)
		c := s.client()
		s.do(c, s.request(http.MethodPost, server.URL, body(s)))
		s.do(c, s.request(http.MethodPut, server.URL, body(s)))
	}
}

// unnoted is echo without a note: how much of a request arrives before it breaks off,
// and whether any of it does, is not to be foretold.
func unnoted(w http.ResponseWriter, r *http.Request) {
	if data, err := io.ReadAll(r.Body); err == nil {
		_, _ = w.Write(data)
	}
}

// mislength sends a body that is not in memory, as far as net/http knows: one that it
// knows to be is sent in one piece with the headers, and so not at all if it is wrong,
// and a body that is wrapped is not known to be.
func mislength(body string, length int64) func(*scene) {
	return func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			unnoted(w, r)
			if length >= 0 && !s.h2 {
				s.hold(r) // an answer might come before the error
			}
		})
		r := s.request(http.MethodPost, server.URL, io.MultiReader(strings.NewReader(body)))
		r.ContentLength = length
		s.do(s.client(), r)
	}
}

// countedBody counts its closes.
type countedBody struct {
	io.Reader
	closes *atomic.Int32
}

func (c countedBody) Close() error { c.closes.Add(1); return nil }

// closedOnce asks that each body that was given away is closed once: after an answer,
// an error before the first byte, and an answer that left the body unread.
func closedOnce(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unread" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.echo(w, r)
	})
	c := s.client()
	for _, target := range []string{server.URL, "http://127.0.0.1:0", server.URL + "/unread"} {
		var closes atomic.Int32
		s.do(c, s.request(http.MethodPost, target, countedBody{strings.NewReader("content"), &closes}))
		eventually(s, "the body is closed", func() bool { return closes.Load() > 0 })
		s.Cleanup(func() {
			if n := closes.Load(); n != 1 {
				s.Errorf("%s: the body for %s was closed %d times", s.way, target, n)
			}
		})
	}
}

// endless is a body that goes on until it is closed.
type endless struct {
	reads  atomic.Int32
	once   sync.Once
	closed chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.reads.Add(1) == 1 {
		return copy(p, "the first part"), nil
	}
	<-e.closed
	return 0, errors.New("read after close")
}

func (e *endless) Close() error { e.once.Do(func() { close(e.closed) }); return nil }

// earlyAnswer reads an answer whose request is still being sent.
func earlyAnswer(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 is that anyway
		_, _ = io.ReadFull(r.Body, make([]byte, 4))
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "that is enough")
		_ = http.NewResponseController(w).Flush()
	})
	c := s.client()
	for range 2 {
		body := &endless{closed: make(chan struct{})}
		a := s.head(c, s.request(http.MethodPost, server.URL, body))
		s.body(a)
		_ = body.Close() // what the sender of such a body must do for HTTP/1.1
	}
}

func expect(wait time.Duration, handler func(*scene, http.ResponseWriter, *http.Request)) func(*scene) {
	return func(s *scene) {
		s.base.ExpectContinueTimeout = wait
		server := s.serve(func(w http.ResponseWriter, r *http.Request) { handler(s, w, r) },
			func(server *httptest.Server) { server.Config.WriteTimeout = 20 * time.Second })
		c := s.client()
		var reads atomic.Int32
		body := countedReader{strings.NewReader("content"), &reads}
		r := s.request(http.MethodPut, server.URL, body)
		r.ContentLength = int64(len("content"))
		r.Header.Set("Expect", "100-continue")
		s.do(c, r)
		if wait > 0 {
			s.note("the body was asked for: %t", reads.Load() > 0)
		}
		r = s.request(http.MethodPut, server.URL, strings.NewReader("known"))
		r.Header.Set("Expect", "100-continue")
		s.do(c, r)
	}
}

// countedReader counts its reads.
type countedReader struct {
	io.Reader
	reads *atomic.Int32
}

func (c countedReader) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Reader.Read(p)
}
