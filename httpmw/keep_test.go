package httpmw_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// stalling is a body that gives its parts one after the other, each after a time, or ends
// when it is closed.
type stalling struct {
	every  time.Duration
	parts  []string
	closed chan struct{}
}

func (b *stalling) Read(p []byte) (int, error) {
	select {
	case <-time.After(b.every):
	case <-b.closed:
		return 0, net.ErrClosed
	}
	if len(b.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.parts[0])
	b.parts = b.parts[1:]
	return n, nil
}

func (b *stalling) Close() error { close(b.closed); return nil }

// A failed answer whose body does not come to its end soon holds nobody up: it is passed
// on if its attempt is alone, with all that was read of it, and given up else. Its permit
// is out until its end.
func TestSlowBodyOfAFailureHoldsNobodyUp(t *testing.T) {
	parts := []string{"one ", "two ", "three"}
	for name, row := range map[string]struct {
		every  time.Duration // between the parts of the first attempt's body
		delay  time.Duration // of the hedge, which has a good answer after 40 ms
		status int
		after  time.Duration
		held   int // in flight then, the answer's own included
		sent   int32
	}{
		"soon enough":      {20 * ms, time.Hour, 200, 120 * ms, 0, 2},
		"trickles, alone":  {70 * ms, time.Hour, 503, 100 * ms, 1, 1},
		"stalls, alone":    {time.Minute, time.Hour, 503, 100 * ms, 1, 1},
		"trickles, hedged": {70 * ms, 90 * ms, 200, 130 * ms, 0, 2},
		"stalls, hedged":   {time.Minute, 90 * ms, 200, 130 * ms, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				var sent atomic.Int32
				base := roundTripper(func(*http.Request) (*http.Response, error) {
					if sent.Add(1) == 1 {
						return &http.Response{StatusCode: 503, ContentLength: -1, Body: &stalling{row.every, parts, make(chan struct{})}}, nil
					}
					time.Sleep(40 * ms)
					return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
				})
				began := time.Now()
				r, err := transport(t, base, configured(t, l, row.delay, nil)).RoundTrip(get(t.Context(), t))
				if err != nil || r.StatusCode != row.status || time.Since(began) != row.after || sent.Load() != row.sent {
					t.Fatalf("%+v, %v, after %v and %d attempts", r, err, time.Since(began), sent.Load())
				}
				synctest.Wait()
				if l.InFlight() != row.held {
					t.Errorf("in flight: %d, want %d", l.InFlight(), row.held)
				}
				if row.status == 503 {
					if body, at := read(t, r), 4*row.every; body != "one two three" || time.Since(began) != at {
						t.Errorf("%q after %v, want all after %v", body, time.Since(began), at)
					}
				}
				synctest.Wait()
				probe(t, l)
			})
		})
	}
}

// The body of a slow failure may be closed while it stalls, also while it is being read.
func TestSlowBodyOfAFailureCanBeClosed(t *testing.T) {
	for _, reading := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := fixed(t, 1, 0)
			base := roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, ContentLength: -1, Body: &stalling{time.Hour, nil, make(chan struct{})}}, nil
			})
			r, err := transport(t, base, configured(t, l, time.Hour, nil)).RoundTrip(get(t.Context(), t))
			if err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			if reading {
				go func() { _, err := r.Body.Read(make([]byte, 1)); over <- err }()
				synctest.Wait()
			}
			_ = r.Body.Close()
			if !reading {
				_, err := r.Body.Read(make([]byte, 1))
				over <- err
			}
			if err := <-over; err != http.ErrBodyReadAfterClose { //nolint:errorlint // the error itself
				t.Errorf("Read returned %v", err)
			}
			synctest.Wait()
			probe(t, l)
		})
	}
}

// The answer that was kept is the caller's if its deadline ends the call while a further
// attempt runs; without us it would have had it at once. A caller that cancels gets the
// cause.
func TestKeptAnswerOutlivesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 0)
		tr := transport(t, &fake{scripts: []script{{status: 503, body: "busy"}, {headers: time.Hour}}}, configured(t, l, time.Minute, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := tr.RoundTrip(get(ctx, t))
		if err != nil || r.StatusCode != 503 || read(t, r) != "busy" {
			t.Errorf("at the deadline: response %v, error %v, want the 503", r, err)
		}
		synctest.Wait()
		probe(t, l)

		tr = transport(t, &fake{scripts: []script{{status: 503, body: "busy"}, {headers: time.Hour}}}, configured(t, l, time.Minute, nil))
		canceled, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { leave(errOwn) })
		if r, err := tr.RoundTrip(get(canceled, t)); r != nil || err != errOwn { //nolint:errorlint // the cause itself
			t.Errorf("cancelled: response %v, error %v, want the cause", r, err)
		}
		synctest.Wait()
		probe(t, l)
	})
}

// After Close, the body of an answer that was kept says what the base's would.
func TestKeptBodyIsClosed(t *testing.T) {
	for _, after := range []int{0, 2} {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"60"}}, Body: &slowBody{rest: strings.NewReader("busy"),
				answer: &http.Response{Trailer: http.Header{}}, ctx: t.Context()}}, nil
		})
		r, err := transport(t, base, configured(t, fixed(t, 1, 0), time.Hour, nil)).RoundTrip(get(t.Context(), t))
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, after)
		_, _ = io.ReadFull(r.Body, p)
		_ = r.Body.Close()
		if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose { //nolint:errorlint // unchanged
			t.Errorf("after %d bytes and Close: %d bytes and %v", after, n, err)
		}
	}
}

// An announced length is believed: nothing is read of an answer that is too long.
func TestAnnouncedLengthIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &counting{Reader: bytes.NewReader(make([]byte, 1<<20))}
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 500, ContentLength: 1 << 20, Body: body}, nil
		})
		l := fixed(t, 2, 0)
		r, err := transport(t, base, configured(t, l, time.Hour, nil)).RoundTrip(get(t.Context(), t))
		if err != nil || body.reads != 0 {
			t.Fatalf("error %v, read %d times", err, body.reads)
		}
		if n := len(read(t, r)); n != 1<<20 {
			t.Errorf("%d bytes of 1 MiB", n)
		}
		synctest.Wait()
		probe(t, l)
	})
}

// counting is a body that counts its reads.
type counting struct {
	io.Reader
	reads int
}

func (c *counting) Read(p []byte) (int, error) { c.reads++; return c.Reader.Read(p) }
func (c *counting) Close() error               { return nil }

// The body of a failed answer is read to keep it, which is no latency of the host.
func TestReadingAFailedBodyIsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := script{headers: 10 * ms, status: 500, body: "sorry", bodyTime: 90 * ms}
		l := fixed(t, 2, 0)
		tr := transport(t, &fake{scripts: []script{slow}}, configured(t, l, 0, func(c *hedgedlimit.Config) {
			c.Delay = hedgedlimit.Quantile(hedgedlimit.QuantileConfig{MinSamples: 20, Min: time.Microsecond})
			c.Budget = &listener{empty: true} // no second attempt: all are read to be kept
		}))
		for range 30 {
			r, err := tr.RoundTrip(get(t.Context(), t))
			if err != nil || read(t, r) != "sorry" {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s := tr.Stats().Hosts[0].Hedging; !s.DelayKnown || s.Delay < 9*ms || s.Delay > 12*ms {
			t.Errorf("the delay is %v (%v), want 10 ms", s.Delay, s.DelayKnown)
		}
		probe(t, l)
	})
}
