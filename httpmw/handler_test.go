package httpmw_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// limited makes a Handler in front of next.
func limited(t tb, next http.HandlerFunc, opts ...httpmw.HandlerOption) *httpmw.Handler {
	t.Helper()
	h, err := httpmw.NewHandler(next, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// under is the option of a limiter of n without surprises; see fixed.
func under(t tb, n, waiting int) (*limiter.Limiter, httpmw.HandlerOption) {
	t.Helper()
	l := fixed(t, n, waiting)
	return l, httpmw.HandlerLimiter(l)
}

// incoming is a request as a server sees it, with headers in pairs.
func incoming(ctx context.Context, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/path", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// statusOf has h serve r and returns the status.
func statusOf(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func nothing(http.ResponseWriter, *http.Request) {}

func unreached(t *testing.T) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) {
		t.Error("a request was served that should have been refused")
	}
}

// Options that make no sense are named, with their value.
func TestHandlerOptionsAreChecked(t *testing.T) {
	for want, opts := range map[string][]httpmw.HandlerOption{
		"httpmw: option 1 is nil":                       {httpmw.AcceptReports(), nil},
		"httpmw: HandlerLimiter: the limiter is nil":    {httpmw.HandlerLimiter(nil)},
		"httpmw: MaxExtra -0.1 is not from 0 to 1":      {httpmw.MaxExtra(-0.1)},
		"httpmw: MaxExtra 1.1 is not from 0 to 1":       {httpmw.MaxExtra(1.1)},
		"httpmw: MaxExtra NaN is not from 0 to 1":       {httpmw.MaxExtra(math.NaN())},
		"httpmw: RetryAfter 0s is not above 0":          {httpmw.RetryAfter(0)},
		"httpmw: Exempt: the function is nil":           {httpmw.Exempt(nil)},
		"httpmw: DeadlineFromHeader 0s is not above 0":  {httpmw.DeadlineFromHeader(0)},
		"httpmw: DeadlineFromHeader -1s is not above 0": {httpmw.DeadlineFromHeader(-time.Second)},
	} {
		h, err := httpmw.NewHandler(http.NotFoundHandler(), opts...)
		if h != nil || err == nil || err.Error() != want {
			t.Errorf("%v, error %q, want %q", h, err, want)
		}
	}
	for _, next := range []http.Handler{nil, http.HandlerFunc(nil)} {
		if h, err := httpmw.NewHandler(next); h != nil || err == nil || !strings.Contains(err.Error(), "next Handler is nil") {
			t.Errorf("next %#v: %v, error %v", next, h, err)
		}
	}
}

// routes is a handler that works without having been made.
type routes map[string]http.Handler

func (m routes) ServeHTTP(http.ResponseWriter, *http.Request) { _ = m[""] }

// stateless is a handler of which nothing is needed but its type.
type stateless struct{}

func (*stateless) ServeHTTP(http.ResponseWriter, *http.Request) {}

// A value that is nil is a handler all the same if its methods do without it.
func TestNilThatWorksIsServed(t *testing.T) {
	for _, next := range []http.Handler{routes(nil), (*stateless)(nil)} {
		h, err := httpmw.NewHandler(next)
		if err != nil {
			t.Errorf("%T: %v", next, err)
			continue
		}
		if code := statusOf(h, incoming(t.Context())); code != http.StatusOK {
			t.Errorf("%T: status %d", next, code)
		}
	}
}

// The next handler gets what the server gave, so that no feature of either is lost.
func TestWriterAndRequestArePassedAsTheyAre(t *testing.T) {
	w, r := httptest.NewRecorder(), incoming(t.Context(), httpmw.TimeoutHeader, "1000")
	served := 0
	next := func(gotWriter http.ResponseWriter, got *http.Request) {
		served++
		if gotWriter != http.ResponseWriter(w) || got != r {
			t.Errorf("the handler got %p and %p, the server gave %p and %p", gotWriter, got, w, r)
		}
	}
	limited(t, next).ServeHTTP(w, r)
	limited(t, next, httpmw.Exempt(func(got *http.Request) bool { return got == r }), httpmw.AcceptReports()).ServeHTTP(w, r)
	// The writer at least, where the context must be another.
	for _, option := range []httpmw.HandlerOption{httpmw.AcceptReports(), httpmw.DeadlineFromHeader(time.Minute)} {
		var copied *http.Request
		limited(t, func(gotWriter http.ResponseWriter, got *http.Request) {
			served++
			copied = got
			if gotWriter != http.ResponseWriter(w) || got == r || got.URL != r.URL || got.Body != r.Body {
				t.Errorf("the handler got %p and %v", gotWriter, got)
			}
		}, option).ServeHTTP(w, r)
		// A deadline that was set for the handler has no timer left when it has returned.
		if _, ok := copied.Context().Deadline(); ok != (copied.Context().Err() != nil) {
			t.Errorf("a deadline: %v, and the context has ended with %v", ok, copied.Context().Err())
		}
	}
	// Others may read the request meanwhile, so nothing is written to it.
	chunked := incoming(t.Context())
	chunked.TransferEncoding = []string{"chunked"}
	before := chunked.Clone(t.Context())
	limited(t, func(http.ResponseWriter, *http.Request) {
		if !reflect.DeepEqual(chunked, before) {
			t.Errorf("the request is %+v, and was %+v", chunked, before)
		}
	}, httpmw.AcceptReports()).ServeHTTP(w, chunked)
	if served != 4 {
		t.Errorf("%d requests were served, want 4", served)
	}
}

// untouchable is a body that must be left to the server.
type untouchable struct{ t *testing.T }

func (b untouchable) Read([]byte) (int, error) { b.t.Error("the body was read"); return 0, io.EOF }
func (b untouchable) Close() error             { b.t.Error("the body was closed"); return nil }

// A refusal is a 503 with a short constant body and a Retry-After in whole seconds; HEAD
// gets the same headers. The request's body is left alone.
func TestRefusalIsShortAndConstant(t *testing.T) {
	const body = "overloaded, try again later\n"
	for method, wantBody := range map[string]string{http.MethodPost: body, http.MethodHead: ""} {
		for after, wantAfter := range map[time.Duration]string{
			0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90", math.MaxInt64: "9223372037",
		} {
			l, option := under(t, 1, 0)
			opts := []httpmw.HandlerOption{option}
			if after > 0 {
				opts = append(opts, httpmw.RetryAfter(after))
			}
			h := limited(t, unreached(t), opts...)
			held, _ := l.TryAcquire(limiter.Primary)
			w, r := httptest.NewRecorder(), incoming(t.Context())
			r.Method, r.Body = method, untouchable{t}
			h.ServeHTTP(w, r)
			for _, values := range w.Header() { // what others do to one refusal does not show in the next
				for i := range values {
					values[i] = "changed"
				}
			}
			w = httptest.NewRecorder()
			for _, key := range []string{"Cache-Control", "ETag", "Last-Modified", "Content-Encoding", "Retry-After"} {
				w.Header().Set(key, "of another answer")
			}
			h.ServeHTTP(w, r)
			want := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Content-Length": {"28"}, "Retry-After": {wantAfter}}
			if w.Code != http.StatusServiceUnavailable || w.Body.String() != wantBody || !reflect.DeepEqual(w.Header(), want) {
				t.Errorf("%s, RetryAfter %v: status %d, headers %v, body %q", method, after, w.Code, w.Header(), w.Body)
			}
			held.Release(permit.Ignored)
		}
	}
}

// Without options 20 requests run at first and 64 wait, each for 100 ms at most, and the
// newest is served first once the oldest has waited for 50 ms.
func TestDefaultQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, queue = 20, 64
		end := make(chan struct{})
		order := make(chan string, limit+queue)
		h := limited(t, func(_ http.ResponseWriter, r *http.Request) {
			order <- r.Header.Get("Name")
			<-end
		})
		statuses := make(chan int, limit+queue+1)
		begin := func(name string) {
			go func() { statuses <- statusOf(h, incoming(t.Context(), "Name", name)) }()
			synctest.Wait()
		}
		for range limit {
			begin("early")
		}
		begin("oldest")
		for range queue - 2 {
			begin("queued")
		}
		begin("newest")
		begin("one too many")
		if s := h.Stats(); s.Inside != limit+queue || s.Refused.Full != 1 || s.Limiter.Ledger.Waiting != queue {
			t.Errorf("%+v", s)
		}
		time.Sleep(60 * ms)
		end <- struct{}{}
		synctest.Wait()
		for range limit {
			<-order
		}
		if got := <-order; got != "newest" || len(order) > 0 {
			t.Errorf("after 60 ms the %s was served, and %d more", got, len(order))
		}
		time.Sleep(39 * ms)
		synctest.Wait()
		if n := h.Stats().Limiter.Ledger.Waiting; n != queue-1 {
			t.Errorf("%d wait after 99 ms, want %d", n, queue-1)
		}
		time.Sleep(ms)
		synctest.Wait()
		close(end)
		synctest.Wait()
		answered := make(map[int]int)
		for len(statuses) > 0 {
			answered[<-statuses]++
		}
		if want := map[int]int{200: limit + 1, 503: queue}; !reflect.DeepEqual(answered, want) {
			t.Errorf("answered %v, want %v", answered, want)
		}
		if s := h.Stats(); s.Inside != 0 || s.Refused.Full != queue {
			t.Errorf("%+v", s)
		}
	})
}

