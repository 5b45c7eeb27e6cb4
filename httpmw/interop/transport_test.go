package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	callers = 8
	permits = 4 * callers
)

// fixed is a limiter of n.
func fixed(t *testing.T, n int) *limiter.Limiter {
	t.Helper()
	algorithm, err := gradient.NewFixed(n)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client is a Transport that hedges after delay, with its base's dials counted.
func client(t *testing.T, delay time.Duration) (client *http.Client, transport *httpmw.Transport, dials *atomic.Int64) {
	t.Helper()
	dials = new(atomic.Int64)
	base := &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	transport, err := httpmw.NewTransport(base, httpmw.WithAttemptHeader(), httpmw.MaxRetryAfter(2*time.Second),
		httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
			c.Delay, c.Gates, c.Budget = hedgedlimit.Fixed(delay), hedgedlimit.NoGates, hedgedlimit.Unlimited
			c.Limiter, c.Losers = fixed(t, permits), hedgedlimit.Drain(5*time.Second)
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := transport.Close(ctx); err != nil {
			t.Errorf("a permit was lost: %v, %+v", err, transport.Stats())
		}
		base.CloseIdleConnections()
	})
	return &http.Client{Transport: transport}, transport, dials
}

// get returns the whole answer.
func get(c *http.Client, url string) (status int, body []byte, err error) {
	r, err := c.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = r.Body.Close() }() // read to its end, or failed
	body, err = io.ReadAll(r.Body)
	return r.StatusCode, body, err
}

// Through nginx bodies arrive whole, hedges win where a first attempt stalls, losers are
// drained and connections used again.
func TestHedgesThroughNginx(t *testing.T) {
	needs(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 15<<10) // a loser's is read to its end
	var n atomic.Int64
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(httpmw.AttemptHeader) == "1" && n.Add(1)%4 == 0 {
			time.Sleep(70 * time.Millisecond) // more than the delay
		}
		_, _ = w.Write(content) // a loser may be gone
	}))
	proxy := startNginx(t, backend)
	c, transport, dials := client(t, 40*time.Millisecond)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range 25 {
				status, body, err := get(c, "http://"+proxy.address+"/")
				if err != nil || status != http.StatusOK || !bytes.Equal(body, content) {
					t.Errorf("%d, %d bytes of %d, %v", status, len(body), len(content), err)
					return
				}
			}
		})
	}
	wg.Wait()
	won := transport.Stats().Hosts[0].Hedging.Won[limiter.Hedge]
	if won == 0 {
		t.Error("no hedge has won")
	}
	t.Logf("%d hedges won; %d connections for %d calls", won, dials.Load(), 25*callers)
	// As many attempts at most run at once as there are permits.
	if d := dials.Load(); d > permits {
		t.Errorf("%d connections were opened for %d calls, want %d at most", d, 25*callers, permits)
	}
}

// The failures that nginx answers with by itself reach the caller as it made them, and its
// Retry-After is kept to.
func TestFailuresOfNginx(t *testing.T) {
	needs(t)
	var served atomic.Int64
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.URL.Path == "/late" {
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "served")
	}))
	proxy := startNginx(t, backend)
	c, _, _ := client(t, time.Hour)
	for path, want := range map[string]int{"/dead": http.StatusBadGateway, "/late": http.StatusGatewayTimeout} {
		status, body, err := get(c, "http://"+proxy.address+path)
		if err != nil || status != want || !bytes.Contains(body, []byte("nginx")) {
			t.Errorf("%s: %d %q %v, want nginx's own %d", path, status, body, err, want)
		}
	}
	served.Store(0)
	for n := range 2 {
		began := time.Now()
		status, body, err := get(c, "http://"+proxy.address+"/busy")
		took := time.Since(began)
		if err != nil || status != http.StatusOK || string(body) != "served" {
			t.Errorf("request %d: %d %q %v", n, status, body, err)
		}
		if n == 1 && took < time.Second {
			t.Errorf("nginx asked for one second, and the next attempt was answered after %v", took)
		}
	}
	if n := served.Load(); n != 2 {
		t.Errorf("the backend has served %d requests, want 2", n)
	}
}

// While nginx is down calls fail, and once it is back they succeed: no permit is lost.
func TestNginxIsKilledAndRestarted(t *testing.T) {
	needs(t)
	content := bytes.Repeat([]byte("x"), 256<<10)
	backend := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(5 * time.Millisecond)
		_, _ = w.Write(content) // its reader is killed
	}))
	proxy := startNginx(t, backend)
	c, transport, _ := client(t, 20*time.Millisecond)
	var good, bad atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				status, body, err := get(c, "http://"+proxy.address+"/")
				switch {
				case err != nil:
					bad.Add(1)
				case status != http.StatusOK || !bytes.Equal(body, content):
					t.Errorf("%d with %d bytes of %d and no error", status, len(body), len(content))
					return
				default:
					good.Add(1)
				}
			}
		})
	}
	for cycle := range 3 {
		at := good.Load()
		eventually(t, fmt.Sprint("calls succeed, cycle ", cycle), func() bool { return good.Load() > at+50 })
		at = bad.Load()
		proxy.stop()
		eventually(t, fmt.Sprint("calls fail, cycle ", cycle), func() bool { return bad.Load() > at })
		proxy.start(t)
	}
	at := good.Load()
	eventually(t, "calls succeed at the end", func() bool { return good.Load() > at+50 })
	close(done)
	wg.Wait()
	eventually(t, "all permits are back", func() bool { return transport.Stats().Hosts[0].Limiter.Ledger.InFlight == 0 })
	t.Logf("%d calls succeeded, %d failed", good.Load(), bad.Load())
}
