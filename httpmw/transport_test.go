package httpmw_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// What makes no sense is refused at construction, by name.
func TestBadOptions(t *testing.T) {
	h := hedged(t, fixed(t, 1, 0), 0, hedgedlimit.Cancel())
	config := func(string, *hedgedlimit.Config) error { return nil }
	key := func(*http.Request) string { return "" }
	failing := func(string, *hedgedlimit.Config) error { return errRefused }
	bad := func(_ string, c *hedgedlimit.Config) error { c.MaxAttempts = 9; return nil }
	var nilTransport *http.Transport
	for _, row := range []struct {
		base    http.RoundTripper
		options []httpmw.Option
		want    string
	}{
		{nil, nil, "base RoundTripper is nil"},
		{nilTransport, nil, "base RoundTripper is nil"},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithAttemptHeader(), nil}, "option 1 is nil"},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithHedger(nil)}, "WithHedger"},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithConfig(nil)}, "WithConfig"},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithHedger(h), httpmw.WithConfig(config)}, "WithHedger and WithConfig"},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithHedger(h), httpmw.MaxHosts(3)}, "WithHedger and MaxHosts"},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithConfig(failing)}, errRefused.Error()},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithConfig(bad)}, "MaxAttempts 9"},
		{http.DefaultTransport, []httpmw.Option{httpmw.MaxHosts(0)}, "MaxHosts 0"},
		{http.DefaultTransport, []httpmw.Option{httpmw.PickTarget(nil)}, "PickTarget"},
		{http.DefaultTransport, []httpmw.Option{httpmw.Hedgeable(nil)}, "Hedgeable"},
		{http.DefaultTransport, []httpmw.Option{httpmw.DrainBytes(-1)}, "DrainBytes -1"},
		{http.DefaultTransport, []httpmw.Option{httpmw.MaxRetryAfter(-time.Second)}, "MaxRetryAfter -1s"},
		{http.DefaultTransport, []httpmw.Option{httpmw.DelayFrom(2)}, "DelayFrom 2"},
		{http.DefaultTransport, []httpmw.Option{httpmw.LimitBy(nil)}, "LimitBy"},
		{http.DefaultTransport, []httpmw.Option{httpmw.WithHedger(h), httpmw.LimitBy(key)}, "WithHedger and LimitBy"},
		{http.DefaultTransport, []httpmw.Option{httpmw.DelayBy(nil)}, "DelayBy"},
		{http.DefaultTransport, []httpmw.Option{httpmw.DeadlineFraction(-0.1)}, "DeadlineFraction -0.1"},
		{http.DefaultTransport, []httpmw.Option{httpmw.DeadlineFraction(1.5)}, "DeadlineFraction 1.5"},
		{http.DefaultTransport, []httpmw.Option{httpmw.DeadlineFraction(math.NaN())}, "DeadlineFraction NaN"},
		{http.DefaultTransport, []httpmw.Option{httpmw.OnLostBody(nil)}, "OnLostBody"},
	} {
		tr, err := httpmw.NewTransport(row.base, row.options...)
		if tr != nil || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v and %v, want an error that says %q", tr, err, row.want)
		}
	}
}

