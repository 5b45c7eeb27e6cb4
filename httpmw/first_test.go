package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// slowStart is a server that has headers at once, and its body later.
type slowStart struct {
	status  int
	headers time.Duration
	first   time.Duration // from the headers to the first byte
	body    string
	err     error // at the end of the body, in place of io.EOF
	panics  any
	empty   bool // each Read returns nothing, without an error
	length  int64
}

func (s slowStart) RoundTrip(r *http.Request) (*http.Response, error) {
	closeBody(r)
	if err := pause(r.Context(), s.headers, false); err != nil {
		return nil, err
	}
	answer := &http.Response{
		StatusCode: max(s.status, 101), Header: http.Header{}, Request: r, ContentLength: s.length, Uncompressed: true,
		Trailer: http.Header{"X-Sum": nil},
	}
	answer.Body = &slowBody{slowStart: s, ctx: r.Context(), rest: strings.NewReader(s.body), answer: answer}
	return answer, nil
}

type slowBody struct {
	slowStart
	ctx    context.Context
	rest   *strings.Reader
	answer *http.Response
	begun  bool
	closed atomic.Int32
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.closed.Load() > 0 {
		return 0, http.ErrBodyReadAfterClose
	}
	if !b.begun {
		b.begun = true
		if err := pause(b.ctx, b.first, false); err != nil {
			return 0, err
		}
	}
	if b.panics != nil {
		panic(b.panics)
	}
	if b.empty {
		return 0, nil
	}
	n, err := b.rest.Read(p[:min(len(p), 3)]) // in small pieces
	if err != nil {
		b.answer.Trailer.Set("X-Sum", "sum")
		if b.err != nil {
			err = b.err
		}
	}
	return n, err
}

func (b *slowBody) Write(p []byte) (int, error) { return len(p), nil }
func (b *slowBody) Close() error                { b.closed.Add(1); return nil }

// replicas sends the first attempt to the first of them, and so on; the last serves the
// others too. It notes the answers.
type replicas struct {
	servers []slowStart
	sent    atomic.Int32
	answers [8]*http.Response
	bodies  [8]*slowBody
}

func (r *replicas) RoundTrip(req *http.Request) (*http.Response, error) {
	n := int(r.sent.Add(1)) - 1
	answer, err := r.servers[min(n, len(r.servers)-1)].RoundTrip(req)
	if err == nil {
		r.answers[n], r.bodies[n] = answer, answer.Body.(*slowBody)
	}
	return answer, err
}

