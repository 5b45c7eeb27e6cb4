package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/permit"
)

const ms = time.Millisecond

// Field case B10: a response that comes after the race is closed exactly once, and
// only then is its permit released. The caller does not wait for it.
func TestLoserWithOpenBody(t *testing.T) {
	late := script{headers: time.Second, deaf: true, body: "late"}
	quick := script{headers: 10 * ms, body: "quick"}
	blocking := late
	blocking.closeTime = 2 * time.Second
	streaming := late
	streaming.bodyTime = time.Hour
	failed := late
	failed.status = 503
	for name, row := range map[string]struct {
		scripts []script
		losers  hedgedlimit.LoserPolicy
		drain   int64
		timeout time.Duration // of the caller
		free    time.Duration // when all permits are back
		closes  int           // of bodies
	}{
		"late":              {[]script{late, quick}, hedgedlimit.Cancel(), 1 << 10, 0, time.Second, 2},
		"caller leaves":     {[]script{late}, hedgedlimit.Cancel(), 1 << 10, 55 * ms, 1050 * ms, 2},
		"Close blocks":      {[]script{blocking, quick}, hedgedlimit.Cancel(), 1 << 10, 0, 3 * time.Second, 2},
		"failed":            {[]script{failed, quick}, hedgedlimit.Cancel(), 1 << 10, 0, time.Second, 2},
		"drained":           {[]script{late, quick}, hedgedlimit.Drain(2 * time.Second), 1 << 10, 0, time.Second, 2},
		"drained too long":  {[]script{streaming, quick}, hedgedlimit.Drain(2 * time.Second), 2, 0, time.Second, 2},
		"drained not a bit": {[]script{streaming, quick}, hedgedlimit.Drain(2 * time.Second), 0, 0, time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				f := &fake{scripts: row.scripts}
				tr := transport(t, f, httpmw.DrainBytes(row.drain), httpmw.WithHedger(hedged(t, l, 50*ms, row.losers)))
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				want := 60 * ms
				if row.timeout > 0 {
					want = row.timeout
					time.AfterFunc(row.timeout, stop)
				}
				start := time.Now()
				r, err := tr.RoundTrip(get(ctx, t))
				if got := time.Since(start); got != want {
					t.Errorf("RoundTrip returned after %v, want %v", got, want)
				}
				if row.timeout > 0 {
					if err != context.Canceled { //nolint:errorlint // bare is what is asked
						t.Errorf("error %v, want context.Canceled", err)
					}
				} else if err != nil || read(t, r) != "quick" {
					t.Errorf("response %v, error %v", r, err)
				}
				time.Sleep(row.free - time.Since(start) - time.Nanosecond)
				synctest.Wait()
				if l.InFlight() == 0 {
					t.Errorf("nothing in flight just before %v", row.free)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				probe(t, l)
				if f.closes != row.closes {
					t.Errorf("bodies were closed %d times, want %d", f.closes, row.closes)
				}
			})
		})
	}
}

// Field case B07: whatever fails before there is a body to wait for, the permit
// comes back and the caller gets an error.
func TestFailsBeforeBody(t *testing.T) {
	noURL := func(r *http.Request) { r.URL = nil }
	post := func(r *http.Request) {
		r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader("body"))
		r.Header.Set("Idempotency-Key", "1")
		r.GetBody = func() (io.ReadCloser, error) { return nil, errRefused }
	}
	slow := script{headers: 20 * ms, body: "primary"}
	for name, row := range map[string]struct {
		scripts []script
		change  func(*http.Request)
		ok      bool
		sent    int
	}{
		"error":               {[]script{{err: errRefused}}, nil, false, 2},
		"error of the hedge":  {[]script{slow, {err: errRefused}}, nil, true, 2},
		"nothing":             {[]script{{null: true}}, nil, false, 2},
		"nothing, the hedge":  {[]script{slow, {null: true}}, nil, true, 2},
		"no URL":              {[]script{{}}, noURL, false, 0},
		"GetBody of a hedge":  {[]script{slow}, post, true, 1},
		"GetBody of a retry":  {[]script{{err: errRefused}}, post, false, 1},
		"both at odd moments": {[]script{{headers: 10 * ms, err: errRefused}, {headers: 0, null: true}}, nil, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				h := hedged(t, l, 10*ms, hedgedlimit.Cancel())
				for range 1000 {
					f := &fake{scripts: row.scripts}
					tr := transport(t, f, httpmw.WithHedger(h))
					req := get(t.Context(), t)
					if row.change != nil {
						row.change(req)
					}
					r, err := tr.RoundTrip(req)
					switch {
					case (err == nil) != row.ok || (r == nil) == row.ok:
						t.Fatalf("response %v, error %v", r, err)
					case row.ok:
						read(t, r)
					}
					synctest.Wait()
					if f.sent() != row.sent {
						t.Fatalf("%d attempts were sent, want %d", f.sent(), row.sent)
					}
					if l.InFlight() != 0 {
						t.Fatalf("in flight: %d", l.InFlight())
					}
				}
				probe(t, l)
			})
		})
	}
}