// An exempt request passes whatever the limit and Close say, teaches nothing, and may
// panic like any other.
func TestExemptNeedsNoPermit(t *testing.T) {
	l, option := under(t, 1, 0)
	inside := 0
	h := limited(t, func(_ http.ResponseWriter, r *http.Request) {
		inside++
		if r.Header.Get("Panic") != "" {
			panic("boom")
		}
	}, option, httpmw.Exempt(func(r *http.Request) bool { return r.Header.Get("Health") != "" }))
	held, _ := l.TryAcquire(limiter.Bypass)
	if code := statusOf(h, incoming(t.Context(), "Health", "1")); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	if code := statusOf(h, incoming(t.Context())); code != http.StatusServiceUnavailable {
		t.Errorf("status %d of a request that is not exempt", code)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v", v)
			}
		}()
		statusOf(h, incoming(t.Context(), "Health", "1", "Panic", "1"))
	}()
	held.Release(permit.Ignored)
	if s := h.Stats(); s.Exempt != 2 || s.Inside != 0 || s.Limiter.Ledger.Granted != 1 || inside != 2 {
		t.Errorf("%d were served: %+v", inside, s)
	}
}

// Close refuses who comes later, serves who came before, and waits for them; it leaves a
// limiter that was given alone.
func TestCloseWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, option := under(t, 1, 1)
		h := limited(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }, option)
		start := time.Now()
		statuses := make(chan int, 2)
		for range 2 { // the second waits for the first
			go func() { statuses <- statusOf(h, incoming(t.Context())) }()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		if err := h.Close(ctx); err != context.DeadlineExceeded || time.Since(start) != 500*ms { //nolint:errorlint // bare is what is asked
			t.Errorf("Close returned %v after %v", err, time.Since(start))
		}
		for range 3 {
			if code := statusOf(h, incoming(t.Context())); code != http.StatusServiceUnavailable {
				t.Errorf("status %d after Close", code)
			}
		}
		if err := h.Close(t.Context()); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("Close returned %v after %v", err, time.Since(start))
		}
		if n := l.InFlight(); n != 0 {
			t.Errorf("%d in flight after Close", n)
		}
		if a, b := <-statuses, <-statuses; a != http.StatusOK || b != http.StatusOK {
			t.Errorf("those that came before Close were answered %d and %d", a, b)
		}
		if got, want := h.Stats().Refused, (httpmw.Refusals{Closed: 3}); got != want {
			t.Errorf("refused %+v, want %+v", got, want)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Errorf("Close of a closed Handler: %v", err)
		}
		probe(t, l)
	})
}

