package httpmw_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
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

// rawAnswer sends text over a connection of its own and reads one answer.
func rawAnswer(t *testing.T, server *httptest.Server, text string) (*http.Response, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, conn
}

// A client that waits to be told to go on, or sends a body without end, is refused before
// its body is read, and not told to send it.
func TestRefusalReadsNoBody(t *testing.T) {
	l, option := under(t, 1, 0)
	held, _ := l.TryAcquire(limiter.Bypass)
	defer held.Release(permit.Ignored)
	h := limited(t, unreached(t), option)
	plain := httptest.NewServer(h)
	defer plain.Close()
	for name, text := range map[string]string{
		"expects":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
		"is long":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nthe first words",
		"never ends": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
	} {
		a, conn := rawAnswer(t, plain, text)
		_ = conn.Close() // the server would wait for the rest
		if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" || !a.Close {
			t.Errorf("a body that %s: %s, %v, close %v", name, a.Status, a.Header, a.Close)
		}
	}
	protocols(t, h, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		told := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { told = true }})
		base.ExpectContinueTimeout = time.Minute
		r := request(t, http.MethodPost, server.URL, bytes.NewReader(make([]byte, 10<<20))).WithContext(ctx)
		r.Header.Set("Expect", "100-continue")
		a, err := base.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, a); a.StatusCode != http.StatusServiceUnavailable || got != "overloaded, try again later\n" || told {
			t.Errorf("%s, body %q, told to go on: %v", a.Status, got, told)
		}
	})
}

// A client that leaves while it waits gives its place back at once, and the next handler
// never hears of it.
func TestClientGoneWhileQueued(t *testing.T) {
	l, option := under(t, 1, 1)
	logged := make(chan int, 1)
	var gone uint64
	h := limited(t, unreached(t), option)
	outside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := httptest.NewRecorder()
		h.ServeHTTP(seen, r)
		logged <- seen.Code
	})
	protocols(t, outside, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		held, _ := l.TryAcquire(limiter.Bypass)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		left := make(chan struct{})
		r := request(t, http.MethodGet, server.URL, nil).WithContext(ctx)
		go func() {
			defer close(left)
			// The transport may let the answer win that the server gives in vain.
			if a, err := base.RoundTrip(r); err == nil {
				_ = a.Body.Close()
			}
		}()
		eventually(t, "the request waits", func() bool { return l.Stats().Ledger.Waiting == 1 })
		cancel()
		<-left
		gone++
		if code := <-logged; code != http.StatusServiceUnavailable || h.Stats().Refused != (httpmw.Refusals{Gone: gone}) {
			t.Errorf("status %d, %+v", code, h.Stats().Refused)
		}
		held.Release(permit.Ignored)
		settle(t, l)
	})
}

// A tunnel that is served inside the handler holds its permit as long as it lasts. One
// that the handler hands on is not counted after that.
func TestTunnelHoldsItsPermitInsideTheHandler(t *testing.T) {
	l, option := under(t, 1, 0)
	handedOn := make(chan net.Conn, 1)
	h := limited(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		if r.URL.Path == "/handed-on" {
			handedOn <- conn
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, rw)
	}, option)
	server := httptest.NewServer(h)
	defer server.Close()
	const upgrade = "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

	a, conn := rawAnswer(t, server, fmt.Sprintf(upgrade, "/inside"))
	if a.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(a.Status)
	}
	for range 3 {
		_, _ = io.WriteString(conn, "ping")
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		if refused, _ := rawAnswer(t, server, fmt.Sprintf(upgrade, "/inside")); refused.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("beside a tunnel: %s", refused.Status)
		}
	}
	_ = conn.Close()
	settle(t, l)

	a, conn = rawAnswer(t, server, fmt.Sprintf(upgrade, "/handed-on"))
	if a.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(a.Status)
	}
	settle(t, l)
	far := <-handedOn
	_, _ = io.WriteString(far, "ping")
	if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
		t.Errorf("a tunnel that was handed on: %v", err)
	}
	_ = far.Close()
	if got := l.Stats().Ledger.Released; got[permit.Ignored] != l.Stats().Ledger.Granted {
		t.Errorf("tunnels have taught something: %v", got)
	}
}