// Field case B43: only what is safe to send twice is.
func TestMethods(t *testing.T) {
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "1") }
	upgrade := func(r *http.Request) { r.Header.Set("Upgrade", "websocket") }
	expect := func(r *http.Request) { r.Header.Set("Expect", "100-continue") }
	once := func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("once")) }
	noBody := func(r *http.Request) { r.Body = http.NoBody }
	all := httpmw.Hedgeable(func(*http.Request) bool { return true })
	none := httpmw.Hedgeable(func(r *http.Request) bool { return r.URL.Path != "/path" })
	for _, row := range []struct {
		method string
		change func(*http.Request)
		option httpmw.Option
		sent   int
	}{
		{"GET", nil, nil, 2}, {"", nil, nil, 2}, {"HEAD", nil, nil, 2}, {"OPTIONS", nil, nil, 2}, {"TRACE", nil, nil, 2},
		{"PUT", nil, nil, 1}, {"DELETE", nil, nil, 1}, {"POST", nil, nil, 1}, {"PATCH", nil, nil, 1}, {"BREW", nil, nil, 1}, {"get", nil, nil, 1},
		{"POST", key, nil, 2}, {"POST", nil, all, 2}, {"GET", nil, none, 1}, {"POST", key, none, 1},
		{"GET", noBody, nil, 2}, {"GET", once, nil, 1}, {"GET", once, all, 1},
		{"GET", upgrade, all, 1}, {"GET", expect, all, 1}, {"CONNECT", key, all, 1},
	} {
		t.Run(fmt.Sprint(row.method, " ", row.sent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				f := &fake{scripts: []script{{headers: 100 * ms, body: "slow"}}}
				options := []httpmw.Option{httpmw.WithHedger(hedged(t, l, 1*ms, hedgedlimit.Cancel()))}
				if row.option != nil {
					options = append(options, row.option)
				}
				req := get(t.Context(), t)
				req.Method = row.method
				if row.change != nil {
					row.change(req)
				}
				r, err := transport(t, f, options...).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = r.Body.Close()
				synctest.Wait()
				if f.sent() != row.sent {
					t.Errorf("%s was sent %d times, want %d", row.method, f.sent(), row.sent)
				}
				probe(t, l)
			})
		})
	}
}

