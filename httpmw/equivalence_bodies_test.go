package httpmw_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// large is longer than any buffer or window on the way.
var large = bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)

// Codings and trailers.
var codingRows = []behaviour{
	{name: "gzip is decoded", run: zipped(func(*scene, *http.Request) {})},
	{name: "gzip that was asked for stays", run: zipped(func(_ *scene, r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })},
	{name: "gzip is not asked for with DisableCompression", run: zipped(func(s *scene, _ *http.Request) { s.base.DisableCompression = true })},
	{name: "gzip is not asked for with Range", run: zipped(func(_ *scene, r *http.Request) { r.Header.Set("Range", "bytes=0-") })},
	{name: "gzip is not asked for with HEAD", run: zipped(func(_ *scene, r *http.Request) { r.Method = http.MethodHead })},
	{name: "gzip that is broken", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "this is no gzip at all")
		})
		s.get(s.client(), server.URL)
	}},
	{name: "trailers that were announced, with others and none", run: trailers},
	{name: "trailers of a body that is closed early", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Trailer", "X-Late")
			_, _ = w.Write(large[:1<<20])
			w.Header().Set("X-Late", "1")
		})
		a := s.head(s.client(), s.request(http.MethodGet, server.URL, nil))
		s.note("%s, trailer %q", describe(a.Body.Close()), a.Trailer)
	}},
	{name: "trailers of the request", run: requestTrailers},
	{name: "chunks", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			for _, word := range []string{"one ", "two ", "three"} {
				_, _ = io.WriteString(w, word)
				_ = http.NewResponseController(w).Flush()
			}
		})
		s.get(s.client(), server.URL)
	}},
	{name: "the coding \"identity\"", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Transfer-Encoding", "identity")
			_, _ = io.WriteString(w, "until the end")
		})
		s.get(s.client(), server.URL)
	}},
	{name: "an unknown transfer coding", only: http1, why: "HTTP/2 has none", failing: true, run: spoken(
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\nuryyb")},
}

// Bodies of answers: how they break off and how they are closed.
var bodyRows = []behaviour{
	{name: "a body of 8 MiB", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) { s.saw(r); _, _ = w.Write(large) })
		s.get(s.client(), server.URL)
	}},
	{name: "a body shorter than its length", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "four")
			_ = http.NewResponseController(w).Flush()
		})
		s.get(s.client(), server.URL)
	}},
	{name: "a body longer than its length", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "four")
			_, _ = io.WriteString(w, "teen") // HTTP/1.1 drops it, HTTP/2 resets the stream
		})
		s.get(s.client(), server.URL)
	}},
	{name: "a failed answer that breaks off", only: http1, why: "HTTP/2 resets streams", failing: true, run: spoken(
		"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 60\r\nContent-Length: 100\r\n\r\nfirst")},
	{name: "bytes after the end of a body", only: http1, why: "HTTP/2 frames its bodies", run: spoken(
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfourteen")},
	{name: "a server that aborts in mid-body", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			_, _ = io.WriteString(w, "the first part")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		s.get(s.client(), server.URL)
	}},
	{name: "a server that aborts before its answer", failing: true, run: func(s *scene) {
		server := s.serve(func(_ http.ResponseWriter, r *http.Request) { s.saw(r); panic(http.ErrAbortHandler) })
		s.get(s.client(), server.URL)
	}},
	{name: "a connection reset in mid-body", only: http1, why: "HTTP/2 resets streams", run: func(s *scene) {
		read := make(chan struct{})
		reset := sync.OnceFunc(func() { close(read) })
		defer reset()
		address := s.speak(func(conn net.Conn) {
			answer(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst")
			<-read
			_ = conn.(*net.TCPConn).SetLinger(0) // so that Close resets
		})
		a := s.head(s.client(), s.request(http.MethodGet, "http://"+address, nil))
		first := make([]byte, 5)
		_, err := io.ReadFull(a.Body, first)
		s.note("%q, %s", first, describe(err))
		reset()
		s.body(a)
	}},
	{name: "a chunk with a malformed size", only: http1, why: "HTTP/2 frames its bodies", run: spoken(
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nsize\r\n")},
	{name: "chunks without their last one", only: http1, why: "HTTP/2 frames its bodies", run: spoken(
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")},
	{name: "reading after Close, and closing twice", run: closed},
	{name: "reading on after the end", run: func(s *scene) {
		server := s.serve(s.echo)
		a := s.head(s.client(), s.request(http.MethodPost, server.URL, strings.NewReader("content")))
		s.body(a)
		n, err := a.Body.Read(make([]byte, 1))
		s.note("%d, %s", n, describe(err))
	}},
	{name: "closing while another goroutine reads", run: closedWhileRead},
	{name: "reading nothing and small pieces", run: func(s *scene) {
		server := s.serve(s.echo)
		a := s.head(s.client(), s.request(http.MethodPost, server.URL, strings.NewReader("ab")))
		for _, size := range []int{0, 1, 0, 1, 1} {
			n, err := a.Body.Read(make([]byte, size))
			if n == 1 && errors.Is(err, io.EOF) {
				err = nil // the end may come with the last byte or after it
			}
			s.note("%d of %d, %s", n, size, describe(err))
		}
		s.note("%s", describe(a.Body.Close()))
	}},
	{name: "a body that comes in the time of its reader", run: func(s *scene) {
		next := make(chan struct{})
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			for _, word := range []string{"one", "two", "three"} {
				_, _ = io.WriteString(w, word)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
			}
		})
		// It is not hedged, so that each word is waited for by one handler.
		a := s.head(s.client(), s.request(http.MethodPost, server.URL, io.MultiReader(strings.NewReader("once"))))
		for _, word := range []string{"one", "two", "three"} {
			got := make([]byte, len(word))
			_, err := io.ReadFull(a.Body, got)
			s.note("%q, %s", got, describe(err))
			s.hand(next)
		}
		s.body(a)
	}},
}

func zipped(set func(*scene, *http.Request)) func(*scene) {
	return func(s *scene) {
		var zip bytes.Buffer
		z := gzip.NewWriter(&zip)
		_, _ = z.Write(large[:100_000])
		_ = z.Close()
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Content-Type", "text/plain")
			if r.Header.Get("Accept-Encoding") != "gzip" {
				_, _ = w.Write(large[:100_000])
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zip.Bytes())
		})
		r := s.request(http.MethodGet, server.URL, nil)
		set(s, r)
		s.do(s.client(), r)
	}
}

func trailers(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		if r.URL.Path == "/announced" {
			w.Header().Add("Trailer", "X-One, X-Two")
			w.Header().Add("Trailer", "X-Never")
		}
		_, _ = w.Write(large[:100_000])
		w.Header().Set("X-One", "1")
		w.Header().Add("X-Two", "2")
		w.Header().Add("X-Two", "two")
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "3")
	})
	c := s.client()
	s.get(c, server.URL+"/announced")
	s.get(c, server.URL)
}

