package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// Field case B02: the permit covers the body, not just the headers.
func TestPermitCoversBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, limiter.Unbounded)
		f := &fake{scripts: []script{{headers: 10 * time.Millisecond, body: "first", bodyTime: 190 * time.Millisecond}, {body: "second"}}}
		tr := transport(t, f, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
		start := time.Now()
		first, err := tr.RoundTrip(get(t.Context(), t))
		if err != nil {
			t.Fatal(err)
		}
		go read(t, first)

		time.Sleep(40 * time.Millisecond)
		if p, ok := l.TryAcquire(limiter.Primary); ok {
			t.Errorf("%v: a second permit, %+v, while the first body streams", time.Since(start), p)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second, err := tr.RoundTrip(get(ctx, t))
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 200*time.Millisecond {
			t.Errorf("the second request was sent after %v, want 200ms", got)
		}
		read(t, second)
		synctest.Wait()
		probe(t, l)
		if f.peak != 1 {
			t.Errorf("%d attempts ran at once under a limit of 1", f.peak)
		}
	})
}

// Field case B09: a body ends in several ways, and each of them ends it once.
func TestBodyEnds(t *testing.T) {
	errClose := errors.New("close failed")
	base := script{body: "bytes", closeErr: errClose}
	with := func(change func(*script)) script {
		s := base
		change(&s)
		return s
	}
	closing := func(t *testing.T, r *http.Response) {
		t.Helper()
		if err := r.Body.Close(); err != errClose { //nolint:errorlint // unchanged is what is asked
			t.Errorf("Close returned %v, want the error of the body inside", err)
		}
	}
	reading := func(t *testing.T, r *http.Response, wantErr error) {
		t.Helper()
		var data []byte
		var err error
		for err == nil {
			p := make([]byte, 3)
			var n int
			n, err = r.Body.Read(p)
			data = append(data, p[:n]...)
		}
		if string(data) != "bytes" || err != wantErr { //nolint:errorlint // as above
			t.Errorf("read %q and %v, want %q and %v", data, err, "bytes", wantErr)
		}
	}
	for name, row := range map[string]struct {
		script script
		end    func(t *testing.T, r *http.Response) // up to the first terminal event
		more   func(t *testing.T, r *http.Response)
		closes int
	}{
		"EOF, no Close": {base, func(t *testing.T, r *http.Response) { reading(t, r, io.EOF) }, nil, 0},
		"EOF, Close":    {base, func(t *testing.T, r *http.Response) { reading(t, r, io.EOF) }, closing, 1},
		"Close unread":  {base, closing, nil, 1},
		"Close twice":   {base, closing, closing, 2},
		"Close during Read": {with(func(s *script) { s.bodyTime = time.Hour }), func(t *testing.T, r *http.Response) {
			go func() { _, _ = io.Copy(io.Discard, r.Body) }()
			synctest.Wait()
			closing(t, r)
		}, nil, 1},
		"unexpected EOF": {with(func(s *script) { s.bodyErr = io.ErrUnexpectedEOF }), func(t *testing.T, r *http.Response) {
			reading(t, r, io.ErrUnexpectedEOF)
		}, closing, 1},
		"bytes with EOF": {with(func(s *script) { s.eofAtOnce = true }), func(t *testing.T, r *http.Response) {
			p := make([]byte, 10)
			if n, err := r.Body.Read(p); n != 5 || err != io.EOF { //nolint:errorlint // as above
				t.Errorf("Read returned %d and %v, want 5 and EOF", n, err)
			}
		}, closing, 1},
		"io.Copy": {base, func(t *testing.T, r *http.Response) {
			if n, err := io.Copy(&strings.Builder{}, r.Body); n != 5 || err != nil {
				t.Errorf("Copy returned %d and %v, want 5 and nil", n, err)
			}
		}, closing, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, 0)
				f := &fake{scripts: []script{row.script}}
				tr := transport(t, f, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				ctx := f.context(t, tr)
				r := ctx.response
				if l.InFlight() != 1 {
					t.Fatalf("in flight with an open body: %d, want 1", l.InFlight())
				}
				select {
				case <-ctx.attempt.Done():
					t.Error("the attempt's context has ended before the body")
				default:
				}
				row.end(t, r)
				synctest.Wait()
				if l.InFlight() != 0 {
					t.Errorf("in flight after the body's end: %d, want 0", l.InFlight())
				}
				if ctx.attempt.Err() == nil {
					t.Error("the attempt's context lives on after the body's end")
				}
				if row.more != nil {
					row.more(t, r)
				}
				if f.closes != row.closes {
					t.Errorf("the body inside was closed %d times, want %d", f.closes, row.closes)
				}
				if n := released(l); n != 1 {
					t.Errorf("%d releases, want 1", n)
				}
				probe(t, l)
				synctest.Wait()
			})
		})
	}
}

