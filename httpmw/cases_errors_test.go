// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package httpmw_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Field case B02, on sockets: with a limit of one, a request that waits is sent only
// when the body before it is at its end or has been closed.
func TestWaitingRequestIsSentAfterTheBodyOnSockets(t *testing.T) {
	step := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "head")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/slow" {
			select {
			case <-step:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "tail")
	})
	protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		for _, ends := range []string{"EOF", "Close"} {
			l := fixed(t, 1, limiter.Unbounded)
			var over, early atomic.Bool // the first body, and the second request before that
			counting := roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/next" && !over.Load() {
					early.Store(true)
				}
				return base.RoundTrip(r)
			})
			tr := transport(t, counting, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
			first, err := tr.RoundTrip(request(t, http.MethodGet, server.URL+"/slow", nil))
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				r, err := tr.RoundTrip(request(t, http.MethodGet, server.URL+"/next", nil).WithContext(ctx))
				if err != nil {
					t.Error(err)
					return
				}
				if data, err := io.ReadAll(r.Body); string(data) != "headtail" || err != nil {
					t.Errorf("the second body: %q, %v", data, err)
				}
				_ = r.Body.Close()
			})
			eventually(t, "the second request waits", func() bool { return l.Stats().Ledger.Waiting == 1 })
			if n := admits(l, 1); n != 0 {
				t.Error("a permit was free while the body streamed")
			}
			over.Store(true)
			if ends == "EOF" {
				step <- struct{}{}
				_, _ = io.Copy(io.Discard, first.Body)
			}
			_ = first.Body.Close()
			all.Wait()
			if early.Load() {
				t.Error("the second request was sent while the first body was open")
			}
			settle(t, l)
		}
	})
}

// Field case B60: what a request came to can be told through the *url.Error of an
// http.Client, by one sentinel and no other; a refusal looks neither like a
// cancellation nor like a time-out.
func TestEachEndOfARequestHasItsOwnError(t *testing.T) {
	sentinels := map[string]error{
		"limit": limiter.ErrLimitExceeded, "closed": limiter.ErrClosed, "canceled": context.Canceled,
		"deadline": context.DeadlineExceeded, "refused": errRefused, "broken": errBroken, "lost": hedgedlimit.ErrLost,
	}
	queue := limiter.Config{MaxWaiting: 1, MaxWait: time.Second, Reserve: limiter.NoReserve}
	for name, c := range map[string]struct {
		config  limiter.Config
		free    bool
		waiting bool // one request waits already
		scripts []script
		method  string
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		during  func(*limiter.Limiter)
		want    []string
		after   time.Duration
		sent    int
	}{
		"no queue":      {want: []string{"limit"}},
		"queue full":    {config: queue, waiting: true, want: []string{"limit"}},
		"queue timeout": {config: queue, want: []string{"limit"}, after: time.Second},
		"cancelled while queued": {config: queue, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(500*ms, cancel)
			return ctx, cancel
		}, want: []string{"canceled"}, after: 500 * ms},
		"deadline while queued": {config: queue, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 500*ms)
		}, want: []string{"deadline"}, after: 500 * ms},
		"deadline while running": {free: true, scripts: []script{{headers: time.Hour}}, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 500*ms)
		}, want: []string{"deadline"}, after: 500 * ms, sent: 2},
		"closed while queued": {config: queue, during: func(l *limiter.Limiter) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = l.Close(ended)
		}, want: []string{"closed"}, after: 10 * ms},
		"the attempt failed": {free: true, method: http.MethodPost, scripts: []script{{err: errRefused}}, want: []string{"refused"}, sent: 1},
		"all attempts failed": {
			free: true, scripts: []script{{headers: 10 * ms, err: errRefused}, {err: errBroken}},
			want: []string{"refused", "broken"}, after: 10 * ms, sent: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				algorithm, err := gradient.NewFixed(2)
				if err != nil {
					t.Fatal(err)
				}
				c.config.Algorithm, c.config.Reserve = algorithm, limiter.NoReserve
				l, err := limiter.New(c.config)
				if err != nil {
					t.Fatal(err)
				}
				var held []limiter.Permit
				for range 2 {
					if p, ok := l.TryAcquire(limiter.Bypass); ok && !c.free {
						held = append(held, p)
					} else {
						p.Release(permit.Ignored)
					}
				}
				if c.waiting {
					go func() {
						p, err := l.Acquire(t.Context(), limiter.Bypass)
						if err != nil {
							t.Error(err)
						}
						p.Release(permit.Ignored)
					}()
					synctest.Wait()
				}
				f := &fake{scripts: c.scripts}
				if len(c.scripts) == 0 {
					f.scripts = []script{{}}
				}
				client := &http.Client{Transport: transport(t, f, httpmw.WithHedger(hedged(t, l, 50*ms, hedgedlimit.Cancel())))}
				ctx := t.Context()
				if c.ctx != nil {
					var cancel context.CancelFunc
					ctx, cancel = c.ctx(ctx)
					defer cancel()
				}
				if c.during != nil {
					time.AfterFunc(10*ms, func() { c.during(l) })
				}
				req := get(ctx, t)
				if c.method != "" {
					req.Method = c.method
				}
				start := time.Now()
				_, err = client.Do(req)
				var wrapped *url.Error
				if !errors.As(err, &wrapped) || time.Since(start) != c.after || f.sent() != c.sent {
					t.Errorf("Do returned %v after %v, %d were sent, want %v and %d", err, time.Since(start), f.sent(), c.after, c.sent)
				}
				for name, sentinel := range sentinels {
					if errors.Is(err, sentinel) != slices.Contains(c.want, name) {
						t.Errorf("errors.Is(%v, %s) is %v", err, name, errors.Is(err, sentinel))
					}
				}
				if wrapped != nil && wrapped.Timeout() != slices.Contains(c.want, "deadline") {
					t.Errorf("Timeout() of %v is %v", err, wrapped.Timeout())
				}
				for _, p := range held {
					p.Release(permit.Ignored)
				}
				synctest.Wait()
				if !l.Stats().Ledger.Closed {
					probe(t, l)
				}
			})
		})
	}
}