// Field case B45: the base is used as it is, for hedges too, with as many
// connections as without us, and CloseIdleConnections reaches it.
func TestBaseIsUsed(t *testing.T) {
	var accepted atomic.Int32
	var together sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		together.Done()
		together.Wait() // so that as many connections are needed as requests are sent at once
		if len(r.TLS.PeerCertificates) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, "body")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			accepted.Add(1)
		}
	}
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	base := server.Client().Transport.(*http.Transport) // knows the private CA
	base.TLSClientConfig.Certificates = server.TLS.Certificates
	base.MaxIdleConnsPerHost = 50

	l := fixed(t, 100, 0)
	client := &http.Client{Transport: transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))}
	send := func() {
		t.Helper()
		r, err := client.Get(server.URL)
		if err != nil {
			t.Error(err)
			return
		}
		if r.StatusCode != http.StatusOK {
			t.Errorf("status %s", r.Status)
		}
		read(t, r)
	}
	for range 100 {
		together.Add(1)
		send()
	}
	if n := accepted.Load(); n != 1 {
		t.Errorf("100 requests in a row took %d connections, want 1", n)
	}
	for range 2 {
		var all sync.WaitGroup
		together.Add(50)
		for range 50 {
			all.Go(send)
		}
		all.Wait()
	}
	if n := accepted.Load(); n != 50 {
		t.Errorf("50 requests at once, twice, took %d connections, want 50", n)
	}
	before := accepted.Load()
	client.CloseIdleConnections()
	together.Add(1)
	send()
	if n := accepted.Load(); n != before+1 {
		t.Errorf("%d new connections after CloseIdleConnections, want 1", n-before)
	}
	settle(t, l)

	// A base without the method, and one with a default transport that stays as
	// it was.
	transport(t, roundTripper(refuse)).CloseIdleConnections()
	wrapped := http.DefaultTransport
	transport(t, wrapped)
	if http.DefaultTransport != wrapped || http.DefaultClient.Transport != nil {
		t.Error("NewTransport has changed a global")
	}
}

func refuse(*http.Request) (*http.Response, error) { return nil, errRefused }

// Draining losers keeps their connections: 200 calls in a row, each with a hedge, take
// no more than one beyond the two attempts that run at once. What cancelling takes is
// up to net/http, and only told.
func TestDrainKeepsConnections(t *testing.T) {
	arrived := make(chan struct{}, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(httpmw.AttemptHeader) == "1" {
			<-arrived // answers when the hedge does
		} else {
			arrived <- struct{}{}
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
	})
	for _, losers := range []hedgedlimit.LoserPolicy{hedgedlimit.Drain(time.Minute), hedgedlimit.Cancel()} {
		t.Run(losers.String(), func(t *testing.T) {
			protocols(t, handler, func(t *testing.T, server *httptest.Server, base *http.Transport) {
				var dialled atomic.Int32
				countDials(base, func() { dialled.Add(1) })
				l := fixed(t, 2, limiter.Unbounded)
				tr := transport(t, base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 0, losers)))
				for range 200 {
					r, err := tr.RoundTrip(request(t, http.MethodGet, server.URL, nil))
					if err != nil {
						t.Fatal(err)
					}
					read(t, r)
					eventually(t, "the loser has ended", func() bool { return l.InFlight() == 0 })
				}
				t.Logf("%d connections", dialled.Load())
				if n := dialled.Load(); n > 3 && losers != hedgedlimit.Cancel() {
					t.Errorf("200 calls, each with a hedge, took %d connections", n)
				}
				settle(t, l)
			})
		})
	}
}

// PickTarget sends each attempt somewhere else; the limit, the Host header and the
// caller's request stay.
func TestPickTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replicas := []*url.URL{{Scheme: "https", Host: "r1.test"}, {Scheme: "http", Host: "r2.test:81"}}
		l := fixed(t, 3, 0)
		f := &fake{scripts: []script{{headers: 50 * ms}, {headers: 50 * ms}, {headers: 1 * ms}}}
		h, err := hedgedlimit.New(hedgedlimit.Config{
			Gates: hedgedlimit.NoGates, Limiter: l, MaxAttempts: 3, Delay: hedgedlimit.Fixed(10 * ms), Budget: hedgedlimit.Unlimited,
		})
		if err != nil {
			t.Fatal(err)
		}
		var handed [][]string
		tr := transport(t, f, httpmw.WithHedger(h), httpmw.WithAttemptHeader(),
			httpmw.PickTarget(func(r *http.Request, tried []*url.URL) *url.URL {
				var all []string
				for _, u := range tried {
					all = append(all, u.String())
				}
				handed = append(handed, all)
				if len(tried) == len(replicas) {
					return nil
				}
				return replicas[len(tried)]
			}))
		req := get(t.Context(), t)
		req.Host = "" // which means that of the URL
		before := req.Clone(t.Context())
		answer, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Request != req || !reflect.DeepEqual(req, before) {
			t.Errorf("the response's request is %+v, want the caller's own, unchanged", answer.Request)
		}
		for i, want := range []string{"https://r1.test/path", "http://r2.test:81/path", "http://host.test/path"} {
			got := f.request(i)
			if got.URL.String() != want || got.Host != "host.test" || got.Header.Get(httpmw.AttemptHeader) != fmt.Sprint(i+1) {
				t.Errorf("attempt %d went to %v with Host %q and header %v, want %s", i+1, got.URL, got.Host, got.Header, want)
			}
		}
		if want := [][]string{nil, {"https://r1.test"}, {"https://r1.test", "http://r2.test:81"}}; !reflect.DeepEqual(handed, want) {
			t.Errorf("tried: %v, want %v", handed, want)
		}
		synctest.Wait()
		probe(t, l)
	})
}

