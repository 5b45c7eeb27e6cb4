package httpmw_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

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
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
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
	const upgrade = "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

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