// delivered is a response with the context that its attempt ran under.
type delivered struct {
	response *http.Response
	attempt  context.Context
}

func (f *fake) context(t *testing.T, tr http.RoundTripper) delivered {
	t.Helper()
	r, err := tr.RoundTrip(get(t.Context(), t))
	if err != nil {
		t.Fatal(err)
	}
	return delivered{r, f.request(0).Context()}
}

func released(l *limiter.Limiter) (n uint64) {
	for _, c := range l.Stats().Ledger.Released {
		n += c
	}
	return n
}

// An answer without a body releases its permit at once, closed or not. Its status is no
// proof that there is none: a stream of HTTP/2 stays open after a 204 too.
func TestBodiless(t *testing.T) {
	for name, row := range map[string]struct {
		method string
		script script
		open   int // permits out until Close
	}{
		"HEAD":              {http.MethodHead, script{body: "never read"}, 0},
		"204 with a stream": {http.MethodGet, script{status: 204, bodyTime: time.Hour}, 1},
		"304 with a stream": {http.MethodGet, script{status: 304, bodyTime: time.Hour}, 1},
		"204":               {http.MethodGet, script{status: 204}, 0},
		"NoBody":            {http.MethodGet, script{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, 0)
				f := &fake{scripts: []script{row.script}}
				tr := transport(t, f, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				req := get(t.Context(), t)
				req.Method = row.method
				r, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if n := l.InFlight(); n != row.open {
					t.Errorf("in flight before Close: %d, want %d", n, row.open)
				}
				if row.script == (script{}) && r.Body != http.NoBody {
					t.Errorf("the body is a %T, want http.NoBody", r.Body)
				}
				if err := r.Body.Close(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				probe(t, l)
			})
		})
	}
}

// lateTrailers is a body that writes trailers which nobody has announced into its response
// when it ends, as net/http does, be it by an error: a body of gzip may be cut though all
// of the message has come.
type lateTrailers struct {
	io.Reader
	response *http.Response
	end      error
}

func (b *lateTrailers) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		b.response.Trailer, err = http.Header{"X-Late": {"1"}}, b.end
	}
	return n, err
}

func (b *lateTrailers) Close() error { return nil }

// Trailers that were not announced are there when the body has ended, however it has, and
// whoever has read it.
func TestTrailersComeWithTheEnd(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		from   httpmw.AnswerPoint
		body   string
	}{
		"read by the caller":     {200, httpmw.Headers, "long"},
		"begun for FirstByte":    {200, httpmw.FirstByte, strings.Repeat("long", 1000)},
		"ended for FirstByte":    {200, httpmw.FirstByte, ""},
		"a failure that is kept": {503, httpmw.Headers, "busy"},
	} {
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
			t.Run(fmt.Sprint(name, ", ", end), func(t *testing.T) {
				base := roundTripper(func(*http.Request) (*http.Response, error) {
					r := &http.Response{StatusCode: row.status, Header: http.Header{"Retry-After": {"60"}}, ContentLength: -1}
					r.Body = &lateTrailers{strings.NewReader(row.body), r, end}
					return r, nil
				})
				r := get(t.Context(), t)
				l := fixed(t, 1, 0)
				answer, err := transport(t, base, configured(t, l, time.Hour, nil), httpmw.DelayFrom(row.from)).RoundTrip(r)
				if row.from == httpmw.FirstByte && row.body == "" && end != io.EOF { //nolint:errorlint // of the table
					if err == nil {
						t.Error("an attempt whose body failed at once has answered")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, answer.Body); err == nil != (end == io.EOF) || answer.Trailer.Get("X-Late") != "1" { //nolint:errorlint // as above
					t.Errorf("trailer %v after %v", answer.Trailer, err)
				}
				settle(t, l)
			})
		}
	}
}

// A base may hand out one response to all: it is read and never written to, and what is
// shown to the callers does not grow from call to call.
func TestResponseOfTheBaseStaysAsItIs(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		length int64
		body   io.ReadCloser
	}{
		"no body":                     {200, 0, http.NoBody},
		"a body":                      {200, -1, io.NopCloser(strings.NewReader(""))},
		"a failure":                   {503, -1, io.NopCloser(strings.NewReader(""))},
		"a failure that is too long":  {503, 1 << 20, io.NopCloser(strings.NewReader(""))},
		"a failure without any bytes": {503, 0, http.NoBody},
	} {
		t.Run(name, func(t *testing.T) {
			own := get(t.Context(), t)
			shared := &http.Response{StatusCode: row.status, Header: http.Header{}, ContentLength: row.length, Body: row.body, Request: own}
			before := *shared
			l := fixed(t, 8, 0)
			tr := transport(t, roundTripper(func(*http.Request) (*http.Response, error) { return shared, nil }),
				configured(t, l, time.Hour, nil), httpmw.DelayFrom(httpmw.FirstByte))
			var calls sync.WaitGroup
			for range 4 {
				r := get(t.Context(), t)
				calls.Go(func() {
					answer, err := tr.RoundTrip(r)
					if err != nil {
						t.Error(err)
						return
					}
					_ = answer.Body.Close()
				})
			}
			calls.Wait()
			settle(t, l)
			if !reflect.DeepEqual(*shared, before) {
				t.Errorf("the response of the base is %+v, was %+v", *shared, before)
			}
		})
	}
}

