package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/httpmw"
)

const (
	// serviceURL is what callers ask for. Its host is a name for the limit; where
	// an attempt goes is decided by the balancer.
	serviceURL = "http://downstream.test/work"

	// keptConnections to each replica are more than are ever used at once below
	// overload, so that connections are lost by cancellation only.
	keptConnections = 1024
)

// httpClient makes the calls of one row over HTTP, through httpmw.
type httpClient struct {
	http      *http.Client
	transport *httpmw.Transport
	base      *http.Transport
}

func newHTTPClient(e experiment, rec *recorder, addresses []string, seed uint64) (client, error) {
	base := newBase()
	transport, err := httpmw.NewTransport(underWayBase{base, &rec.underWay},
		httpmw.WithConfig(e.configure(rec)),
		httpmw.WithAttemptHeader(),
		httpmw.PickTarget(balancer(addresses, seed)),
	)
	if err != nil {
		return nil, err
	}
	return &httpClient{http: &http.Client{Transport: transport}, transport: transport, base: base}, nil
}

// newBase returns what is below every client. It has no proxy: the environment must not send
// loopback traffic elsewhere.
func newBase() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: keptConnections, DisableCompression: true}
}

// balancer sends the primary of each call to a replica that depends on the number
// of the call alone, and each attempt after it to the next replica.
func balancer(addresses []string, seed uint64) func(*http.Request, []*url.URL) *url.URL {
	return func(r *http.Request, tried []*url.URL) *url.URL {
		// A number that does not parse is refused by the service.
		call, _ := strconv.ParseUint(r.Header.Get(downstream.CallHeader), 10, 64)
		i := downstream.Rand(seed, replicaStream, call).IntN(len(addresses)) + len(tried)
		return &url.URL{Scheme: "http", Host: addresses[i%len(addresses)]}
	}
}

func (c *httpClient) do(ctx context.Context, call uint64) error { return doCall(ctx, c.http, call) }

// doCall makes one call and reads its answer to the end.
func doCall(ctx context.Context, client *http.Client, call uint64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, serviceURL, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set(downstream.CallHeader, strconv.FormatUint(call, 10))
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read to its end by then, or failed
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered with %s", response.Status)
	}
	return nil
}

func (c *httpClient) stats() clientStats {
	if hosts := c.transport.Stats().Hosts; len(hosts) > 0 {
		return clientStats{hosts[0].Limiter, hosts[0].Hedging}
	}
	return clientStats{}
}

func (c *httpClient) close(ctx context.Context) error {
	defer c.base.CloseIdleConnections()
	return c.transport.Close(ctx)
}
