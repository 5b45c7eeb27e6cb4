package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/bench/internal/sweep"
)

// underWay counts the attempts that are truly under way, below the middleware and without a word
// from it, and holds them against the ledger of the limiter: there must be as many permits out at
// least. The zero value is ready, and its methods may be called from any goroutine.
//
// An attempt takes its permit before it begins here, and a sound middleware releases that only
// after the attempt has ended here. Both ends are made under mu. So while mu is held, the permit of
// each attempt that is counted is out: its grant happened before the begin, and its release is to
// happen after an end that has not got mu yet. In flight is read in between, and others can but add
// to it. A permit that comes back early is thus seen at the end of its attempt at the latest, unless
// another is out in that instant whose attempt has not begun or is over.
type underWay struct {
	mu sync.Mutex
	// Guarded by mu.

	ledgers []func() int // the permits out of each limiter; more than one may be made, for one host
	n       int          // attempts under way
	log     underWayLog
}

// underWayLog is what an underWay has seen.
type underWayLog struct {
	// attempts are those that have ended, from their begin to their end, on the wall clock.
	attempts []sweep.Interval
	// looks counts the comparisons with the ledger, bare those that found fewer permits out than
	// attempts under way, and most is how many fewer at most.
	looks, bare, most int
}

// watch adds a ledger, before any permit of it is granted: a middleware may make several and use one.
func (u *underWay) watch(inFlight func() int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ledgers = append(u.ledgers, inFlight)
}

// begin counts an attempt, which is to begin after it. The end of what is returned must be called
// once it is over.
func (u *underWay) begin() *underWayAttempt {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
	u.lookLocked()
	return &underWayAttempt{all: u, start: time.Now().UnixNano()}
}

// result looks once more, and returns all that was seen: when every permit is back, nothing may be
// under way any more.
func (u *underWay) result() underWayLog {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lookLocked()
	return u.log
}

// lookLocked compares with the ledger. u.mu must be held.
func (u *underWay) lookLocked() {
	u.log.looks++
	permits := 0
	for _, inFlight := range u.ledgers {
		permits += inFlight()
	}
	if u.n > permits {
		u.log.bare++
		u.log.most = max(u.log.most, u.n-permits)
	}
}

// underWayAttempt is one attempt.
type underWayAttempt struct {
	all   *underWay
	start int64
	ended bool // guarded by all.mu
}

// end takes the attempt out of the count. Calling it again does nothing.
func (a *underWayAttempt) end() {
	u := a.all
	u.mu.Lock()
	defer u.mu.Unlock()
	if a.ended {
		return
	}
	a.ended = true
	u.lookLocked()
	u.n--
	u.log.attempts = append(u.log.attempts, sweep.Interval{Start: a.start, End: time.Now().UnixNano()})
}

// intercept is the innermost interceptor of a channel: an attempt over gRPC is under way until its
// invoker returns. A stats.Handler would not do, since gRPC tells it of transparent retries that
// begin and never of their end.
func (u *underWay) intercept(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	defer u.begin().end()
	return invoker(ctx, method, request, reply, cc, opts...)
}

// underWayBase is the base of a transport: an attempt over HTTP is under way until RoundTrip has
// failed, or the body has been read to its end or closed.
type underWayBase struct {
	base http.RoundTripper
	all  *underWay
}

func (b underWayBase) RoundTrip(r *http.Request) (*http.Response, error) {
	a := b.all.begin()
	response, err := b.base.RoundTrip(r)
	if err != nil || response.Body == http.NoBody {
		a.end()
		return response, err
	}
	response.Body = &underWayBody{response.Body, a}
	return response, nil
}

// underWayBody ends its attempt before whoever reads it learns that it is over.
type underWayBody struct {
	inner   io.ReadCloser
	attempt *underWayAttempt
}

func (b *underWayBody) Read(p []byte) (int, error) {
	n, err := b.inner.Read(p)
	if err != nil {
		b.attempt.end()
	}
	return n, err
}

func (b *underWayBody) Close() error {
	defer b.attempt.end()
	return b.inner.Close()
}
