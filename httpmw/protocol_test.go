package httpmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// By default a loser over HTTP/1 may go on for as long as the hedge delay was, and one
// over HTTP/2 is cancelled: as the latest answer of its host says, which may be that of
// the winner. What WithConfig says counts instead.
func TestLosersAreDealtWithByProtocol(t *testing.T) {
	for name, row := range map[string]struct {
		before, winner int // protocol of an answer of the host before, 0 for none, and of the winner
		delay          time.Duration
		policy         *hedgedlimit.LoserPolicy
		want           time.Duration // for how long the loser goes on
	}{
		"HTTP/1":              {1, 1, 40 * ms, nil, 40 * ms},
		"HTTP/2":              {2, 2, 40 * ms, nil, 0},
		"HTTP/3":              {3, 3, 40 * ms, nil, 0},
		"first is HTTP/1":     {0, 1, 40 * ms, nil, 40 * ms},
		"first is HTTP/2":     {0, 2, 40 * ms, nil, 0},
		"went back to HTTP/1": {2, 1, 40 * ms, nil, 40 * ms},
		"went up to HTTP/2":   {1, 2, 40 * ms, nil, 0},
		"no delay":            {0, 1, 0, nil, 100 * ms},
		"long delay":          {0, 1, 10 * time.Second, nil, time.Second},
		"own policy":          {0, 1, 40 * ms, new(hedgedlimit.LoserPolicy), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				var stopped atomic.Int64
				began := time.Now()
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					major := row.winner
					switch {
					case r.URL.Path == "/before":
						major = row.before
					case r.Header.Get(httpmw.AttemptHeader) == "1":
						<-r.Context().Done()
						stopped.Store(int64(time.Since(began)))
						return nil, context.Cause(r.Context())
					}
					time.Sleep(10 * ms)
					return &http.Response{StatusCode: 200, ProtoMajor: major, Body: http.NoBody}, nil
				})
				tr := transport(t, base, httpmw.WithAttemptHeader(), configured(t, l, row.delay, func(c *hedgedlimit.Config) {
					if row.policy != nil {
						c.Losers = *row.policy
					}
				}))
				if row.before != 0 {
					r := get(t.Context(), t)
					r.URL.Path, r.Method = "/before", http.MethodPost
					if _, err := tr.RoundTrip(r); err != nil {
						t.Fatal(err)
					}
				}
				began = time.Now()
				if _, err := tr.RoundTrip(get(t.Context(), t)); err != nil {
					t.Fatal(err)
				}
				decided := time.Since(began)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := time.Duration(stopped.Load()) - decided; got != row.want {
					t.Errorf("the loser went on for %v, want %v", got, row.want)
				}
				probe(t, l)
			})
		})
	}
}

// The answer refers to the request that the caller has made. A base that answers with a
// changed copy goes on doing so, and nothing of ours is seen in it.
func TestAnswerNamesTheRequest(t *testing.T) {
	type key struct{}
	for name, row := range map[string]struct {
		named func(*http.Request) *http.Request // what the base puts into the answer
		same  bool
		user  string
	}{
		"as it came": {func(r *http.Request) *http.Request { return r }, true, ""},
		"a copy": {func(r *http.Request) *http.Request {
			r = r.Clone(context.WithValue(r.Context(), key{}, "of the base"))
			r.SetBasicAuth("user", "secret")
			return r
		}, false, "user"},
		"a copy with a body of its own": {func(r *http.Request) *http.Request {
			r = r.Clone(context.WithValue(r.Context(), key{}, "of the base"))
			r.SetBasicAuth("user", "secret")
			r.Body = http.NoBody
			return r
		}, false, "user"},
		"nothing": {func(*http.Request) *http.Request { return nil }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					closeBody(r)
					return &http.Response{StatusCode: 200, Request: row.named(r), Body: http.NoBody}, nil
				})
				tr := transport(t, base, configured(t, l, time.Hour, nil))
				ctx, cancel := context.WithCancel(t.Context())
				bodies := &handles{}
				req := get(ctx, t)
				req.GetBody = bodies.open
				req.Body, _ = bodies.open()
				body := req.Body
				r, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				probe(t, l) // the attempt is over, and its context with it
				switch named := r.Request; {
				case name == "nothing":
					if named != nil {
						t.Errorf("named %v", named)
					}
				case (named == req) != row.same:
					t.Errorf("named %p, the caller's is %p", named, req)
				default:
					if user, _, _ := named.BasicAuth(); user != row.user {
						t.Errorf("user %q, want %q", user, row.user)
					}
					if named.Body != body && named.Body != http.NoBody {
						t.Errorf("its body is %T", named.Body)
					}
					if named.Context().Err() != nil || !row.same && named.Context().Value(key{}) != "of the base" {
						t.Errorf("its context: %v, value %v", named.Context().Err(), named.Context().Value(key{}))
					}
					cancel()
					if named.Context().Err() == nil {
						t.Error("its context does not end with the caller's")
					}
				}
				cancel()
			})
		})
	}
}

// A location that is relative is resolved, and a redirect followed, by a base that clones.
func TestRedirectsFollowABaseThatClones(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, ok := r.BasicAuth(); !ok || user != "user" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/" {
			http.Redirect(w, r, "there", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(r.URL.Path))
	})
	protocols(t, handler, func(t *testing.T, server *httptest.Server, real *http.Transport) {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.SetBasicAuth("user", "secret")
			return real.RoundTrip(r)
		})
		l := fixed(t, 2, 0)
		client := &http.Client{Transport: transport(t, base, configured(t, l, time.Hour, nil))}
		var paths []string
		client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
			paths = append(paths, r.URL.Path)
			return nil
		}
		r, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if body := read(t, r); body != "/there" || !slices.Equal(paths, []string{"/there"}) || r.Request.URL.Path != "/there" {
			t.Errorf("%q by %q", body, paths)
		}
		settle(t, l)
	})
}