// fillTrailer sets a trailer when the body has been read, as its sender may.
type fillTrailer struct {
	io.Reader
	request *http.Request
}

func (f *fillTrailer) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		f.request.Trailer.Set("X-Sum", "42")
	}
	return n, err
}

func requestTrailers(s *scene) {
	server := s.serve(s.echo)
	c := s.client()
	f := &fillTrailer{Reader: strings.NewReader("content")}
	f.request = s.request(http.MethodPost, server.URL, f)
	f.request.Trailer = http.Header{"X-Sum": nil}
	s.do(c, f.request)

	// Of a body that could be repeated, but for them.
	again := s.request(http.MethodPost, server.URL, nil)
	again.Header.Set("Idempotency-Key", "1")
	again.Trailer, again.ContentLength = http.Header{"X-Sum": nil}, -1
	again.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(&fillTrailer{Reader: strings.NewReader("content"), request: again}), nil
	}
	again.Body, _ = again.GetBody()
	s.do(c, again)

	// Known before the body is read, and of a body that can be repeated.
	r := s.request(http.MethodPost, server.URL, strings.NewReader("content"))
	r.ContentLength = -1
	r.Trailer = http.Header{"X-Known": {"a", "b"}}
	s.do(c, r)
	s.note("trailer %q", r.Trailer)
}

func closed(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) { s.saw(r); _, _ = w.Write(large) })
	a := s.head(s.client(), s.request(http.MethodGet, server.URL, nil))
	p := make([]byte, 16)
	_, err := io.ReadFull(a.Body, p)
	s.note("%q, %s", p, describe(err))
	s.note("%s", describe(a.Body.Close()))
	n, err := a.Body.Read(p)
	s.note("%d, %s", n, describe(err))
	s.note("%s", describe(a.Body.Close()))
	n, err = a.Body.Read(p)
	s.note("%d, %s", n, describe(err))
}

func closedWhileRead(s *scene) {
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		_, _ = io.WriteString(w, "head")
		_ = http.NewResponseController(w).Flush()
		s.hold(r)
	})
	a := s.head(s.client(), s.request(http.MethodGet, server.URL, nil))
	begun := make(chan struct{})
	result := make(chan string, 1)
	go func() {
		first := make([]byte, 4)
		_, _ = io.ReadFull(a.Body, first)
		close(begun)
		rest, err := io.ReadAll(a.Body)
		result <- string(slices.Concat(first, rest)) + " " + identity(err)
	}()
	<-begun
	s.note("%s", describe(a.Body.Close()))
	s.note("%s", <-result)
}