// Field case B48: a failed answer does not win against a good one, and is returned
// if there is nothing better.
func TestVerdicts(t *testing.T) {
	answer := func(after time.Duration, status int) script {
		return script{headers: after, status: status, body: fmt.Sprint("body of ", status)}
	}
	long := answer(60*ms, 503)
	long.body = strings.Repeat("x", 64<<10+1)
	whole := answer(60*ms, 503)
	whole.body = strings.Repeat("x", 64<<10)
	broken := answer(60*ms, 503)
	broken.bodyErr = io.ErrUnexpectedEOF
	down := script{headers: 1 * ms, err: errRefused}
	short, brief := long, broken // there while the primary still runs
	short.headers, brief.headers = 10*ms, 10*ms
	kept, slow := answer(100*ms, 502), broken // both are read before either has failed
	kept.bodyTime, slow.headers, slow.bodyTime = 10*ms, 10*ms, 60*ms
	for name, row := range map[string]struct {
		scripts []script
		status  int // 0: an error
		after   time.Duration
		sent    int
	}{
		"bad hedge, good primary": {[]script{answer(100*ms, 200), answer(10*ms, 503)}, 200, 100 * ms, 2},
		"bad primary, good hedge": {[]script{answer(60*ms, 503), answer(50*ms, 200)}, 200, 100 * ms, 2},
		"both bad":                {[]script{answer(100*ms, 503), answer(10*ms, 500)}, 500, 100 * ms, 2},
		"404 is an answer":        {[]script{answer(100*ms, 200), answer(10*ms, 404)}, 404, 60 * ms, 2},
		"429, then 200":           {[]script{answer(1*ms, 429), answer(1*ms, 200)}, 200, 2 * ms, 2},
		"408, then 200":           {[]script{answer(1*ms, 408), answer(1*ms, 200)}, 200, 2 * ms, 2},
		"425, then 200":           {[]script{answer(1*ms, 425), answer(1*ms, 200)}, 200, 2 * ms, 2},
		"503, then down":          {[]script{answer(1*ms, 503), down}, 503, 2 * ms, 2},
		"down, then 502":          {[]script{down, answer(1*ms, 502)}, 502, 2 * ms, 2},
		"down twice":              {[]script{down}, 0, 2 * ms, 2},
		"as long as is kept":      {[]script{whole, down}, 503, 60 * ms, 2},
		"too long, then 500":      {[]script{long, answer(20*ms, 500)}, 500, 70 * ms, 2},
		"down, then too long":     {[]script{down, long}, 503, 61 * ms, 2},
		"too long beside another": {[]script{{headers: 70 * ms, err: errRefused}, short}, 0, 70 * ms, 2},
		"broken beside another":   {[]script{{headers: 70 * ms, err: errRefused}, brief}, 503, 70 * ms, 2},
		"broken, then down":       {[]script{broken, down}, 503, 60 * ms, 2},
		"broken, then 502":        {[]script{broken, answer(20*ms, 502)}, 502, 70 * ms, 2},
		"502, then broken":        {[]script{answer(1*ms, 502), brief}, 503, 11 * ms, 2}, // as it streams
		"502 beside broken":       {[]script{kept, slow}, 502, 120 * ms, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 3, 0)
				f := &fake{scripts: row.scripts}
				tr := transport(t, f, httpmw.WithHedger(hedged(t, l, 50*ms, hedgedlimit.Cancel())))
				start := time.Now()
				r, err := tr.RoundTrip(get(t.Context(), t))
				if got := time.Since(start); got != row.after {
					t.Errorf("decided after %v, want %v", got, row.after)
				}
				switch {
				case row.status == 0:
					var status *httpmw.StatusError
					if errors.As(err, &status) != strings.Contains(fmt.Sprint(err), "503 Service Unavailable: not kept") {
						t.Errorf("error %v says nothing of its status", err)
					}
					var all *hedgedlimit.AttemptsError
					if r != nil || !errors.As(err, &all) || !errors.Is(err, errRefused) {
						t.Errorf("response %v, error %v, want the errors of both attempts", r, err)
					}
				case err != nil || r.StatusCode != row.status:
					t.Errorf("response %v, error %v, want status %d", r, err, row.status)
				default:
					got, err := io.ReadAll(r.Body)
					if string(got) != fmt.Sprint("body of ", row.status) && len(got) < 64<<10 {
						t.Errorf("a body of %d bytes: %.100q", len(got), got)
					}
					if cut := row.status == 503 && strings.Contains(name, "broken"); err != nil && err != io.ErrUnexpectedEOF || (err != nil) != cut { //nolint:errorlint // unchanged is what is asked
						t.Errorf("the body ends in %v", err)
					}
					_ = r.Body.Close()
				}
				synctest.Wait()
				probe(t, l)
				if f.sent() != row.sent || f.opened != f.closes {
					t.Errorf("%d sent, %d bodies opened, %d closed, want %d sent and each body closed once",
						f.sent(), f.opened, f.closes, row.sent)
				}
			})
		})
	}
}