// With FirstByte, an attempt has answered when its body begins: who hedges, and who wins,
// goes by that. The answer is otherwise what it was.
func TestFirstByteDecides(t *testing.T) {
	primary := slowStart{status: 200, first: 200 * ms, body: "of the primary", length: 14}
	hedge := slowStart{status: 200, headers: 10 * ms, first: 20 * ms, body: "of the hedge", length: 12}
	at := func(first time.Duration, s slowStart) slowStart { s.first = first; return s }
	for name, row := range map[string]struct {
		from    httpmw.AnswerPoint
		servers []slowStart
		body    string
		after   time.Duration
		sent    int32
	}{
		"headers":             {httpmw.Headers, []slowStart{primary}, "of the primary", 0, 1},
		"the hedge begins":    {httpmw.FirstByte, []slowStart{primary, hedge}, "of the hedge", 80 * ms, 2},
		"the primary begins":  {httpmw.FirstByte, []slowStart{at(60*ms, primary), hedge}, "of the primary", 60 * ms, 2},
		"in time":             {httpmw.FirstByte, []slowStart{at(49*ms, primary)}, "of the primary", 49 * ms, 1},
		"an end is a byte":    {httpmw.FirstByte, []slowStart{primary, {status: 200, first: 10 * ms}}, "", 60 * ms, 2},
		"a failed status":     {httpmw.FirstByte, []slowStart{primary, {status: 503, body: "no"}}, "of the primary", 200 * ms, 2},
		"failed statuses":     {httpmw.FirstByte, []slowStart{{status: 503, first: 10 * ms, body: "no"}, {status: 503, first: 20 * ms, body: "never"}}, "never", 30 * ms, 2},
		"broken at once":      {httpmw.FirstByte, []slowStart{primary, {status: 200, err: io.ErrUnexpectedEOF}}, "of the primary", 200 * ms, 2},
		"broken before it":    {httpmw.FirstByte, []slowStart{{status: 200, first: 10 * ms, err: io.ErrUnexpectedEOF}, hedge}, "of the hedge", 40 * ms, 2},
		"no progress before":  {httpmw.FirstByte, []slowStart{{status: 200, empty: true}, hedge}, "of the hedge", 30 * ms, 2},
		"a tunnel does not":   {httpmw.FirstByte, []slowStart{at(10*ms, slowStart{status: 101, body: "hello"})}, "hello", 0, 1},
		"nor does no content": {httpmw.FirstByte, []slowStart{at(10*ms, slowStart{status: 204})}, "", 0, 1},
		"nor an old one":      {httpmw.FirstByte, []slowStart{at(10*ms, slowStart{status: 304})}, "", 0, 1},
		"a short one":         {httpmw.FirstByte, []slowStart{at(10*ms, slowStart{status: 200, body: "x"})}, "x", 10 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				base := &replicas{servers: row.servers}
				tr := transport(t, base, httpmw.DelayFrom(row.from), configured(t, l, 50*ms, nil))
				began := time.Now()
				r, err := tr.RoundTrip(get(t.Context(), t))
				if err != nil || time.Since(began) != row.after {
					t.Fatalf("error %v after %v, want %v", err, time.Since(began), row.after)
				}
				if !r.Uncompressed || r.ContentLength > 0 && int(r.ContentLength) != len(row.body) {
					t.Errorf("%+v", r)
				}
				if r.StatusCode == 204 || r.StatusCode == 304 {
					_ = r.Body.Close() // there is nothing to read
				} else if body := read(t, r); body != row.body || r.StatusCode == 200 && r.Trailer.Get("X-Sum") != "sum" {
					t.Errorf("%q, trailer %v, want %q", body, r.Trailer, row.body)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				probe(t, l)
				for i := range row.sent {
					if b := base.bodies[i]; b != nil && b.closed.Load() == 0 {
						t.Errorf("the body of attempt %d is open", i+1)
					}
				}
				if n := base.sent.Load(); n != row.sent {
					t.Errorf("%d attempts, want %d", n, row.sent)
				}
			})
		})
	}
}

// A request that is not sent again gets its answer at the headers if it cannot be
// repeated, since its sender may wait for them, and with the first byte otherwise; a body
// that breaks is the caller's to see.
func TestFirstByteOfWhatIsSentOnce(t *testing.T) {
	once := func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("once")) }
	again := func(r *http.Request) {
		once(r)
		r.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
	}
	for name, row := range map[string]struct {
		change func(*http.Request)
		after  time.Duration
	}{
		"not repeatable": {once, 0}, "repeatable": {again, 100 * ms}, "no body": {func(*http.Request) {}, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				base := &replicas{servers: []slowStart{{status: 200, first: 100 * ms, err: io.ErrUnexpectedEOF}}}
				tr := transport(t, base, httpmw.DelayFrom(httpmw.FirstByte), configured(t, l, 50*ms, nil))
				req := get(t.Context(), t)
				req.Method = http.MethodPost
				row.change(req)
				began := time.Now()
				r, err := tr.RoundTrip(req)
				if err != nil || time.Since(began) != row.after {
					t.Fatalf("error %v after %v, want %v", err, time.Since(began), row.after)
				}
				for range 2 {
					if n, err := r.Body.Read(make([]byte, 10)); n != 0 || err != io.ErrUnexpectedEOF { //nolint:errorlint // unchanged
						t.Errorf("read %d bytes, error %v", n, err)
					}
				}
				_ = r.Body.Close()
				synctest.Wait()
				probe(t, l)
			})
		})
	}
}

// Both attempts break before their first byte: the call has failed with their errors.
func TestBodiesThatNeverBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 0)
		base := &replicas{servers: []slowStart{{status: 200, err: io.ErrUnexpectedEOF}, {status: 200, err: errRefused}}}
		r, err := transport(t, base, httpmw.DelayFrom(httpmw.FirstByte), configured(t, l, 50*ms, nil)).RoundTrip(get(t.Context(), t))
		if r != nil || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, errRefused) {
			t.Errorf("response %v, error %v", r, err)
		}
		synctest.Wait()
		probe(t, l)
		if base.bodies[0].closed.Load() != 1 || base.bodies[1].closed.Load() != 1 {
			t.Error("a body that broke was not closed once")
		}
	})
}

