// Faults that limiters and hedgers have shown in public, each told by a test under the
// number that it is known by here.

package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// admits tries n times for a permit, returns how often that went well, and gives all
// of them back.
func admits(l *limiter.Limiter, n int) int {
	var held []limiter.Permit
	for range n {
		if p, ok := l.TryAcquire(limiter.Bypass); ok {
			held = append(held, p)
		}
	}
	for _, p := range held {
		p.Release(permit.Ignored)
	}
	return len(held)
}

// Field case B02: a request that waits is sent when the body before it is at its end,
// has been closed, or has failed, and not before.
func TestNextRequestWaitsForTheEndOfTheBody(t *testing.T) {
	slow := script{headers: 10 * ms, body: "first", bodyTime: 190 * ms}
	broken := slow
	broken.bodyErr = io.ErrUnexpectedEOF
	for name, row := range map[string]struct {
		script script
		end    func(*http.Response)
	}{
		"EOF":     {slow, func(r *http.Response) { _, _ = io.Copy(io.Discard, r.Body) }},
		"failure": {broken, func(r *http.Response) { _, _ = io.Copy(io.Discard, r.Body) }},
		"Close":   {slow, func(r *http.Response) { time.Sleep(190 * ms); _ = r.Body.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, limiter.Unbounded)
				f := &fake{scripts: []script{row.script, {body: "second"}}}
				tr := transport(t, f, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				start := time.Now()
				first, err := tr.RoundTrip(get(t.Context(), t))
				if err != nil || time.Since(start) != 10*ms {
					t.Fatalf("%v after %v", err, time.Since(start))
				}
				go row.end(first)
				time.Sleep(40 * ms)
				if n := admits(l, 1); n != 0 || l.InFlight() != 1 {
					t.Errorf("at 50 ms %d were admitted, in flight %d", n, l.InFlight())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				second, err := tr.RoundTrip(get(ctx, t))
				if err != nil || time.Since(start) != 200*ms {
					t.Fatalf("the second request: %v, sent after %v, want 200ms", err, time.Since(start))
				}
				read(t, second)
				synctest.Wait()
				probe(t, l)
			})
		})
	}
}

// Field case B03: a hedge wins and its body is closed while the first attempt, deaf,
// runs on until 400 ms. Until then one of two tries succeeds.
func TestDeafLoserHoldsOneOfTwoPermits(t *testing.T) {
	for _, losers := range []hedgedlimit.LoserPolicy{hedgedlimit.Cancel(), hedgedlimit.Drain(time.Second)} {
		t.Run(losers.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				f := &fake{scripts: []script{
					{headers: 400 * ms, deaf: true, body: "late"}, {headers: 10 * ms, body: "quick", bodyTime: time.Hour},
				}}
				tr := transport(t, f, httpmw.WithHedger(hedged(t, l, 50*ms, losers)))
				start := time.Now()
				r, err := tr.RoundTrip(get(t.Context(), t))
				if err != nil || time.Since(start) != 60*ms {
					t.Fatalf("%v after %v", err, time.Since(start))
				}
				for _, row := range []struct {
					at   time.Duration
					free int
				}{{69 * ms, 0}, {70 * ms, 1}, {100 * ms, 1}, {399 * ms, 1}, {401 * ms, 2}} {
					time.Sleep(row.at - time.Since(start))
					if row.at == 70*ms {
						_ = r.Body.Close()
					}
					synctest.Wait()
					if n := admits(l, 2); n != row.free {
						t.Errorf("at %v %d of 2 were admitted, want %d", row.at, n, row.free)
					}
				}
				if f.peak != 2 || f.opened != 2 || f.closes != 2 {
					t.Errorf("%d at once, %d bodies opened, %d closed", f.peak, f.opened, f.closes)
				}
				probe(t, l)
			})
		})
	}
}

