package httpmw_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// script is what the fake transport does with one attempt.
type script struct {
	headers time.Duration // until RoundTrip returns
	deaf    bool          // goes on when the context has ended
	err     error         // returned in place of a response
	null    bool          // returns neither
	panics  any
	unread  bool // leaves the request body open until the response body has ended

	status    int    // 0 is 200
	body      string // "" is http.NoBody, unless bodyTime is set
	bodyTime  time.Duration
	bodyErr   error // in place of io.EOF
	eofAtOnce bool  // the last bytes come together with the end
	writable  bool
	closeTime time.Duration // how long Close blocks if the body has not ended
	closeErr  error
}

// fake is a RoundTripper that follows scripts, the last of which serves all
// further attempts. It counts on its own how many attempts have not ended.
type fake struct {
	scripts []script

	mu       sync.Mutex
	requests []*http.Request
	running  int
	peak     int
	opened   int // response bodies
	closes   int // calls of Close of response bodies
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	n := len(f.requests)
	f.requests = append(f.requests, r)
	f.running++
	f.peak = max(f.peak, f.running)
	f.mu.Unlock()
	s := f.scripts[min(n, len(f.scripts)-1)]

	ended := sync.OnceFunc(func() { f.add(&f.running, -1) })
	if s.panics != nil {
		ended()
		panic(s.panics)
	}
	if err := pause(r.Context(), s.headers, s.deaf); err != nil {
		closeBody(r)
		ended()
		return nil, err
	}
	if s.err != nil || s.null {
		closeBody(r)
		ended()
		return nil, s.err
	}
	answer := &http.Response{StatusCode: max(s.status, 200), Header: http.Header{}, Request: r, Body: http.NoBody, ContentLength: -1}
	if s.status == 101 {
		answer.StatusCode = 101
	}
	if s.body == "" && s.bodyTime == 0 {
		closeBody(r)
		ended()
		return answer, nil
	}
	f.add(&f.opened, 1)
	b := &fakeBody{fake: f, script: s, ctx: r.Context(), rest: bytes.NewReader([]byte(s.body)), ready: time.Now().Add(s.bodyTime), ended: ended}
	if s.unread {
		b.ended = func() { closeBody(r); ended() }
	} else {
		closeBody(r)
	}
	answer.Body = b
	if s.writable {
		answer.Body = struct {
			*fakeBody
			io.Writer
		}{b, io.Discard}
	}
	return answer, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

func (f *fake) add(p *int, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*p += n
}

func (f *fake) get(p *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *p
}

// request returns the n-th request that came in, from 0.
func (f *fake) request(n int) *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[n]
}

func (f *fake) sent() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// pause waits for d, or for the context unless the attempt is deaf.
func pause(ctx context.Context, d time.Duration, deaf bool) error {
	if d <= 0 && deaf {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	done := ctx.Done()
	if deaf {
		done = nil
	}
	select {
	case <-timer.C:
		return nil
	case <-done:
		return context.Cause(ctx)
	}
}

type fakeBody struct {
	fake   *fake
	script script
	ctx    context.Context
	rest   *bytes.Reader
	ready  time.Time // when the end comes
	ended  func()
	over   atomic.Bool // ended by Read
}

func (b *fakeBody) Read(p []byte) (int, error) {
	n, err := b.rest.Read(p)
	switch {
	case n > 0 && b.script.eofAtOnce && b.rest.Len() == 0:
		err = io.EOF
	case n > 0:
		return n, nil
	}
	if cut := pause(b.ctx, time.Until(b.ready), b.script.deaf); cut != nil {
		b.over.Store(true)
		b.ended()
		return n, cut
	}
	if b.script.bodyErr != nil {
		err = b.script.bodyErr
	}
	b.over.Store(true)
	b.ended()
	return n, err
}

func (b *fakeBody) Close() error {
	b.fake.add(&b.fake.closes, 1)
	if b.script.closeTime > 0 && !b.over.Load() {
		time.Sleep(b.script.closeTime) // virtual
	}
	b.ended()
	return b.script.closeErr
}

// tb is what *testing.T, *testing.B and *rapid.T have in common here.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// fixed is a limiter of n without surprises: the limit does not move, hedges may
// take the last permit, and nobody waits unless waiting says so.
func fixed(t tb, n, waiting int) *limiter.Limiter {
	t.Helper()
	algorithm, err := gradient.NewFixed(n)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: waiting, Reserve: limiter.NoReserve})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hedged makes a hedger over l that hedges after delay, without a budget.
func hedged(t tb, l *limiter.Limiter, delay time.Duration, losers hedgedlimit.LoserPolicy) *hedgedlimit.Hedger {
	t.Helper()
	h, err := hedgedlimit.New(hedgedlimit.Config{
		Gates: hedgedlimit.NoGates, Limiter: l, Delay: hedgedlimit.Fixed(delay), Budget: hedgedlimit.Unlimited, Losers: losers,
		OnPanic: func(any, []byte) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func transport(t tb, base http.RoundTripper, opts ...httpmw.Option) *httpmw.Transport {
	t.Helper()
	tr, err := httpmw.NewTransport(base, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func get(ctx context.Context, t tb) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host.test/path", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// probe checks that everything has come back: nothing in flight, and as many
// permits to be had as the limit says.
func probe(t tb, l *limiter.Limiter) {
	t.Helper()
	if n := l.InFlight(); n != 0 {
		t.Fatalf("in flight at rest: %d", n)
	}
	var held []limiter.Permit
	for {
		p, ok := l.TryAcquire(limiter.Bypass)
		if !ok {
			break
		}
		held = append(held, p)
	}
	for _, p := range held {
		p.Release(permit.Ignored)
	}
	if len(held) != l.Limit() {
		t.Fatalf("%d permits were free at rest, the limit is %d", len(held), l.Limit())
	}
}

// eventually waits, in real time, for something that other goroutines bring about.
func eventually(t tb, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// settle waits, in real time, for the last permit, and probes then.
func settle(t tb, l *limiter.Limiter) {
	t.Helper()
	eventually(t, "nothing is in flight", func() bool { return l.InFlight() == 0 })
	probe(t, l)
}

func read(t tb, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("reading the body: %v", err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatalf("closing the body: %v", err)
	}
	return string(data)
}

var errRefused = errors.New("connection refused")