var errBroken = errors.New("broken pipe")

// Field case B63: numbers that make no sense are refused with their name and value,
// also when they are found in the configuration of one host; no options at all is the
// documented default.
func TestNonsenseOptionsAreRefusedByName(t *testing.T) {
	with := func(change func(*hedgedlimit.Config)) httpmw.Option {
		return httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error { change(c); return nil })
	}
	for want, option := range map[string]httpmw.Option{
		"MaxHosts -":      httpmw.MaxHosts(math.MinInt),
		"MaxHosts -1":     httpmw.MaxHosts(-1),
		"DrainBytes -922": httpmw.DrainBytes(math.MinInt64),
		"MaxAttempts -1":  with(func(c *hedgedlimit.Config) { c.MaxAttempts = -1 }),
		"Fixed -1ns":      with(func(c *hedgedlimit.Config) { c.Delay = hedgedlimit.Fixed(-1) }),
		"Quantile NaN": with(func(c *hedgedlimit.Config) {
			c.Delay = hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: math.NaN()})
		}),
		"nil DelayFunc":   with(func(c *hedgedlimit.Config) { c.Delay = hedgedlimit.DelayFunc(nil) }),
		"Drain bound 0s":  with(func(c *hedgedlimit.Config) { c.Losers = hedgedlimit.Drain(0) }),
		"option 0 is nil": nil,
	} {
		tr, err := httpmw.NewTransport(http.DefaultTransport, option)
		if tr != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v: want an error that says %q", tr, err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		// It is the host's configuration that is bad, not that of the rest.
		var nilBudget *hedgedlimit.RatioBudget
		tr := transport(t, &fake{scripts: []script{{body: "body"}}}, httpmw.WithConfig(func(host string, c *hedgedlimit.Config) error {
			if host != "" {
				c.Budget = nilBudget
			}
			return nil
		}))
		for range 100 {
			if r, err := tr.RoundTrip(get(t.Context(), t)); r != nil || err == nil || !strings.Contains(err.Error(), "Budget") {
				t.Fatalf("response %v, error %v", r, err)
			}
		}
		plain := transport(t, &fake{scripts: []script{{body: "body"}}})
		r, err := plain.RoundTrip(get(t.Context(), t))
		if err != nil {
			t.Fatal(err)
		}
		read(t, r)
		synctest.Wait()
		s := plain.Stats().Hosts[0]
		if s.Host != "host.test" || s.Limiter.Name != "host.test" || s.Limiter.Ledger.Limit != 20 || s.Hedging.BudgetBalance != 3 {
			t.Errorf("without options: %+v", s)
		}
	})
}

// Field case B65: a hundred panics and exits of the base, in the first attempt and in
// the hedge, and of each hook; each permit comes back once, and none is a success.
func TestHundredPanicsOfTheBaseCostNoPermit(t *testing.T) {
	var nothing map[string]int
	for name, c := range map[string]struct {
		ends func()
		same any
	}{
		"string":        {func() { panic("boom") }, "boom"},
		"error":         {func() { panic(errRefused) }, errRefused},
		"abort":         {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"runtime error": {func() { nothing["x"] = 1 }, nil}, //nolint:staticcheck // the panic is what is wanted
		"Goexit":        {runtime.Goexit, hedgedlimit.ErrGoexit},
	} {
		for _, where := range []string{"first attempt", "hedge", "PickTarget"} {
			t.Run(name+" in "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := fixed(t, 2, 0)
					base := roundTripper(func(r *http.Request) (*http.Response, error) {
						if where == "first attempt" || r.Header.Get(httpmw.AttemptHeader) == "2" {
							c.ends()
						}
						<-r.Context().Done()
						return nil, r.Context().Err()
					})
					options := []httpmw.Option{httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 10*ms, hedgedlimit.Cancel()))}
					if where == "PickTarget" {
						options = append(options, httpmw.PickTarget(func(*http.Request, []*url.URL) *url.URL { c.ends(); return nil }))
					}
					tr := transport(t, base, options...)
					for range 100 {
						var came any
						func() {
							defer func() {
								if v := recover(); v != nil {
									came = v
								}
							}()
							_, err := tr.RoundTrip(get(t.Context(), t))
							came = err
						}()
						_, isRuntime := came.(runtime.Error)
						if c.same != nil && came != c.same || c.same == nil && !isRuntime {
							t.Fatalf("it came out as %v, want %v", came, c.same)
						}
						synctest.Wait()
						if n := l.InFlight(); n != 0 {
							t.Fatalf("in flight %d", n)
						}
					}
					if s := l.Stats().Ledger; s.Released[permit.Success] != 0 || released(l) != s.Granted || s.Released[permit.Ignored] < 100 {
						t.Errorf("%+v", s)
					}
					probe(t, l)
				})
			})
		}
	}
}