// Field case B07: a request that net/http itself refuses, a thousand times each: as many
// permits come back as were granted, and the caller has an error.
func TestInvalidRequestsCostNoPermit(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"no URL":        func(r *http.Request) { r.URL = nil },
		"empty URL":     func(r *http.Request) { r.URL = &url.URL{} },
		"no host":       func(r *http.Request) { r.URL.Host = "" },
		"odd scheme":    func(r *http.Request) { r.URL.Scheme = "gopher" },
		"odd method":    func(r *http.Request) { r.Method = "G T" },
		"odd header":    func(r *http.Request) { r.Header["x y"] = []string{"1"} },
		"header value":  func(r *http.Request) { r.Header["X"] = []string{"a\nb"} },
		"nil header":    func(r *http.Request) { r.Header, r.URL.Scheme = nil, "gopher" },
		"body, no host": func(r *http.Request) { r.Method, r.URL.Host, r.Body = "PUT", "", io.NopCloser(strings.NewReader("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				tr := transport(t, &http.Transport{}, httpmw.WithHedger(hedged(t, l, 10*ms, hedgedlimit.Cancel())))
				for range 1000 {
					r := get(t.Context(), t)
					change(r)
					if answer, err := tr.RoundTrip(r); answer != nil || err == nil {
						t.Fatalf("response %v, error %v", answer, err)
					}
				}
				synctest.Wait()
				if s := l.Stats().Ledger; s.Granted != released(l) || s.Released[permit.Success] != 0 {
					t.Errorf("%+v", s)
				}
				probe(t, l)
			})
		})
	}
}

// Field case B07: in each position, an attempt that fails before it has a body ends its
// own permit, once: as many come back as attempts were sent.
func TestEachFailedAttemptEndsItsOwnPermit(t *testing.T) {
	refused, nothing := script{err: errRefused}, script{null: true}
	for name, scripts := range map[string][]script{
		"error, primary":   {{headers: 5 * ms, err: errRefused}, {headers: 50 * ms, body: "retry"}},
		"nothing, primary": {{headers: 5 * ms, null: true}, {headers: 50 * ms, body: "retry"}},
		"error, hedge":     {{headers: 20 * ms, body: "primary"}, refused},
		"nothing, hedge":   {{headers: 20 * ms, body: "primary"}, nothing},
		"both":             {{headers: 20 * ms, err: errRefused}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				h := hedged(t, l, 10*ms, hedgedlimit.Cancel())
				sent := uint64(0)
				for range 1000 {
					f := &fake{scripts: scripts}
					r, err := transport(t, f, httpmw.WithHedger(h)).RoundTrip(get(t.Context(), t))
					if err == nil {
						read(t, r)
					} else if r != nil || name != "both" || !errors.Is(err, errRefused) {
						t.Fatalf("response %v, error %v", r, err)
					}
					synctest.Wait()
					sent += uint64(f.sent())
					if n := released(l); n != sent || f.sent() != 2 || l.InFlight() != 0 {
						t.Fatalf("%d permits came back from %d attempts, in flight %d", n, sent, l.InFlight())
					}
				}
				probe(t, l)
			})
		})
	}
}

// writerTo is a body that io.Copy would rather ask to write itself.
type writerTo struct {
	io.Reader
	closed atomic.Int32
	err    error
}

func (b *writerTo) Close() error { b.closed.Add(1); return b.err }

func (b *writerTo) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, b.Reader) }

// Field case B09: a body that can write itself ends its permit like any other, once,
// also if the writer fails half-way: then by Close.
func TestBodyThatWritesItselfEndsItsPermit(t *testing.T) {
	errClose := errors.New("close failed")
	for name, row := range map[string]struct {
		w       io.Writer
		n       int64
		copied  bool
		further func(*http.Response)
	}{
		"whole":        {io.Discard, 100_000, true, func(r *http.Response) { _, _ = io.Copy(io.Discard, r.Body) }},
		"writer fails": {failing{}, 0, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 1, 0)
				b := &writerTo{Reader: strings.NewReader(strings.Repeat("x", 100_000)), err: errClose}
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Body: b, Request: r}, nil
				})
				tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
				r, err := tr.RoundTrip(get(t.Context(), t))
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(row.w, r.Body)
				synctest.Wait()
				if n != row.n || (err == nil) != row.copied || admits(l, 1) == 1 != row.copied {
					t.Errorf("Copy returned %d, %v; in flight %d", n, err, l.InFlight())
				}
				if row.further != nil {
					row.further(r)
				}
				for range 2 {
					if err := r.Body.Close(); err != errClose { //nolint:errorlint // unchanged is what is asked
						t.Errorf("Close returned %v", err)
					}
				}
				synctest.Wait()
				if s := l.Stats().Ledger; released(l) != s.Granted || s.Released[permit.Success] != 1 {
					t.Errorf("%+v", s)
				}
				probe(t, l)
			})
		})
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errRefused }

