package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cristalhq/hedgedhttp"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// BenchmarkHTTP is a GET whose hedge does not fire, its body read to the end: over a
// transport that answers at once, so that all that is measured is the wrapper, and
// over loopback. The rows of this module have a limit, a budget, the gates and a learnt
// delay; the others have a fixed delay and nothing else. BENCHMARKS.md of httpmw says
// what has come of it; the rows without a network are in the table of peers as well.
//
//	make bench-http
func BenchmarkHTTP(b *testing.B) {
	for _, net := range []struct {
		name string
		base func(*testing.B) (base http.RoundTripper, target string)
	}{
		{"null", func(*testing.B) (http.RoundTripper, string) { return null{}, "http://null.test/path" }},
		{"loopback", loopback},
	} {
		for _, goroutines := range []int{1, 16} {
			for _, impl := range []struct {
				name string
				wrap func(*testing.B, http.RoundTripper) http.RoundTripper
			}{
				{"by-hand", hedgedByHand},
				{"holdfast", hedgedByDefault},
				{"holdfast-fixed", hedgedByFixedLimit},
				{"hedgedhttp", hedgedByHedgedHTTP},
				{"failsafehttp", hedgedByFailsafe},
				{"plain", func(_ *testing.B, base http.RoundTripper) http.RoundTripper { return base }},
			} {
				b.Run(fmt.Sprintf("net=%s/goroutines=%d/impl=%s", net.name, goroutines, impl.name), func(b *testing.B) {
					base, target := net.base(b)
					transport := impl.wrap(b, base)
					// As in a server, each goroutine has a context of its own that can end.
					ctx, cancel := context.WithCancel(b.Context())
					defer cancel()
					for range 300 { // until delays are known and connections are open
						get(ctx, b, transport, target)
					}
					b.ReportAllocs()
					if goroutines == 1 {
						for b.Loop() {
							get(ctx, b, transport, target)
						}
						return
					}
					b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
					b.RunParallel(func(pb *testing.PB) {
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						for pb.Next() {
							get(ctx, b, transport, target)
						}
					})
				})
			}
		}
	}
}

// get makes a request, as no two calls may share one, and reads its answer.
func get(ctx context.Context, b *testing.B, transport http.RoundTripper, target string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		b.Error(err)
		return
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		b.Error(err)
		return
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		b.Error(err)
	}
	if err := answer.Body.Close(); err != nil {
		b.Error(err)
	}
}

// null answers at once.
type null struct{}

func (null) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode:    http.StatusOK,
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{},
		Body:          io.NopCloser(strings.NewReader("body")),
		ContentLength: 4,
		Request:       r,
	}, nil
}

// loopback returns a transport and the URL of a server that answers at once with 1 KiB.
func loopback(b *testing.B) (base http.RoundTripper, target string) {
	content := strings.Repeat("x", 1024)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, content) // a client that is gone fails the benchmark by itself
	}))
	b.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	return transport, server.URL
}

// hedgedByHand is what most people write, at its leanest: one goroutine for each
// attempt, one timer, one channel, and a body that ends the context when it is closed.
func hedgedByHand(_ *testing.B, base http.RoundTripper) http.RoundTripper {
	return byHand{base, time.Hour}
}

type byHand struct {
	base  http.RoundTripper
	delay time.Duration
}

func (h byHand) RoundTrip(r *http.Request) (*http.Response, error) {
	type result struct {
		number int
		answer *http.Response
		err    error
	}
	results := make(chan result, 2)
	var cancels [2]context.CancelFunc
	start := func(number int) {
		ctx, cancel := context.WithCancel(r.Context())
		cancels[number] = cancel
		go func() {
			answer, err := h.base.RoundTrip(r.WithContext(ctx))
			results <- result{number, answer, err}
		}()
	}
	start(0)
	running := 1
	timer := time.NewTimer(h.delay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			start(1)
			running++
		case got := <-results:
			running--
			cancel := cancels[got.number]
			if got.err != nil {
				cancel()
				if running > 0 {
					continue
				}
				return nil, got.err
			}
			if running > 0 {
				cancels[1-got.number]()
				go func() {
					if loser := <-results; loser.err == nil {
						_ = loser.answer.Body.Close() // nobody is left to tell
					}
				}()
			}
			got.answer.Body = &cancelAtClose{got.answer.Body, cancel}
			return got.answer, nil
		}
	}
}

type cancelAtClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelAtClose) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

func hedgedByDefault(b *testing.B, base http.RoundTripper) http.RoundTripper {
	return newTransport(b, base, httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Delay = neverDue()
		return nil
	}))
}

func hedgedByFixedLimit(b *testing.B, base http.RoundTripper) http.RoundTripper {
	return newTransport(b, base, httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Delay, c.Limiter = neverDue(), newFixedLimiter(b, 1<<10)
		return nil
	}))
}

// neverDue learns as the default does, and sends no hedge.
func neverDue() hedgedlimit.Delay {
	return hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Min: time.Hour})
}

func newTransport(b *testing.B, base http.RoundTripper, options ...httpmw.Option) *httpmw.Transport {
	b.Helper()
	t, err := httpmw.NewTransport(base, options...)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func hedgedByHedgedHTTP(b *testing.B, base http.RoundTripper) http.RoundTripper {
	t, err := hedgedhttp.NewRoundTripper(time.Hour, 2, base)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func hedgedByFailsafe(_ *testing.B, base http.RoundTripper) http.RoundTripper {
	return failsafehttp.NewRoundTripper(base, hedgepolicy.NewWithDelay[*http.Response](time.Hour))
}
