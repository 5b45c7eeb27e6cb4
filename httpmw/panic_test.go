package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// Field case B65: a panic of the base reaches the caller with its value, and costs
// no permit.
func TestPanics(t *testing.T) {
	var nilMap map[string]int
	var runtimeErr error
	func() {
		defer func() { runtimeErr = recover().(runtime.Error) }()
		nilMap["x"] = 1 //nolint:staticcheck // the panic is what is wanted
	}()
	for name, value := range map[string]any{
		"string": "boom", "error": errRefused, "runtime error": runtimeErr, "abort": http.ErrAbortHandler,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, 0)
				tr := transport(t, &fake{scripts: []script{{panics: value}}}, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				for range 100 {
					bodies := &handles{}
					req := get(t.Context(), t)
					req.Body, _ = bodies.open()
					func() {
						defer func() {
							if v := recover(); v != value {
								t.Errorf("recovered %v, want %v", v, value)
							}
						}()
						_, _ = tr.RoundTrip(req)
						t.Error("RoundTrip returned")
					}()
					synctest.Wait()
					bodies.check(t)
				}
				probe(t, l)
			})
		})
	}
	hooks := map[string]httpmw.Option{
		"PickTarget": httpmw.PickTarget(func(*http.Request, []*url.URL) *url.URL { panic("boom") }),
		"Hedgeable":  httpmw.Hedgeable(func(*http.Request) bool { panic("boom") }),
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, 0)
				tr := transport(t, &fake{scripts: []script{{}}}, hook, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				bodies := &handles{}
				req := get(t.Context(), t)
				req.GetBody = bodies.open
				req.Body, _ = bodies.open()
				func() {
					defer func() {
						if v := recover(); v != "boom" {
							t.Errorf("recovered %v, want boom", v)
						}
					}()
					_, _ = tr.RoundTrip(req)
				}()
				synctest.Wait()
				bodies.check(t)
				probe(t, l)
			})
		})
	}
}

// runtime.Goexit in the base is a failure like another.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 0)
		base := roundTripper(func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil })
		tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
		bodies := &handles{}
		req := get(t.Context(), t)
		req.Body, _ = bodies.open()
		if _, err := tr.RoundTrip(req); !errors.Is(err, hedgedlimit.ErrGoexit) {
			t.Errorf("error %v, want ErrGoexit", err)
		}
		synctest.Wait()
		bodies.check(t)
		probe(t, l)
	})
}

// A refusal can be told from every other end through http.Client, and sends nothing.
// The reason why losers are cancelled never comes out.
func TestErrorIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 0)
		f := &fake{scripts: []script{{headers: time.Hour}}}
		client := &http.Client{Transport: transport(t, f, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))}
		held, _ := l.TryAcquire(limiter.Primary)
		bodies := &handles{}
		req := get(t.Context(), t)
		req.Body, _ = bodies.open()
		_, err := client.Do(req)
		if !errors.Is(err, limiter.ErrLimitExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("refused with %v", err)
		}
		bodies.check(t)
		if f.sent() != 0 {
			t.Error("a refused request was sent")
		}
		held.Release(permit.Ignored)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = client.Do(get(ctx, t)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, hedgedlimit.ErrLost) {
			t.Errorf("after the deadline: %v", err)
		}
		synctest.Wait()
		probe(t, l)
	})
}
