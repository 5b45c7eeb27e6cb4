package soak

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// errPlanned is what the base panics with, and what the body of a request fails with.
var errPlanned = errors.New("soak: as planned")

// base counts what is open in the transport below.
type base struct {
	inner      http.RoundTripper
	roundTrips atomic.Int64 // that run
	responses  atomic.Int64 // bodies that are not closed
	requests   atomic.Int64 // likewise
}

func (b *base) RoundTrip(r *http.Request) (*http.Response, error) {
	b.roundTrips.Add(1)
	defer b.roundTrips.Add(-1)
	if kindOf(r.Header) == panics {
		panic(errPlanned)
	}
	answer, err := b.inner.RoundTrip(r)
	if err == nil {
		answer.Body = counted(answer.Body, &b.responses)
	}
	return answer, err
}

// countedBody is open until its first Close.
type countedBody struct {
	io.ReadCloser
	closed func()
}

func counted(body io.ReadCloser, open *atomic.Int64) io.ReadCloser {
	open.Add(1)
	return &countedBody{body, sync.OnceFunc(func() { open.Add(-1) })}
}

func (c *countedBody) Close() error {
	defer c.closed()
	return c.ReadCloser.Close()
}
