package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// canned answers without a network. A program has http.DefaultTransport there.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader("hello from " + r.URL.Path)), ContentLength: -1,
	}, nil
}

func ExampleNewTransport() {
	transport, err := httpmw.NewTransport(canned{},
		httpmw.WithConfig(func(host string, config *hedgedlimit.Config) error {
			// A fixed limit, so that the example prints the same each time.
			algorithm, err := gradient.NewFixed(1)
			if err != nil {
				return err
			}
			config.Limiter, err = limiter.New(limiter.Config{Name: host, Algorithm: algorithm})
			return err
		}))
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport}

	first, err := client.Get("http://api.test/first")
	if err != nil {
		panic(err)
	}
	// The permit is held until the body has been read to its end, or closed.
	_, err = client.Get("http://api.test/second")
	fmt.Println(err)

	body, err := io.ReadAll(first.Body)
	if err != nil {
		panic(err)
	}
	if err := first.Body.Close(); err != nil {
		panic(err)
	}
	fmt.Println(string(body))
	fmt.Println(transport.Stats().Hosts[0].Limiter.Ledger.InFlight, "in flight")
	// Output:
	// Get "http://api.test/second": limiter: limit exceeded
	// hello from /first
	// 0 in flight
}