// Field case B60: whoever is refused gets the same answer, and each cause has a count of
// its own.
func TestEachCauseOfARefusalIsCounted(t *testing.T) {
	extra := []string{httpmw.AttemptHeader, "2"}
	for name, row := range map[string]struct {
		headers []string
		closed  bool
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		want    httpmw.Refusals
		after   time.Duration
	}{
		"the wait took too long":       {want: httpmw.Refusals{Full: 1}, after: time.Minute},
		"a hedge finds no room":        {headers: extra, want: httpmw.Refusals{ExtraFull: 1}},
		"the client leaves":            {ctx: cancelled, want: httpmw.Refusals{Gone: 1}, after: time.Second},
		"a server's deadline passes":   {ctx: second, want: httpmw.Refusals{Expired: 1}, after: time.Second},
		"the client's deadline passes": {headers: []string{httpmw.TimeoutHeader, "20"}, want: httpmw.Refusals{Expired: 1}, after: 20 * ms},
		"no time is left":              {headers: []string{httpmw.TimeoutHeader, "0"}, want: httpmw.Refusals{Expired: 1}},
		"the limiter is closed":        {closed: true, want: httpmw.Refusals{Closed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				algorithm, err := gradient.NewFixed(1)
				if err != nil {
					t.Fatal(err)
				}
				l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: 1, MaxWait: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				h := limited(t, unreached(t), httpmw.HandlerLimiter(l), httpmw.DeadlineFromHeader(time.Hour))
				held, _ := l.TryAcquire(limiter.Primary)
				if row.closed {
					ended, cancel := context.WithCancel(t.Context())
					cancel()
					if err := l.Close(ended); !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
				}
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if row.ctx != nil {
					ctx, cancel = row.ctx(ctx)
				}
				defer cancel()
				start := time.Now()
				if code := statusOf(h, incoming(ctx, row.headers...)); code != http.StatusServiceUnavailable {
					t.Errorf("status %d", code)
				}
				if d := time.Since(start); d != row.after {
					t.Errorf("refused after %v, want %v", d, row.after)
				}
				if got := h.Stats().Refused; got != row.want {
					t.Errorf("%+v, want %+v", got, row.want)
				}
				if n := l.Stats().Ledger.Waiting; n != 0 {
					t.Errorf("%d wait still", n)
				}
				held.Release(permit.Ignored)
				if !row.closed {
					probe(t, l)
				}
			})
		})
	}
}