// A body may be closed before and after its first bytes were taken, as before; a permit
// is held until then, unless the end was seen with the first bytes.
func TestBodyBehindItsFirstByteEnds(t *testing.T) {
	for name, end := range map[string]func(*testing.T, io.ReadCloser){
		"closed unread": func(*testing.T, io.ReadCloser) {},
		"closed half-read": func(t *testing.T, b io.ReadCloser) {
			for _, want := range []string{"o", "f"} { // a piece at a time
				p := make([]byte, 1)
				if n, err := b.Read(p); n != 1 || err != nil || string(p) != want {
					t.Errorf("read %q, %v, want %q", p[:n], err, want)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				base := &replicas{servers: []slowStart{{status: 200, body: "of the primary"}}}
				r, err := transport(t, base, httpmw.DelayFrom(httpmw.FirstByte), configured(t, l, 50*ms, nil)).RoundTrip(get(t.Context(), t))
				if err != nil {
					t.Fatal(err)
				}
				end(t, r.Body)
				synctest.Wait()
				if l.InFlight() != 1 {
					t.Errorf("in flight while the body is open: %d", l.InFlight())
				}
				_ = r.Body.Close()
				if n, err := r.Body.Read(make([]byte, 10)); n != 0 || err != http.ErrBodyReadAfterClose { //nolint:errorlint // unchanged
					t.Errorf("after Close: %d bytes, error %v", n, err)
				}
				synctest.Wait()
				probe(t, l)
			})
		})
	}
}

// A panic of the first Read reaches the caller, and the body is closed.
func TestFirstReadThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 0)
		base := &replicas{servers: []slowStart{{status: 200, panics: "boom"}}}
		tr := transport(t, base, httpmw.DelayFrom(httpmw.FirstByte),
			configured(t, l, 50*ms, func(c *hedgedlimit.Config) { c.OnPanic = func(any, []byte) {} }))
		func() {
			defer func() {
				if v := recover(); v != "boom" {
					t.Errorf("recovered %v", v)
				}
			}()
			_, _ = tr.RoundTrip(get(t.Context(), t))
		}()
		synctest.Wait()
		probe(t, l)
		if base.bodies[0].closed.Load() != 1 {
			t.Error("the body is open")
		}
	})
}

// The latency that the delay learns ends where answers do.
func TestDelayIsLearntFromTheFirstByte(t *testing.T) {
	for from, want := range map[httpmw.AnswerPoint]time.Duration{httpmw.Headers: 10 * ms, httpmw.FirstByte: 50 * ms} {
		synctest.Test(t, func(t *testing.T) {
			l := fixed(t, 2, 0)
			base := roundTripper(slowStart{status: 200, headers: 10 * ms, first: 40 * ms, body: "text"}.RoundTrip)
			tr := transport(t, base, httpmw.DelayFrom(from), configured(t, l, 0, func(c *hedgedlimit.Config) {
				c.Delay = hedgedlimit.Quantile(hedgedlimit.QuantileConfig{MinSamples: 20})
				c.MaxAttempts = 1
			}))
			for range 30 {
				r, err := tr.RoundTrip(get(t.Context(), t))
				if err != nil || read(t, r) != "text" {
					t.Fatal(err)
				}
			}
			if s := tr.Stats().Hosts[0].Hedging; !s.DelayKnown || s.Delay < want-2*ms || s.Delay > want+5*ms {
				t.Errorf("the delay is %v (%v), want %v", s.Delay, s.DelayKnown, want)
			}
		})
	}
}

// A server that flushes its headers and stalls, on real sockets: the hedge's bytes are
// delivered, all of them and no others, with its trailer.
func TestFirstByteOnSockets(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Attempt")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		n := r.Header.Get(httpmw.AttemptHeader)
		if n == "1" {
			<-r.Context().Done() // its connection is let go of, or its stream is reset
			return
		}
		for i := range 1000 {
			_, _ = fmt.Fprintf(w, "%s: line %d\n", n, i)
			if i == 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
		w.Header().Set("X-Attempt", n)
	})
	protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		l := fixed(t, 2, 0)
		tr := transport(t, base, httpmw.WithAttemptHeader(), httpmw.DelayFrom(httpmw.FirstByte), configured(t, l, ms, nil))
		var want strings.Builder
		for i := range 1000 {
			_, _ = fmt.Fprintf(&want, "2: line %d\n", i)
		}
		for range 5 {
			r, err := (&http.Client{Transport: tr}).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			if body := read(t, r); body != want.String() || r.Trailer.Get("X-Attempt") != "2" {
				t.Errorf("%d bytes, trailer %v, want %d bytes", len(body), r.Trailer, want.Len())
			}
			settle(t, l)
		}
	})
}
