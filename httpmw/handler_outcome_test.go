package httpmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// What the end of a request teaches the limit. Field case B65: however the next handler
// ends, one permit comes back, and a panic goes on with its value.
func TestOutcomeOfEachEnd(t *testing.T) {
	say := func(o permit.Outcome) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			if !httpmw.Report(r.Context(), o) {
				t.Errorf("the report of %v was not accepted", o)
			}
		}
	}
	until := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, row := range map[string]struct {
		next    http.HandlerFunc
		headers []string
		connect bool
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		want    permit.Outcome
		panics  any
	}{
		"returns":             {next: nothing, want: permit.Success},
		"the server's time":   {next: until, want: permit.Expired, ctx: second},
		"the client has gone": {next: until, want: permit.Canceled, ctx: cancelled},
		"the client's time":   {next: until, want: permit.Canceled, headers: []string{httpmw.TimeoutHeader, "1000"}},
		"panics":              {next: func(http.ResponseWriter, *http.Request) { panic("boom") }, want: permit.Ignored, panics: "boom"},
		"panics with an error": {next: func(http.ResponseWriter, *http.Request) { panic(errRefused) }, want: permit.Ignored,
			panics: errRefused},
		"aborts": {next: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: permit.Ignored,
			panics: http.ErrAbortHandler},
		"exits": {next: func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, want: permit.Ignored},
		"upgrade": {next: func(_ http.ResponseWriter, r *http.Request) { r.Header.Del("Upgrade") }, want: permit.Ignored,
			headers: []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
		"upgrade, client has gone": {next: until, want: permit.Ignored, ctx: cancelled,
			headers: []string{"Connection", "keep-alive, upgrade", "Upgrade", "WebSocket"}},
		"would speak HTTP/2":          {next: nothing, want: permit.Success, headers: []string{"Connection", "Upgrade", "Upgrade", "h2c"}},
		"would speak TLS":             {next: nothing, want: permit.Success, headers: []string{"Connection", "Upgrade", "Upgrade", "TLS/1.2"}},
		"upgrade of no connection":    {next: nothing, want: permit.Success, headers: []string{"Upgrade", "websocket"}},
		"websocket would be nice":     {next: nothing, want: permit.Success, headers: []string{"Connection", "close", "Upgrade", "websocket"}},
		"CONNECT":                     {next: nothing, want: permit.Ignored, connect: true},
		"reports Ignored":             {next: say(permit.Ignored), want: permit.Ignored},
		"reports Overload":            {next: say(permit.Overload), want: permit.Overload},
		"reports Success of a tunnel": {next: say(permit.Success), want: permit.Success, connect: true},
		"reports twice": {want: permit.Overload, next: func(w http.ResponseWriter, r *http.Request) {
			say(permit.Canceled)(w, r)
			say(permit.Overload)(w, r)
		}},
		"reports and panics": {want: permit.Overload, panics: "boom", next: func(w http.ResponseWriter, r *http.Request) {
			say(permit.Overload)(w, r)
			panic("boom")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, option := under(t, 1, 0)
				h := limited(t, row.next, option, httpmw.AcceptReports(), httpmw.DeadlineFromHeader(time.Minute))
				for range 100 {
					ended := make(chan any)
					go func() {
						defer func() { ended <- recover() }()
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if row.ctx != nil {
							ctx, cancel = row.ctx(ctx)
						}
						defer cancel()
						r := incoming(ctx, row.headers...)
						if row.connect {
							r.Method = http.MethodConnect
						}
						statusOf(h, r)
					}()
					if v := <-ended; v != row.panics {
						t.Errorf("recovered %v, want %v", v, row.panics)
					}
				}
				var want [permit.NumOutcomes]uint64
				want[row.want] = 100
				if got := l.Stats().Ledger.Released; got != want {
					t.Errorf("released %v, want 100 of %v", got, row.want)
				}
				if n := h.Stats().Inside; n != 0 {
					t.Errorf("%d inside at rest", n)
				}
				probe(t, l)
			})
		})
	}
}