// Close shuts every host at once, and waits for bodies.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{scripts: []script{{body: "body", bodyTime: time.Second}}}
		tr := transport(t, f, httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
			c.Limiter = fixed(t, 1, limiter.Unbounded)
			return nil
		}))
		var open []*http.Response
		waiting := make(chan error, 2)
		for _, host := range []string{"a.test", "b.test"} {
			r := get(t.Context(), t)
			r.URL.Host = host
			answer, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, answer)
			go func() {
				_, err := tr.RoundTrip(r.Clone(t.Context()))
				waiting <- err
			}()
		}
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- tr.Close(t.Context()) }()
		for range 2 {
			if err := <-waiting; !errors.Is(err, limiter.ErrClosed) {
				t.Errorf("a request that waited: %v", err)
			}
		}
		if _, err := tr.RoundTrip(get(t.Context(), t)); err != limiter.ErrClosed { //nolint:errorlint // bare is what is asked
			t.Errorf("after Close: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		if err := tr.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close with a body open: %v", err)
		}
		read(t, open[0])
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("Close returned %v with a body open", err)
		default:
		}
		read(t, open[1])
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// A hedger that was given stays its owner's.
func TestCloseLeavesGivenHedger(t *testing.T) {
	l := fixed(t, 1, 0)
	tr := transport(t, &fake{scripts: []script{{}}}, httpmw.WithHedger(hedged(t, l, 0, hedgedlimit.Cancel())))
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	bodies := &handles{}
	r := get(t.Context(), t)
	r.Body, _ = bodies.open()
	if _, err := tr.RoundTrip(r); err != limiter.ErrClosed { //nolint:errorlint // bare is what is asked
		t.Errorf("after Close: %v", err)
	}
	bodies.check(t)
	p, ok := l.TryAcquire(limiter.Primary)
	if !ok {
		t.Error("Close has closed a limiter that is not its own")
	}
	p.Release(permit.Ignored)
	probe(t, l)
}

// http.Client works as without us: redirects are calls of their own, and a time-out
// cuts the body.
func TestClient(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/from", http.RedirectHandler("/to", http.StatusTemporaryRedirect))
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "head")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		// Over TLS, net/http reads on until its good-bye is sent, so a handler that
		// ended well now would make the body look whole.
		panic(http.ErrAbortHandler)
	})
	protocols(t, mux, func(t *testing.T, server *httptest.Server, base *http.Transport) {
		l := fixed(t, 2, 0)
		tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
		client := &http.Client{Transport: tr}
		r, err := client.Post(server.URL+"/from", "text/plain", strings.NewReader("echo"))
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, r); got != "echo" || r.Request.URL.Path != "/to" {
			t.Errorf("after a redirect: body %q from %v", got, r.Request.URL)
		}
		eventually(t, "the redirect's calls have ended", func() bool { return l.InFlight() == 0 })
		if n := tr.Stats().Hosts[0].Hedging.Calls; n != 2 {
			t.Errorf("a redirect took %d calls, want 2", n)
		}
		client.Timeout = 50 * ms
		r, err = client.Get(server.URL + "/slow")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(r.Body)
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("a body after Client.Timeout: %v", err)
		}
		settle(t, l) // the body has failed; it need not be closed
		_ = r.Body.Close()
	})
}
