package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

// kind is what is to go wrong with a call.
type kind int

const (
	plain       kind = iota // nothing
	upload                  // nothing: a request with a body
	slowBody                // the answer comes in pieces
	aborted                 // the caller cancels
	closedEarly             // the caller closes a long body after its first bytes
	reset                   // the server resets the connection, half of them in the body
	panics                  // the base panics
	failing                 // the body of the request fails half-way
	early                   // the server answers before it has read the request
	dropped                 // the caller forgets the body
	droppedLong             // and it is so long that the server cannot get rid of it
	kept                    // the caller keeps the body open for ever: only to see the verdict fail

	numKinds
)

func (k kind) String() string {
	return [numKinds]string{
		"plain", "upload", "slow body", "aborted", "closed early", "connection reset", "panic in the base", "failing request body",
		"early answer", "dropped body", "dropped long body", "kept body",
	}[k]
}

// mix is how many of a thousand calls are of each kind.
var mix = [numKinds]int{
	plain: 620, upload: 80, slowBody: 80, aborted: 80, closedEarly: 20, reset: 40, panics: 25, failing: 25, early: 20, dropped: 8, droppedLong: 2,
}

// draw returns a kind.
func draw(random *rand.Rand) kind {
	n := random.IntN(1000)
	for k, share := range mix {
		if n -= share; n < 0 {
			return kind(k)
		}
	}
	return plain
}

const (
	// callTime bounds a call, so that none is forgotten by a server.
	callTime = 2 * time.Second
	// maxPatience is how long a caller waits at most before it cancels.
	maxPatience = 40 * time.Millisecond
	uploadSize  = 64 << 10
)

// end is how a call ended.
type end int

const (
	answered end = iota
	failed       // with a status of 5xx
	refused      // by the limit: nothing was sent
	broken       // with an error, most of them planned
	panicked

	numEnds
)

// call makes one call and reports how it ended. Wrong is what must not happen.
func (r *run) call(through http.RoundTripper, to *target, k kind, random *rand.Rand) (how end, wrong error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			how = panicked
			if k != panics || v != errPlanned { //nolint:errorlint // a panic value is to arrive unchanged
				wrong = fmt.Errorf("a call of kind %v panicked with %v", k, v)
			}
		}
	}()
	request, err := r.request(ctx, to, k, random)
	if err != nil {
		return broken, err
	}
	if k == aborted {
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(maxPatience))), cancel)
		defer timer.Stop()
	}
	answer, err := through.RoundTrip(request)
	switch {
	case errors.Is(err, limiter.ErrLimitExceeded):
		return refused, nil
	case err != nil:
		return broken, nil
	}
	switch k {
	case dropped, droppedLong:
		return answered, nil
	case kept:
		r.keep(answer)
		return answered, nil
	case closedEarly:
		_, err = io.ReadFull(answer.Body, make([]byte, 1))
	default:
		_, err = io.Copy(io.Discard, answer.Body)
	}
	_ = answer.Body.Close() // what matters is that it was called
	switch {
	case err != nil:
		return broken, nil
	case answer.StatusCode >= 500:
		return failed, nil
	}
	return answered, nil
}

// request makes a request of that kind, with a body that is counted where it has one.
func (r *run) request(ctx context.Context, to *target, k kind, random *rand.Rand) (*http.Request, error) {
	method := http.MethodGet
	var body func() io.ReadCloser
	switch k {
	case upload, early:
		body = func() io.ReadCloser { return io.NopCloser(bytes.NewReader(make([]byte, uploadSize))) }
	case failing:
		body = func() io.ReadCloser {
			return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, uploadSize/2)), failingReader{}))
		}
	}
	if body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, to.server.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(kindHeader, strconv.Itoa(int(k)))
	if body != nil {
		request.ContentLength = uploadSize
		request.Body = counted(body(), &r.base.requests)
		if random.IntN(2) == 0 { // may be sent twice
			request.Header.Set("Idempotency-Key", "soak")
			request.GetBody = func() (io.ReadCloser, error) { return counted(body(), &r.base.requests), nil }
		}
	}
	return request, nil
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errPlanned }
