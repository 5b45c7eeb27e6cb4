package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cristalhq/hedgedhttp"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// nullTransport answers at once.
type nullTransport struct{}

func (nullTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("done")), Request: r}, nil
}

// BenchmarkRoundTrip is a request whose hedge does not fire, through a transport that answers at
// once. The row of this module has a limit, a budget and the gates, those of the others a delay.
func BenchmarkRoundTrip(b *testing.B) {
	for _, row := range []struct {
		name string
		wrap func() (http.RoundTripper, error)
	}{
		{"holdfast", func() (http.RoundTripper, error) {
			return httpmw.NewTransport(nullTransport{}, httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
				c.Delay = hedgedlimit.Fixed(time.Hour)
				return nil
			}))
		}},
		{"plain", func() (http.RoundTripper, error) { return nullTransport{}, nil }},
		{"hedgedhttp", func() (http.RoundTripper, error) { return hedgedhttp.NewRoundTripper(time.Hour, 2, nullTransport{}) }},
		{"failsafe", func() (http.RoundTripper, error) {
			return failsafehttp.NewRoundTripper(nullTransport{}, hedgepolicy.NewWithDelay[*http.Response](time.Hour)), nil
		}},
	} {
		for _, goroutines := range []int{1, 16} {
			b.Run(row.name+"/goroutines="+strconv.Itoa(goroutines), func(b *testing.B) {
				tr, err := row.wrap()
				if err != nil {
					b.Fatal(err)
				}
				call := func() error {
					// Of its own, as a client's is: a body or a context may be changed on the way.
					r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, serviceURL, http.NoBody)
					if err != nil {
						return err
					}
					response, err := tr.RoundTrip(r)
					if err != nil {
						return err
					}
					_, err = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					return err
				}
				b.ReportAllocs()
				if goroutines == 1 {
					for b.Loop() {
						if err := call(); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.SetParallelism(goroutines / 2) // two cores
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := call(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
