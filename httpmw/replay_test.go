package httpmw_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// Field case B41: each attempt sends the same bytes, from a body of its own, and
// every body is closed once.
func TestRequestBodies(t *testing.T) {
	content := bytes.Repeat([]byte("holdfast"), 1<<20) // longer than any buffer below
	type arrival struct {
		sum      [sha256.Size]byte
		length   int64
		encoding []string
	}
	arrivals := make(chan arrival, 10)
	var both sync.WaitGroup // of the attempts of one call
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		_, _ = io.Copy(h, r.Body)
		arrivals <- arrival{[sha256.Size]byte(h.Sum(nil)), r.ContentLength, r.TransferEncoding}
		both.Done()
		both.Wait() // nobody answers before all have arrived whole
		_, _ = io.WriteString(w, "stored")
	})
	protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		put := func(body io.ReadCloser, reopen func() (io.ReadCloser, error), length int64) *http.Request {
			r := request(t, http.MethodPut, server.URL, nil)
			r.Body, r.GetBody, r.ContentLength = body, reopen, length
			r.Header.Set("Idempotency-Key", "1")
			return r
		}
		run := func(t *testing.T, r *http.Request, attempts int, want arrival) {
			t.Helper()
			l := fixed(t, 2, 0)
			tr := transport(t, base, httpmw.WithHedger(hedged(t, l, ms, hedgedlimit.Drain(10*time.Second))))
			both.Add(attempts)
			answer, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, answer); got != "stored" {
				t.Errorf("answer %q", got)
			}
			settle(t, l)
			for range attempts {
				if got := <-arrivals; !reflect.DeepEqual(got, want) {
					t.Errorf("arrived: %x, %d bytes, encoding %v, want %x, %d, %v",
						got.sum[:4], got.length, got.encoding, want.sum[:4], want.length, want.encoding)
				}
			}
		}
		whole := arrival{sha256.Sum256(content), int64(len(content)), nil}
		t.Run("replayed", func(t *testing.T) {
			bodies := &readers{content: content}
			first, _ := bodies.open()
			run(t, put(first, bodies.open, int64(len(content))), 2, whole)
			bodies.check(t, 2)
		})
		for name, body := range map[string]io.Reader{
			"bytes.Reader": bytes.NewReader(content), "bytes.Buffer": bytes.NewBuffer(content), "strings.Reader": strings.NewReader(string(content)),
		} {
			t.Run(name, func(t *testing.T) {
				r := request(t, http.MethodPut, server.URL, body)
				r.Header.Set("Idempotency-Key", "1")
				run(t, r, 2, whole)
			})
		}
		t.Run("GetBody fails", func(t *testing.T) {
			bodies := &readers{content: content}
			first, _ := bodies.open()
			failing := func() (io.ReadCloser, error) { return nil, errRefused }
			run(t, put(first, failing, int64(len(content))), 1, whole)
			bodies.check(t, 1)
		})
		t.Run("no GetBody", func(t *testing.T) {
			r, w := io.Pipe()
			go func() { _, _ = w.Write(content); _ = w.Close() }()
			want := whole
			want.length = -1
			if base.ForceAttemptHTTP2 && server.EnableHTTP2 {
				want.encoding = nil
			} else {
				want.encoding = []string{"chunked"}
			}
			run(t, put(r, nil, -1), 1, want)
		})
		t.Run("file", func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "body")
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			run(t, put(f, nil, int64(len(content))), 1, whole)
			if _, err := f.Stat(); err == nil {
				t.Error("the file is still open")
			}
		})
		nothing := arrival{sha256.Sum256(nil), 0, nil}
		for _, body := range []io.ReadCloser{nil, http.NoBody} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				t.Run(fmt.Sprint(method, " ", body), func(t *testing.T) {
					r := put(body, nil, 0)
					r.Method = method
					run(t, r, 2, nothing)
				})
			}
		}
	})
}

// readers are request bodies over the same bytes that count how they are closed.
type readers struct {
	handles
	content []byte
}

func (r *readers) open() (io.ReadCloser, error) {
	h, err := r.handles.open()
	return struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(r.content), h}, err
}

func (r *readers) check(t *testing.T, opened int) {
	t.Helper()
	r.handles.check(t)
	if len(r.closed) != opened {
		t.Errorf("%d bodies were opened, want %d", len(r.closed), opened)
	}
}

// A body that the base opens once more, to repeat a request on another connection,
// is work of the same attempt.
func TestBaseReopensBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 0)
		var again io.ReadCloser
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			_ = r.Body.Close()
			again, _ = r.GetBody()
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
		bodies := &handles{}
		r := request(t, http.MethodPost, "http://host.test/", nil)
		r.GetBody = bodies.open
		r.Body, _ = bodies.open()
		if _, err := tr.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if l.InFlight() != 1 {
			t.Errorf("in flight while the second body is open: %d, want 1", l.InFlight())
		}
		_ = again.Close()
		synctest.Wait()
		bodies.check(t)
		probe(t, l)
	})
}