// A request that is not hedged gets its answer as it came, failed or not, while it
// still streams.
func TestFailurePassesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 0)
		f := &fake{scripts: []script{{status: 503, body: strings.Repeat("x", 1<<20), bodyTime: time.Second}}}
		tr := transport(t, f, httpmw.WithHedger(hedged(t, l, 50*ms, hedgedlimit.Cancel())))
		req := get(t.Context(), t)
		req.Method = http.MethodPost
		start := time.Now()
		r, err := tr.RoundTrip(req)
		if err != nil || r.StatusCode != 503 || time.Since(start) != 0 {
			t.Fatalf("response %v, error %v, after %v", r, err, time.Since(start))
		}
		if got := read(t, r); len(got) != 1<<20 {
			t.Errorf("%d bytes of 1 MiB", len(got))
		}
		synctest.Wait()
		probe(t, l)
	})
}

// What an attempt's end teaches the limit.
func TestOutcomes(t *testing.T) {
	for name, row := range map[string]struct {
		script  script
		timeout time.Duration
		cancel  time.Duration
		want    permit.Outcome
	}{
		"200":               {script{}, 0, 0, permit.Success},
		"200 and a body":    {script{body: "body"}, 0, 0, permit.Success},
		"200, body fails":   {script{body: "body", bodyErr: io.ErrUnexpectedEOF}, 0, 0, permit.Success},
		"404":               {script{status: 404}, 0, 0, permit.Success},
		"500":               {script{status: 500}, 0, 0, permit.Success},
		"429":               {script{status: 429}, 0, 0, permit.Overload},
		"503":               {script{status: 503, body: "sorry"}, 0, 0, permit.Overload},
		"504":               {script{status: 504}, 0, 0, permit.Expired},
		"101":               {script{status: 101, body: "tunnel", writable: true}, 0, 0, permit.Ignored},
		"transport error":   {script{err: errRefused}, 0, 0, permit.Ignored},
		"nothing":           {script{null: true}, 0, 0, permit.Ignored},
		"too slow":          {script{headers: time.Second}, 10 * ms, 0, permit.Expired},
		"cancelled":         {script{headers: time.Second}, 0, 10 * ms, permit.Canceled},
		"cancelled at once": {script{headers: time.Second}, 0, time.Nanosecond, permit.Canceled},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(name+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := fixed(t, 1, 0)
					h, err := hedgedlimit.New(hedgedlimit.Config{Limiter: l, MaxAttempts: 1})
					if err != nil {
						t.Fatal(err)
					}
					tr := transport(t, &fake{scripts: []script{row.script}}, httpmw.WithHedger(h))
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if row.timeout > 0 {
						var stop context.CancelFunc
						ctx, stop = context.WithTimeout(ctx, row.timeout)
						defer stop()
					}
					if row.cancel > 0 {
						time.AfterFunc(row.cancel, func() { cancel(errRefused) }) // a cause of the caller's own
					}
					req := get(ctx, t)
					req.Method = method
					if r, err := tr.RoundTrip(req); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
						_ = r.Body.Close()
					}
					synctest.Wait()
					if s := l.Stats().Ledger; s.Released[row.want] != 1 || released(l) != 1 {
						t.Errorf("released %v, want one %v", s.Released, row.want)
					}
					probe(t, l)
				})
			})
		}
	}
}

// Field case B39: no timer of ours ends a body whose headers were returned.
func TestTimerSparesBody(t *testing.T) {
	for _, headers := range []time.Duration{49 * ms, 50 * ms, 51 * ms} {
		for _, losers := range []hedgedlimit.LoserPolicy{hedgedlimit.Cancel(), hedgedlimit.Drain(50 * ms)} {
			t.Run(fmt.Sprint(headers, " ", losers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := fixed(t, 4, 0)
					h := hedged(t, l, 50*ms, losers)
					for range 1000 {
						f := &fake{scripts: []script{{headers: headers, body: "body", bodyTime: 200*ms - headers}}}
						r, err := transport(t, f, httpmw.WithHedger(h)).RoundTrip(get(t.Context(), t))
						if err != nil {
							t.Fatal(err)
						}
						if read(t, r) != "body" {
							t.Fatal("a body was cut short")
						}
						time.Sleep(time.Second)
						synctest.Wait()
					}
					probe(t, l)
				})
			})
		}
	}
}