// Field case B09: a body that is kept and neither read nor closed keeps its permit, and
// Stats shows it: in flight at the limit, and refusals. Dropped, it is counted as lost.
func TestForgottenBodyCanBeDiagnosed(t *testing.T) {
	l := fixed(t, 1, 0)
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: &writerTo{Reader: strings.NewReader("x")}}, nil
	})
	tr := transport(t, base, httpmw.WithHedger(hedged(t, l, time.Hour, hedgedlimit.Cancel())))
	func() {
		r, err := tr.RoundTrip(get(t.Context(), t))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			runtime.GC()
			if _, err := tr.RoundTrip(get(t.Context(), t)); err != limiter.ErrLimitExceeded { //nolint:errorlint // bare is what is asked
				t.Errorf("with a body open: %v", err)
			}
		}
		s := tr.Stats()
		if led := s.Hosts[0].Limiter.Ledger; led.InFlight != 1 || led.Limit != 1 || s.Hosts[0].Limiter.Rejected.Limit != 3 || s.LostBodies != 0 {
			t.Errorf("%+v", s)
		}
		runtime.KeepAlive(r)
	}()
	eventually(t, "the dropped body is counted", func() bool { runtime.GC(); return tr.Stats().LostBodies == 1 })
	settle(t, l)
}

// closer is a body of which each Close is counted, and may take time.
type closer struct {
	io.Reader
	takes  time.Duration
	onEach func()
	closes atomic.Int32
}

func (b *closer) Close() error {
	b.closes.Add(1)
	if b.onEach != nil {
		b.onEach()
	}
	time.Sleep(b.takes) // virtual
	return nil
}

// Field case B10: the caller leaves at 55 ms, both attempts answer at one second, and
// closing the first body takes two more. Each body is closed once, and holds its own
// permit and no other.
func TestEachUnwantedBodyHoldsItsOwnPermitOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 0)
		bodies := map[string]*closer{
			"1": {Reader: strings.NewReader("one"), takes: 2 * time.Second}, "2": {Reader: strings.NewReader("two")},
		}
		start := time.Now()
		base := roundTripper(func(r *http.Request) (*http.Response, error) { // deaf
			time.Sleep(time.Second - time.Since(start))
			return &http.Response{StatusCode: 200, Body: bodies[r.Header.Get(httpmw.AttemptHeader)]}, nil
		})
		tr := transport(t, base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 50*ms, hedgedlimit.Cancel())))
		ctx, cancel := context.WithTimeout(t.Context(), 55*ms)
		defer cancel()
		if _, err := tr.RoundTrip(get(ctx, t)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 55*ms {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		for at, free := range []int{0, 1, 1, 2} {
			time.Sleep(time.Duration(at)*time.Second + ms - time.Since(start))
			synctest.Wait()
			if n := admits(l, 2); n != free {
				t.Errorf("after %d s %d of 2 were admitted, want %d", at, n, free)
			}
		}
		for n, b := range bodies {
			if b.closes.Load() != 1 {
				t.Errorf("the body of attempt %s was closed %d times", n, b.closes.Load())
			}
		}
		probe(t, l)
	})
}

// Field case B17: Close of a body, of a winner and of a loser, may use the limiter, the
// statistics and the Transport.
func TestCloseOfABodyMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 40, 0)
		var tr *httpmw.Transport
		var uses atomic.Int32
		use := func() {
			if uses.Add(1) > 10 {
				return // a nested call closes a body, too
			}
			_, _, _ = l.InFlight(), l.Limit(), tr.Stats()
			admits(l, 1)
			r, err := tr.RoundTrip(get(t.Context(), t))
			if err != nil {
				t.Error(err)
				return
			}
			_ = r.Body.Close()
		}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" && r.Header.Get(httpmw.AttemptHeader) == "1" {
				time.Sleep(time.Second)
			}
			return &http.Response{StatusCode: 200, Body: &closer{Reader: strings.NewReader("body"), onEach: use}}, nil
		})
		tr = transport(t, base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 50*ms, hedgedlimit.Cancel())))
		done := make(chan struct{})
		go func() {
			defer close(done)
			req := get(t.Context(), t)
			req.URL.Path = "/slow"
			r, err := tr.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			_ = r.Body.Close()
			time.Sleep(2 * time.Second) // the loser's body is closed meanwhile
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatal("the call hangs")
		}
		synctest.Wait()
		if uses.Load() < 11 {
			t.Errorf("bodies were closed %d times", uses.Load())
		}
		probe(t, l)
	})
}
