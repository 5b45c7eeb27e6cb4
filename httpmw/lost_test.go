package httpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// Each body that was lost is reported once, with what is needed to find who lost it, and
// not while a lock is held. A report that panics costs nobody anything.
func TestLostBodiesAreReported(t *testing.T) {
	l := fixed(t, 4, 0)
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		switch r.Method {
		case http.MethodPut: // whose body is forgotten
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		case http.MethodDelete: // is closed in time
			return &http.Response{StatusCode: 200, Body: &counting{Reader: strings.NewReader("x")}}, nil
		}
		return &http.Response{StatusCode: 404, Body: &counting{Reader: strings.NewReader("x")}}, nil
	})
	var mu sync.Mutex
	var lost []string
	var tr *httpmw.Transport
	tr = transport(t, base, httpmw.MaxHosts(1), configured(t, l, time.Hour, nil), // the second is beyond that
		httpmw.LimitBy(func(r *http.Request) string { return r.Header.Get("Key") }),
		httpmw.OnLostBody(func(b httpmw.LostBody) {
			mu.Lock()
			lost = append(lost, fmt.Sprintf("%+v", b))
			mu.Unlock()
			tr.Stats() // needs the locks
			panic("boom")
		}))
	func() {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			var body *strings.Reader
			r := request(t, method, "http://Host.test/", nil)
			if method == http.MethodPut {
				body = strings.NewReader("forgotten")
				r = request(t, method, "http://Host.test/", body)
				r.Header.Set("Key", "tenant")
			}
			answer, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if method == http.MethodDelete {
				_ = answer.Body.Close()
			}
		}
	}()
	eventually(t, "both lost bodies are closed", func() bool {
		runtime.GC()
		return tr.Stats().LostBodies == 2 && l.InFlight() == 0
	})
	tr.Stats() // reports what was found last
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(lost)
	want := []string{
		"{Host:host.test Method:GET Request:false StatusCode:404}", "{Host:tenant Method:PUT Request:true StatusCode:0}",
	}
	if !slices.Equal(lost, want) {
		t.Errorf("reported %q, want %q", lost, want)
	}
	probe(t, l)
}

// Close closes what is lost while it waits: nobody else comes by who would.
func TestCloseEndsBodiesThatAreLostMeanwhile(t *testing.T) {
	l := fixed(t, 1, 0)
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: &counting{Reader: strings.NewReader("x")}}, nil
	})
	tr := transport(t, base, configured(t, l, time.Hour, nil))
	func() {
		if _, err := tr.RoundTrip(get(t.Context(), t)); err != nil {
			t.Fatal(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	closed := make(chan error)
	go func() { closed <- tr.Close(ctx) }()
	collect := time.NewTicker(10 * ms)
	defer collect.Stop()
	for {
		select {
		case err := <-closed:
			if err != nil || l.InFlight() != 0 {
				t.Errorf("error %v, in flight %d", err, l.InFlight())
			}
			return
		case <-collect.C:
			runtime.GC()
		}
	}
}

// net/http refers to its responses while their bodies have not ended. A body that the
// caller has dropped is found all the same, on both protocols, whether the answer has come
// to its end on the wire or its sender is stuck.
func TestBodiesLostOnSocketsAreFound(t *testing.T) {
	const long = 8 << 20 // more than the buffers below hold
	for _, size := range []int{5, long} {
		protocols(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, size)) // the client goes away
		}), func(t *testing.T, server *httptest.Server, base *http.Transport) {
			l := fixed(t, 1, 0)
			tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
			func() {
				if _, err := tr.RoundTrip(request(t, http.MethodGet, server.URL, nil)); err != nil {
					t.Fatal(err)
				}
			}()
			defer server.CloseClientConnections() // else a failure would wait for the handler
			eventually(t, "the lost body is closed", func() bool {
				runtime.GC()
				return tr.Stats().LostBodies == 1 && l.InFlight() == 0
			})
		})
	}
}