// plainWriter is a ResponseWriter that allocates nothing.
type plainWriter struct {
	header http.Header
	status int
}

func (w *plainWriter) Header() http.Header         { return w.header }
func (w *plainWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *plainWriter) WriteHeader(status int)      { w.status = status }

// The path of a refusal is what runs most when there is least to spare. A request that is
// served costs what another context costs, and nothing without one.
func TestHandlerAllocations(t *testing.T) {
	full := fixed(t, 1, 0)
	held, _ := full.TryAcquire(limiter.Primary)
	defer held.Release(permit.Ignored)
	for name, row := range map[string]struct {
		opts    []httpmw.HandlerOption
		headers []string
		status  int
		most    float64
	}{
		"served":             {},
		"hedge, served":      {headers: []string{httpmw.AttemptHeader, "2"}, opts: []httpmw.HandlerOption{httpmw.MaxExtra(1)}},
		"refused":            {opts: []httpmw.HandlerOption{httpmw.HandlerLimiter(full)}, status: 503, most: 1},
		"hedge, refused":     {headers: []string{httpmw.AttemptHeader, "2"}, opts: []httpmw.HandlerOption{httpmw.HandlerLimiter(full)}, status: 503, most: 1},
		"one hedge too many": {headers: []string{httpmw.AttemptHeader, "2"}, opts: []httpmw.HandlerOption{httpmw.MaxExtra(0)}, status: 503, most: 1},
		"with reports":       {opts: []httpmw.HandlerOption{httpmw.AcceptReports()}, most: 3},
	} {
		h := limited(t, nothing, row.opts...)
		r, w := incoming(t.Context(), row.headers...), &plainWriter{header: http.Header{}}
		if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > row.most || w.status != row.status {
			t.Errorf("%s: %v allocations, at most %v are allowed; status %d", name, n, row.most, w.status)
		}
	}
}