func second(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Second)
}

// cancelled is cancelled after a second.
func cancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Second, cancel)
	return ctx, cancel
}

// Nothing can be reported once the handler has returned, without AcceptReports, or of an
// outcome that is none.
func TestReportIsHeardUntilTheEnd(t *testing.T) {
	var ctx context.Context
	next := func(want bool) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			ctx = r.Context()
			if httpmw.Report(ctx, permit.NumOutcomes) {
				t.Error("an outcome that is none was accepted")
			}
			if got := httpmw.Report(ctx, permit.Overload); got != want {
				t.Errorf("the report was accepted: %v, want %v", got, want)
			}
		}
	}
	l, option := under(t, 1, 0)
	statusOf(limited(t, next(false), option), incoming(t.Context()))
	statusOf(limited(t, next(true), option, httpmw.AcceptReports()), incoming(t.Context()))
	if httpmw.Report(ctx, permit.Ignored) {
		t.Error("a report was accepted after the handler had returned")
	}
	if r := l.Stats().Ledger.Released; r[permit.Success] != 1 || r[permit.Overload] != 1 {
		t.Errorf("released %v", r)
	}
}

// A report reaches the innermost Handler that accepts any.
func TestReportReachesTheInnermost(t *testing.T) {
	var limiters []*limiter.Limiter
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { httpmw.Report(r.Context(), permit.Overload) })
	for _, opts := range [][]httpmw.HandlerOption{{}, {httpmw.AcceptReports()}, {httpmw.AcceptReports()}} { // from the inside
		l, option := under(t, 1, 0)
		limiters = append(limiters, l)
		h = limited(t, h, append(opts, option)...).ServeHTTP
	}
	statusOf(h, incoming(t.Context()))
	for i, want := range []permit.Outcome{permit.Success, permit.Overload, permit.Success} {
		if got := limiters[i].Stats().Ledger.Released; got[want] != 1 {
			t.Errorf("Handler %d from the inside: released %v, want %v", i, got, want)
		}
	}
}

// A http.TimeoutHandler outside answers in time; the permit stays with the work, and the
// limit learns that the time was not enough.
func TestTimeoutHandlerGoesOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, option := under(t, 1, 0)
		h := limited(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }, option)
		w := httptest.NewRecorder()
		http.TimeoutHandler(h, time.Second, "too late").ServeHTTP(w, incoming(t.Context()))
		if w.Code != http.StatusServiceUnavailable || w.Body.String() != "too late" || l.InFlight() != 1 {
			t.Errorf("status %d, body %q, %d in flight", w.Code, w.Body, l.InFlight())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := l.Stats().Ledger.Released[permit.Expired]; n != 1 {
			t.Errorf("%+v", l.Stats().Ledger)
		}
		probe(t, l)
	})
}

// samples is a limit that remembers what it is told.
type samples struct{ latencies []time.Duration }

func (*samples) EstimatedLimit() int { return 1 }

func (s *samples) OnSample(_, rtt int64, _ int, _ bool) {
	s.latencies = append(s.latencies, time.Duration(rtt))
}

// The latency that the limit learns from is that of the handler: the wait for the permit
// is not in it, and the client's reading of the answer is.
func TestLatencyIsFromGrantToReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &samples{}
		algorithm, err := gradient.FromLimit(s)
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: 1})
		if err != nil {
			t.Fatal(err)
		}
		h := limited(t, func(http.ResponseWriter, *http.Request) { time.Sleep(30 * ms) }, httpmw.HandlerLimiter(l))
		go statusOf(h, incoming(t.Context()))
		synctest.Wait()
		statusOf(h, incoming(t.Context()))
		synctest.Wait()
		if want := []time.Duration{30 * ms, 30 * ms}; !reflect.DeepEqual(s.latencies, want) {
			t.Errorf("latencies %v, want %v", s.latencies, want)
		}
	})
}