// Where the next handler gets a copy of the request, the server still removes the files of
// its form, trailers that nobody announced arrive, and middleware outside sees the
// pattern and the form.
func TestCopiedRequestLosesNothing(t *testing.T) {
	silence(t)
	files := t.TempDir()
	t.Setenv("TMPDIR", files)
	t.Setenv("TMP", files) // Windows
	l, option := under(t, 1, 0)
	inner := http.NewServeMux()
	inner.HandleFunc("POST /form/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		there, err := filepath.Glob(filepath.Join(files, "*"))
		if len(there) != 1 || err != nil {
			t.Errorf("files of the form: %v, error %v", there, err)
		}
		if r.URL.Query().Has("panic") {
			panic(http.ErrAbortHandler)
		}
	})
	inner.HandleFunc("POST /trailer", func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		if got := r.Trailer.Get("X-Sudden"); got != "1" || err != nil {
			t.Errorf("trailer %q, error %v", got, err)
		}
	})
	inner.HandleFunc("POST /plain", func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm() })
	h := limited(t, inner.ServeHTTP, option, httpmw.AcceptReports())
	seen := make(chan string, 1)
	outside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { seen <- fmt.Sprint(r.Pattern, " ", r.FormValue("a"), r.PostForm["a"], len(r.Trailer)) }()
		h.ServeHTTP(w, r)
	})
	var form bytes.Buffer
	fields := multipart.NewWriter(&form)
	_ = fields.WriteField("a", "1")
	file, err := fields.CreateFormFile("file", "name")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Write(bytes.Repeat([]byte("x"), 11<<20))
	if err := fields.Close(); err != nil {
		t.Fatal(err)
	}
	protocols(t, outside, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		send := func(path, kind, body string) error {
			r := request(t, http.MethodPost, server.URL+path, strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			a, err := base.RoundTrip(r)
			if err == nil {
				read(t, a)
			}
			return err
		}
		if err := send("/form/1", fields.FormDataContentType(), form.String()); err != nil {
			t.Fatal(err)
		}
		if got, want := <-seen, "POST /form/{id} 1[1] 0"; got != want {
			t.Errorf("outside: %q, want %q", got, want)
		}
		removed := func() bool {
			there, _ := os.ReadDir(files)
			return len(there) == 0
		}
		eventually(t, "the files are removed", removed)
		if server.EnableHTTP2 { // an HTTP/1 server leaves them there
			if err := send("/form/2?panic", fields.FormDataContentType(), form.String()); err == nil {
				t.Error("no error after a panic")
			}
			<-seen
			eventually(t, "the files are removed after a panic", removed)
		}
		if err := send("/plain", "application/x-www-form-urlencoded", "a=2"); err != nil {
			t.Fatal(err)
		}
		if got, want := <-seen, "POST /plain 2[2] 0"; got != want {
			t.Errorf("outside: %q, want %q", got, want)
		}
	})
	server := httptest.NewServer(outside)
	defer server.Close()
	a, _ := rawAnswer(t, server, "POST /trailer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sudden: 1\r\n\r\n")
	if a.StatusCode != http.StatusOK {
		t.Error(a.Status)
	}
	if got, want := <-seen, "POST /trailer [] 1"; got != want {
		t.Errorf("outside: %q, want %q", got, want)
	}
	settle(t, l)
}

// With more clients than permits, no more handlers run at once than the limit says, and
// whoever is not served has a 503.
func TestPeakOnSockets(t *testing.T) {
	const limit, clients, each = 4, 16, 20
	l, option := under(t, limit, 4)
	var running, peak atomic.Int64
	h := limited(t, func(w http.ResponseWriter, r *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := peak.Load(); old < n && !peak.CompareAndSwap(old, n); old = peak.Load() {
		}
		_, _ = io.Copy(w, r.Body)
	}, option)
	protocols(t, h, func(t *testing.T, server *httptest.Server, _ *http.Transport) {
		results := make(chan string, clients*each)
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range each {
					a, err := server.Client().Post(server.URL, "text/plain", strings.NewReader("echo"))
					if err != nil {
						t.Error(err)
						return
					}
					data, _ := io.ReadAll(a.Body)
					_ = a.Body.Close()
					results <- fmt.Sprint(a.StatusCode, " ", string(data))
				}
			})
		}
		all.Wait()
		close(results)
		counts := map[string]int{}
		for r := range results {
			counts[r]++
		}
		if counts["200 echo"]+counts["503 overloaded, try again later\n"] != clients*each || counts["200 echo"] == 0 {
			t.Errorf("answers: %v", counts)
		}
		if p := peak.Load(); p > limit {
			t.Errorf("%d ran at once, the limit is %d", p, limit)
		}
		settle(t, l)
	})
}
