package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// fakeLedger is a limiter whose permits come back when the test says so.
type fakeLedger struct{ out int }

func (f *fakeLedger) inFlight() int { return f.out }

// A permit that comes back before its attempt has ended is seen, and one that comes back after it is
// not.
func TestUnderWaySeesPermitsThatComeBackEarly(t *testing.T) {
	for _, tt := range []struct {
		name             string
		f                func(f *fakeLedger, u *underWay)
		looks, bare, gap int
	}{
		{"as it should be", func(f *fakeLedger, u *underWay) {
			f.out = 2
			a, b := u.begin(), u.begin()
			a.end()
			f.out = 1
			b.end()
			f.out = 0
		}, 5, 0, 0},
		{"before the work begins", func(f *fakeLedger, u *underWay) {
			f.out = 0
			u.begin().end()
		}, 3, 2, 1},
		{"in the middle of it", func(f *fakeLedger, u *underWay) {
			f.out = 2
			a, b := u.begin(), u.begin()
			f.out = 1 // that of b, whose call has been decided
			a.end()
			f.out = 0
			b.end()
		}, 5, 2, 1},
		{"of three at once", func(f *fakeLedger, u *underWay) {
			f.out = 3
			a, b, c := u.begin(), u.begin(), u.begin()
			f.out = 0
			a.end()
			b.end()
			c.end()
		}, 7, 3, 3},
		{"of one that has not ended when all is over", func(f *fakeLedger, u *underWay) {
			f.out = 1
			u.begin()
			f.out = 0
		}, 2, 1, 1},
		{"an attempt ends once", func(f *fakeLedger, u *underWay) {
			f.out = 2
			a, b := u.begin(), u.begin()
			a.end()
			a.end()
			f.out = 0
			b.end()
		}, 5, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f fakeLedger
			var u underWay
			u.watch(f.inFlight)
			tt.f(&f, &u)
			log := u.result()
			if log.looks != tt.looks || log.bare != tt.bare || log.most != tt.gap {
				t.Errorf("%d looks, %d of them bare, up to %d; want %d, %d, %d", log.looks, log.bare, log.most, tt.looks, tt.bare, tt.gap)
			}
			for _, a := range log.attempts {
				if a.Start == 0 || a.End < a.Start {
					t.Errorf("an attempt was from %d to %d", a.Start, a.End)
				}
			}
			// What was seen breaks the law, in a row that cancels its losers too.
			m := &measurement{underWay: log, maxLimit: 3, report: &downstream.Report{}}
			r := round{Rows: make([]row, 1)}
			m.check(&r.Rows[0])
			r.judge()
			if broken := len(r.Verdict.Broken) > 0; broken != (tt.bare > 0) {
				t.Errorf("broken: %q", r.Verdict.Broken)
			}
		})
	}
}

// It does not matter in which of several ledgers a permit is, and where there is none it is out of
// none.
func TestUnderWayAddsLedgersUp(t *testing.T) {
	var u underWay
	u.begin().end()
	for range 2 {
		u.watch((&fakeLedger{1}).inFlight)
	}
	a, b, c := u.begin(), u.begin(), u.begin()
	a.end()
	b.end()
	c.end()
	if log := u.result(); log.looks != 9 || log.bare != 4 || log.most != 1 {
		t.Errorf("%d of %d looks were bare, up to %d, want 4 of 9, up to 1", log.bare, log.looks, log.most)
	}
}

// tripper is a RoundTripper that is a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An attempt over HTTP is under way until its answer has been read or closed, or has failed.
func TestUnderWayBaseEndsWithTheBody(t *testing.T) {
	boom := errors.New("boom")
	broken := io.MultiReader(strings.NewReader("x"), tripReader{boom})
	for _, tt := range []struct {
		name string
		body io.ReadCloser
		err  error
		end  func(io.ReadCloser) // nil: it has ended with the round trip
	}{
		{name: "failed", err: boom},
		{name: "no body", body: http.NoBody},
		{name: "read", body: io.NopCloser(strings.NewReader("text")), end: func(b io.ReadCloser) { _, _ = io.Copy(io.Discard, b) }},
		{name: "broken off", body: io.NopCloser(broken), end: func(b io.ReadCloser) { _, _ = io.Copy(io.Discard, b) }},
		{name: "closed", body: io.NopCloser(strings.NewReader("text")), end: func(b io.ReadCloser) { _ = b.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var u underWay
			u.watch(func() int { return 1 })
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, serviceURL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			base := tripper(func(*http.Request) (*http.Response, error) {
				if u.n != 1 {
					t.Errorf("%d attempts are under way in the round trip, want 1", u.n)
				}
				if tt.err != nil {
					return nil, tt.err
				}
				return &http.Response{Body: tt.body}, nil
			})
			response, err := underWayBase{base, &u}.RoundTrip(r)
			if !errors.Is(err, tt.err) {
				t.Fatal(err)
			}
			if tt.end != nil {
				if u.n != 1 {
					t.Errorf("%d attempts are under way before the body has ended, want 1", u.n)
				}
				tt.end(response.Body)
				_ = response.Body.Close() // as callers do, whatever came before
			}
			if u.n != 0 || len(u.log.attempts) != 1 {
				t.Errorf("%d attempts are under way and %d have ended, want 0 and 1", u.n, len(u.log.attempts))
			}
		})
	}
}

// tripReader fails.
type tripReader struct{ err error }

func (r tripReader) Read([]byte) (int, error) { return 0, r.err }

// An attempt over gRPC is under way until its invoker returns, or panics.
func TestUnderWayInterceptorEndsWithTheInvoker(t *testing.T) {
	for _, panics := range []bool{false, true} {
		var u underWay
		u.watch(func() int { return 1 })
		boom := errors.New("boom")
		err := func() (err error) {
			defer func() { _ = recover() }()
			return u.intercept(t.Context(), "method", "request", "reply", nil, func(_ context.Context, method string, request, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				if u.n != 1 || method != "method" || request != "request" || reply != "reply" || len(opts) != 1 {
					t.Errorf("%d attempts are under way; invoked with %v, %v, %v, %v", u.n, method, request, reply, opts)
				}
				if panics {
					panic(boom)
				}
				return boom
			}, grpc.EmptyCallOption{})
		}()
		if !panics && !errors.Is(err, boom) {
			t.Errorf("error %v, want that of the invoker", err)
		}
		if u.n != 0 || len(u.log.attempts) != 1 {
			t.Errorf("%d attempts are under way and %d have ended, want 0 and 1", u.n, len(u.log.attempts))
		}
	}
}