// A tunnel does not offer to close its writing half if what is inside cannot.
func TestTunnelOffersWhatItCan(t *testing.T) {
	l := fixed(t, 1, 0)
	tr := transport(t, &fake{scripts: []script{{status: 101, body: "tunnel", writable: true}}}, configured(t, l, time.Hour, nil))
	r, err := tr.RoundTrip(get(t.Context(), t))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Body.(io.ReadWriteCloser); !ok {
		t.Errorf("the body is a %T", r.Body)
	}
	if _, ok := r.Body.(interface{ CloseWrite() error }); ok {
		t.Errorf("a %T has a CloseWrite", r.Body)
	}
	_ = r.Body.Close()
	settle(t, l)
}

// A nil body of an answer, as careless test doubles return it, stays nil.
func TestNilResponseBody(t *testing.T) {
	l := fixed(t, 1, 0)
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200}, nil
	})
	tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
	r, err := tr.RoundTrip(get(t.Context(), t))
	if err != nil || r.Body != nil {
		t.Errorf("body %v, error %v, want neither", r.Body, err)
	}
	settle(t, l)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request body that the base reads on after it has answered keeps the permit.
func TestPermitCoversRequestBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 0)
		var body io.ReadCloser
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			body = r.Body
			return &http.Response{StatusCode: 413, Body: io.NopCloser(strings.NewReader("too long"))}, nil
		})
		tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
		req, err := http.NewRequest(http.MethodPut, "http://host.test/", strings.NewReader("long"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		read(t, r) // ends it by EOF
		for range 3 {
			_ = r.Body.Close() // and ends nothing else
		}
		synctest.Wait()
		if l.InFlight() != 1 {
			t.Errorf("in flight while the request body is open: %d, want 1", l.InFlight())
		}
		_ = body.Close()
		_ = body.Close()
		synctest.Wait()
		probe(t, l)
	})
}

// A response that is dropped unclosed keeps its permit, visibly, until the garbage
// collector has found it; then it is closed, and counted. So is a request body
// that the base forgot.
func TestLostBodies(t *testing.T) {
	l := fixed(t, 2, 0)
	f := &fake{scripts: []script{{body: "dropped"}}}
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut {
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		}
		answer, err := f.RoundTrip(r)
		f.requests[0] = nil // which would refer to the response's owner
		return answer, err
	})
	tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
	func() {
		put, err := http.NewRequest(http.MethodPut, "http://host.test/", strings.NewReader("forgotten"))
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range []*http.Request{get(t.Context(), t), put} {
			if _, err := tr.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
		}
	}()
	if s := tr.Stats(); s.Hosts[0].Limiter.Ledger.InFlight != 2 || s.Hosts[0].Limiter.Ledger.Limit != 2 || s.LostBodies != 0 {
		t.Fatalf("before the collection: %+v", s)
	}
	eventually(t, "both lost bodies are closed", func() bool {
		runtime.GC()
		return tr.Stats().LostBodies == 2 && l.InFlight() == 0
	})
	if n := f.get(&f.closes); n != 1 {
		t.Errorf("the response body was closed %d times, want 1", n)
	}
	probe(t, l)
}

// What finds a lost body is used for another one when its own has ended: a caller who
// keeps responses that have ended hides no lost one by that, and none that has ended is
// taken for lost.
func TestKeptResponsesHideNoLostBody(t *testing.T) {
	l := fixed(t, 1, 0)
	f := &fake{scripts: []script{{body: "body"}}}
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := f.RoundTrip(r)
		f.requests[len(f.requests)-1] = nil // which would refer to the response's owner
		return answer, err
	})
	tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
	var kept []*http.Response
	for range 20 { // a pool may have forgotten some
		r, err := tr.RoundTrip(get(t.Context(), t))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body) // it is in memory
		kept = append(kept, r)
	}
	func() {
		if _, err := tr.RoundTrip(get(t.Context(), t)); err != nil {
			t.Fatal(err)
		}
	}()
	eventually(t, "the lost body is closed", func() bool {
		runtime.GC()
		return tr.Stats().LostBodies > 0 && l.InFlight() == 0
	})
	kept[0].Body.Close()
	kept = nil
	for range 3 {
		runtime.GC()
	}
	if n := tr.Stats().LostBodies; n != 1 {
		t.Errorf("%d bodies are lost, want 1", n)
	}
	probe(t, l)
}