// Over HTTP/2 net/http forgets a body that it has replaced before it has read of it. It is
// closed when it is all that is left of the attempt, and not before; any other body that
// is open goes on holding the permit.
func TestForgottenBodyIsClosed(t *testing.T) {
	for name, row := range map[string]struct {
		reads, closes bool // the base reads of the first body, closes the last one
		held          int  // in flight when the answer has ended
	}{
		"forgotten":     {reads: false, closes: true, held: 0},
		"read of":       {reads: true, closes: true, held: 1},
		"the last open": {reads: false, closes: false, held: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, 0)
				var first, last io.ReadCloser
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					first = r.Body
					last, _ = r.GetBody()
					if row.reads {
						_, _ = first.Read(make([]byte, 1))
					}
					if row.closes {
						_ = last.Close()
					}
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("answer"))}, nil
				})
				tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				bodies := &readers{content: []byte("content")}
				r := request(t, http.MethodPost, "http://host.test/", nil)
				r.GetBody = bodies.open
				r.Body, _ = bodies.open()
				answer, err := tr.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if l.InFlight() != 1 || bodies.closed[0] != 0 {
					t.Errorf("while the answer is read: in flight %d, want 1; closed %v", l.InFlight(), bodies.closed)
				}
				read(t, answer)
				synctest.Wait()
				if l.InFlight() != row.held {
					t.Errorf("in flight when it has ended: %d, want %d", l.InFlight(), row.held)
				}
				_ = last.Close()
				_ = first.Close()
				synctest.Wait()
				bodies.check(t, 2)
				probe(t, l)
			})
		})
	}
}

// Who has returned an error sends nothing more: a body of which it has not read is closed,
// the last one too, and one that it has begun to read goes on holding the permit.
func TestUnreadBodyIsClosedAfterAnError(t *testing.T) {
	for name, row := range map[string]struct {
		reads bool // the base reads of the last body
		held  int  // in flight when the error was returned
	}{
		"unread":  {false, 0},
		"read of": {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, 0)
				var last io.ReadCloser
				base := roundTripper(func(r *http.Request) (*http.Response, error) { // as net/http after two streams that were refused
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
					last, _ = r.GetBody()
					if row.reads {
						_, _ = last.Read(make([]byte, 1))
					}
					<-r.Context().Done() // while it waits before it tries again
					return nil, r.Context().Err()
				})
				tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				bodies := &readers{content: []byte("content")}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r := request(t, http.MethodPost, "http://host.test/", nil).WithContext(ctx)
				r.GetBody = bodies.open
				r.Body, _ = bodies.open()
				if _, err := tr.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				synctest.Wait()
				if l.InFlight() != row.held {
					t.Errorf("in flight after the error: %d, want %d", l.InFlight(), row.held)
				}
				_ = last.Close()
				synctest.Wait()
				bodies.check(t, 2)
				probe(t, l)
			})
		})
	}
}

// A body that GetBody hands out after the call has returned is closed, and none of
// its bytes are read: they are the caller's again.
func TestBodyThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 0)
		f := &fake{scripts: []script{{headers: 20 * ms, body: "primary"}}}
		tr := transport(t, f, httpmw.WithHedger(hedged(t, l, 10*ms, hedgedlimit.Cancel())))
		bodies := &handles{}
		r := get(t.Context(), t)
		r.GetBody = func() (io.ReadCloser, error) {
			time.Sleep(20 * ms)
			return bodies.open()
		}
		r.Body, _ = bodies.open()
		start := time.Now()
		answer, err := tr.RoundTrip(r)
		if err != nil || time.Since(start) != 20*ms {
			t.Fatalf("response %v, error %v, after %v", answer, err, time.Since(start))
		}
		read(t, answer)
		time.Sleep(time.Second)
		synctest.Wait()
		if f.sent() != 1 || len(bodies.closed) != 2 {
			t.Errorf("%d attempts sent, %d bodies opened, want 1 and 2", f.sent(), len(bodies.closed))
		}
		bodies.check(t)
		probe(t, l)
	})
}

// A hedge that comes to look at the request only when the call has returned lets
// it be, since it is the caller's again, and sends nothing.
func TestRequestIsReadInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 0)
		f := &fake{scripts: []script{{headers: 20 * ms}}}
		tr := transport(t, f, httpmw.WithHedger(hedged(t, l, 10*ms, hedgedlimit.Cancel())))
		slow := &slowContext{Context: t.Context(), delay: 20 * ms}
		r := get(slow, t)
		if _, err := tr.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		r.Header, r.URL = nil, nil // the race detector sees who reads them
		time.Sleep(time.Second)
		synctest.Wait()
		if slow.asked.Load() != 1 || f.sent() != 1 {
			t.Errorf("%d hedges began and %d attempts were sent, want 1 and 1", slow.asked.Load(), f.sent())
		}
		probe(t, l)
	})
}

// slowContext takes its time when it is asked for a client trace, which is the
// first thing that hedges do.
type slowContext struct {
	context.Context
	delay time.Duration
	asked atomic.Int32
}

func (c *slowContext) Value(key any) any {
	if fmt.Sprintf("%T", key) == "httptrace.clientEventContextKey" {
		c.asked.Add(1)
		time.Sleep(c.delay)
	}
	return c.Context.Value(key)
}
