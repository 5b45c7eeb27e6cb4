package httpmw_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/httpmw"
)

// silence keeps what servers log of panics out of the test's output.
func silence(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
}

// behaviour is something that handlers do, and what the client sends them for it. What a
// handler finds it writes into its answer.
type behaviour struct {
	body    string
	headers []string // in pairs
	method  string   // POST if it is empty
	trailer http.Header
	chunked bool
	serve   http.HandlerFunc
}

var behaviours = map[string]behaviour{
	"answers": {serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Own", "1")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.Copy(w, r.Body)
	}, body: "echo"},
	"HEAD": {method: http.MethodHead, serve: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9") }},
	"streams": {serve: func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			_, _ = io.WriteString(w, "event\n")
			w.(http.Flusher).Flush()
		}
		_, _ = fmt.Fprint(w, http.NewResponseController(w).Flush(), r.Proto)
	}},
	"sets deadlines": {serve: func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		_, _ = fmt.Fprint(w, c.SetReadDeadline(time.Now().Add(time.Hour)), c.SetWriteDeadline(time.Now().Add(time.Hour)))
	}},
	"is cut by its write deadline": {serve: func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		_, _ = io.WriteString(w, "head")
		_ = c.Flush()
		_ = c.SetWriteDeadline(time.Now().Add(-time.Second))
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	}},
	"answers before it reads": {serve: func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		duplex := c.EnableFullDuplex()
		_, _ = io.WriteString(w, "head ")
		_ = c.Flush()
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, duplex, n, err)
	}, body: strings.Repeat("x", 1<<20)},
	"is told to go on": {serve: func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) },
		body: "expected", headers: []string{"Expect", "100-continue"}},
	"gives hints": {serve: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "hinted")
	}},
	"sends trailers": {serve: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "2")
	}},
	"gets trailers": {serve: func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, err, r.Trailer)
	}, body: "body", chunked: true, trailer: http.Header{"X-Announced": {"1"}}},
	"panics": {serve: func(http.ResponseWriter, *http.Request) { panic("boom") }},
	"panics half-way": {serve: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "head")
		_ = http.NewResponseController(w).Flush()
		panic(errRefused)
	}},
	"aborts": {serve: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "head")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}},
	"has faces": {serve: func(w http.ResponseWriter, _ *http.Request) {
		_, readerFrom := w.(io.ReaderFrom) // by which a file goes out without a copy
		_, stringWriter := w.(io.StringWriter)
		_, flusher := w.(http.Flusher)
		_, hijacker := w.(http.Hijacker)
		_, pusher := w.(http.Pusher)
		_, _ = fmt.Fprintf(w, "%T %v %v %v %v %v", w, readerFrom, stringWriter, flusher, hijacker, pusher)
	}},
	"serves a file": {method: http.MethodGet, headers: []string{"Range", "bytes=5-8"}, serve: func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x.txt", time.Unix(1e9, 0), strings.NewReader("0123456789"))
	}},
	"hijacks": {serve: func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_, _ = io.WriteString(w, err.Error()) // of HTTP/2
			return
		}
		_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nhijacked")
		_ = rw.Flush()
		_ = conn.Close()
	}},
	"takes too much": {serve: func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 10)
		_, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, err)
	}, body: strings.Repeat("x", 1000)},
	"leaves its body": {serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }, body: strings.Repeat("x", 1<<17)},
}

var streamID = regexp.MustCompile(`stream ID \d+`)

// seen is all that the client sees of one answer.
func (b behaviour) seen(t *testing.T, base *http.Transport, target string) string {
	t.Helper()
	var body io.Reader
	switch {
	case b.chunked:
		body = io.MultiReader(strings.NewReader(b.body)) // of unknown length
	case b.body != "":
		body = strings.NewReader(b.body)
	}
	method := b.method
	if method == "" {
		method = http.MethodPost
	}
	r := request(t, method, target, body)
	for i := 0; i < len(b.headers); i += 2 {
		r.Header.Set(b.headers[i], b.headers[i+1])
	}
	r.Trailer = b.trailer
	var hints atomic.Int32
	r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error { hints.Add(1); return nil },
	}))
	a, err := base.RoundTrip(r)
	if err != nil {
		return streamID.ReplaceAllString(err.Error(), "")
	}
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	a.Header.Del("Date")
	if strings.Contains(fmt.Sprint(err), "write: ") {
		err = errors.New("cut") // with the ports
	}
	return streamID.ReplaceAllString(fmt.Sprintln(a.Proto, a.Status, a.Header, a.ContentLength, a.TransferEncoding, a.Close,
		string(data), err, a.Trailer, hints.Load()), "")
}

// A client cannot tell a server with a Handler from one without, whatever the next handler
// does, also where that gets a copy of the request.
func TestHandlerCannotBeSeen(t *testing.T) {
	silence(t)
	l := fixed(t, 10, 0)
	option := httpmw.HandlerLimiter(l)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		behaviours[strings.ReplaceAll(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], "_", " ")].serve(w, r)
	})
	mux := http.NewServeMux()
	mux.Handle("/bare/", next)
	mux.Handle("/limited/", limited(t, next, option))
	mux.Handle("/copied/", limited(t, next, option, httpmw.AcceptReports(), httpmw.DeadlineFromHeader(time.Minute)))
	protocols(t, mux, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		for name, b := range behaviours {
			path := "/" + strings.ReplaceAll(name, " ", "_")
			want := b.seen(t, base, server.URL+"/bare"+path)
			for _, with := range []string{"/limited", "/copied"} {
				if got := b.seen(t, base, server.URL+with+path); got != want {
					t.Errorf("a handler that %s under %s:\n%q, want\n%q", name, with, got, want)
				}
			}
		}
		settle(t, l)
	})
}
