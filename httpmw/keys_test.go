package httpmw_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// Requests with one string share a limit, whatever their host; those without one are
// told apart by their host; long strings are cut off and still told apart.
func TestRequestsAreLimitedByTheirKey(t *testing.T) {
	long := strings.Repeat("ä", 500)
	for name, row := range map[string]struct {
		first, second string // host, blank, key
		shared        bool
		name          string // of the first in Stats
	}{
		"same key":         {"a.test tenant", "b.test tenant", true, "tenant"},
		"other key":        {"a.test Tenant", "a.test tenant", false, "Tenant"},
		"same host":        {"A.test ", "a.TEST ", true, "a.test"},
		"other host":       {"a.test ", "b.test ", false, "a.test"},
		"key like a host":  {"a.test b.test", "b.test ", true, "b.test"},
		"long":             {"a.test " + long, "b.test " + long, true, ""},
		"long, other ends": {"a.test " + long + "1", "a.test " + long + "2", false, ""},
		"long hosts":       {strings.Repeat("x", 400) + ".test ", strings.Repeat("x", 400) + ".TEST ", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := transport(t, &fake{scripts: []script{{body: "body"}}},
					httpmw.LimitBy(func(r *http.Request) string { return r.Header.Get("Key") }),
					httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error { c.Limiter = fixed(t, 1, 0); return nil }))
				send := func(what string) (*http.Response, error) {
					r := get(t.Context(), t)
					host, key, _ := strings.Cut(what, " ")
					r.URL.Host = host
					r.Header.Set("Key", key)
					return tr.RoundTrip(r)
				}
				held, err := send(row.first)
				if err != nil {
					t.Fatal(err)
				}
				s := tr.Stats().Hosts
				if row.name != "" && s[0].Host != row.name || len(s[0].Host) > 300 || strings.ToValidUTF8(s[0].Host, "") != s[0].Host {
					t.Errorf("kept as %q", s[0].Host)
				}
				second, err := send(row.second)
				if (err == limiter.ErrLimitExceeded) != row.shared { //nolint:errorlint // bare is what is asked
					t.Errorf("the second: %v", err)
				}
				if err == nil {
					read(t, second)
				}
				read(t, held)
			})
		})
	}
}

// The delay of each key is learnt by itself, though the limit is one.
func TestDelayIsLearntByKey(t *testing.T) {
	for name, option := range map[string]httpmw.Option{
		"default": httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
			c.Limiter, c.Budget, c.Gates = fixed(t, 9, 0), hedgedlimit.Unlimited, hedgedlimit.NoGates
			return nil
		}),
		"WithHedger": func() httpmw.Option {
			h, err := hedgedlimit.New(hedgedlimit.Config{
				Limiter: fixed(t, 9, 0), Budget: hedgedlimit.Unlimited, Gates: hedgedlimit.NoGates,
				Delay: hedgedlimit.PerKey(hedgedlimit.QuantileConfig{}, 2),
			})
			if err != nil {
				t.Fatal(err)
			}
			return httpmw.WithHedger(h)
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := false
				var hedged time.Duration
				var began time.Time
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					takes := map[string]time.Duration{"/quick": 10 * ms, "/slow": 300 * ms}[r.URL.Path]
					switch {
					case stuck && r.Header.Get(httpmw.AttemptHeader) == "1":
						takes = time.Minute
					case stuck:
						hedged = time.Since(began)
					}
					if err := pause(r.Context(), takes, false); err != nil {
						return nil, err
					}
					return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
				})
				tr := transport(t, base, option, httpmw.WithAttemptHeader(),
					httpmw.DelayBy(func(r *http.Request) string { return r.URL.Path }))
				send := func(path string) {
					r := get(t.Context(), t)
					r.URL.Path = path
					began = time.Now()
					if _, err := tr.RoundTrip(r); err != nil {
						t.Fatal(err)
					}
				}
				for range 150 {
					send("/quick")
					send("/slow")
				}
				stuck = true
				for path, usual := range map[string]time.Duration{"/quick": 10 * ms, "/slow": 300 * ms} {
					if send(path); hedged < usual*9/10 || hedged > usual*12/10 {
						t.Errorf("%s was hedged after %v, it usually takes %v", path, hedged, usual)
					}
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// A delay of the user's own, and retries without one, are left alone by DelayBy.
func TestDelayByLeavesTheConfigurationAlone(t *testing.T) {
	for name, change := range map[string]func(*hedgedlimit.Config){
		"Delay": func(c *hedgedlimit.Config) { c.Delay = hedgedlimit.Fixed(7 * ms) },
		"Retry": func(c *hedgedlimit.Config) { c.Retry = &hedgedlimit.Backoff{} },
	} {
		tr := transport(t, roundTripper(refuse), httpmw.DelayBy(func(*http.Request) string { return "" }),
			httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error { change(c); return nil }))
		if s := tr.Stats().Overflow.Hedging; s.DelayKnown != (name == "Delay") || s.DelayKnown && s.Delay != 7*ms {
			t.Errorf("%s: the delay is %v (%v)", name, s.Delay, s.DelayKnown)
		}
	}
}

// A function of the user's that panics does so in the caller, whose body is closed and
// who has sent nothing.
func TestKeysThatPanic(t *testing.T) {
	boom := func(*http.Request) string { panic("boom") }
	for i, option := range []httpmw.Option{httpmw.LimitBy(boom), httpmw.DelayBy(boom)} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{scripts: []script{{}}}
				tr := transport(t, f, option)
				bodies := &handles{}
				for range 100 {
					req := get(t.Context(), t)
					req.Body, _ = bodies.open()
					func() {
						defer func() {
							if v := recover(); v != "boom" {
								t.Errorf("recovered %v", v)
							}
						}()
						_, _ = tr.RoundTrip(req)
					}()
				}
				bodies.check(t)
				if f.sent() != 0 {
					t.Error("something was sent")
				}
				// No call is thought to run on: Close has nothing to wait for.
				if err := tr.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
