package httpmw_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// configured is an option that leaves of the defaults what change does not touch, but
// for a limit that stands still, a fixed delay, and nothing that holds hedges back.
func configured(t tb, l *limiter.Limiter, delay time.Duration, change func(*hedgedlimit.Config)) httpmw.Option {
	t.Helper()
	return httpmw.WithConfig(func(_ string, c *hedgedlimit.Config) error {
		c.Limiter, c.Delay, c.Budget, c.Gates = l, hedgedlimit.Fixed(delay), hedgedlimit.Unlimited, hedgedlimit.NoGates
		if change != nil {
			change(c)
		}
		return nil
	})
}

// A server that asks for time gets it, within bounds; one that asks for more, or that
// cannot be understood, is left alone, and the caller has its answer at once.
func TestRetryAfterIsHeeded(t *testing.T) {
	const never = -1
	header := func(retryAfter ...string) http.Header { return http.Header{"Retry-After": retryAfter} }
	dated := func(retryAfter, date string) http.Header {
		h := header(retryAfter)
		h.Set("Date", date)
		return h
	}
	none := func(_ string, c *hedgedlimit.Config) error { c.Pushback = nil; return nil }
	for name, row := range map[string]struct {
		header http.Header
		option httpmw.Option
		method string
		second time.Duration // when the second attempt is sent; the first is answered after 1 ms
	}{
		"no header":             {http.Header{}, nil, "GET", 1 * ms},
		"0":                     {header("0"), nil, "GET", 1 * ms},
		"1":                     {header("1"), nil, "GET", 1001 * ms},
		"zeros before it":       {header("0000000000000000000000001"), nil, "GET", 1001 * ms},
		"blanks around it":      {header(" 1\t"), nil, "GET", 1001 * ms},
		"above the default":     {header("2"), nil, "GET", never},
		"allowed":               {header("20"), httpmw.MaxRetryAfter(20 * time.Second), "GET", 20001 * ms},
		"not allowed":           {header("1"), httpmw.MaxRetryAfter(time.Second - 1), "GET", never},
		"no wait is allowed":    {header("0"), httpmw.MaxRetryAfter(0), "GET", 1 * ms},
		"no wait is allowed: 1": {header("1"), httpmw.MaxRetryAfter(0), "GET", never},
		"more than fits":        {header("99999999999999999999999999"), httpmw.MaxRetryAfter(time.Hour), "GET", never},
		"negative":              {header("-1"), nil, "GET", never},
		"signed":                {header("+1"), nil, "GET", never},
		"fraction":              {header("0.5"), nil, "GET", never},
		"exponent":              {header("1e0"), nil, "GET", never},
		"word":                  {header("soon"), nil, "GET", never},
		"empty":                 {header(""), nil, "GET", never},
		"list":                  {header("0, 0"), nil, "GET", never},
		"twice":                 {header("0", "0"), nil, "GET", never},
		"date": { // by the clock of the server, which is years behind
			dated("Sun, 06 Nov 1994 08:49:38 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"), nil, "GET", 1001 * ms},
		"obsolete date":      {dated("Sunday, 06-Nov-94 08:49:38 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"), nil, "GET", 1001 * ms},
		"date of the past":   {dated("Sun, 06 Nov 1994 08:49:30 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"), nil, "GET", 1 * ms},
		"far date":           {dated("Sun, 06 Nov 2994 08:49:30 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"), nil, "GET", never},
		"no Date":            {header("Sat, 01 Jan 2000 00:00:01 GMT"), nil, "GET", 1000 * ms},
		"no readable Date":   {dated("Sat, 01 Jan 2000 00:00:01 GMT", "today"), nil, "GET", 1000 * ms},
		"no date":            {header("Sun, 35 Nov 1994 08:49:30 GMT"), nil, "GET", never},
		"only one attempt":   {header("1"), nil, "POST", never},
		"Pushback was taken": {header("20"), httpmw.WithConfig(none), "GET", 1 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []time.Duration
				began := time.Now()
				base := roundTripper(func(*http.Request) (*http.Response, error) {
					sent = append(sent, time.Since(began))
					if len(sent) > 1 {
						return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
					}
					time.Sleep(1 * ms)
					return &http.Response{StatusCode: 503, Header: row.header, Body: io.NopCloser(strings.NewReader("wait"))}, nil
				})
				l := fixed(t, 1, 0)
				options := []httpmw.Option{configured(t, l, time.Hour, nil)}
				if row.option != nil {
					options = append(options, row.option)
				}
				req := get(t.Context(), t)
				req.Method = row.method
				r, err := transport(t, base, options...).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				want, status := []time.Duration{0, row.second}, 200
				if row.second == never {
					want, status = want[:1], 503
				}
				if !slices.Equal(sent, want) || r.StatusCode != status || time.Since(began) != max(row.second, 1*ms) {
					t.Errorf("sent after %v, answered %d after %v, want %v and %d", sent, r.StatusCode, time.Since(began), want, status)
				}
				if body := read(t, r); status == 503 && body != "wait" {
					t.Errorf("the body is %q", body)
				}
				synctest.Wait()
				if name != "Pushback was taken" { // whose limiter is another
					probe(t, l)
				}
			})
		})
	}
}

// Field case B48: of several failed answers the caller gets that of the service itself, and of equals the
// latest, whatever its number; one that came as the last, with nothing better before, as
// it streams.
func TestBestOfTheFailedAnswersIsReturned(t *testing.T) {
	at := func(after time.Duration, status int) script {
		return script{headers: after, status: status, body: fmt.Sprint(status)}
	}
	down := script{err: errRefused}
	for name, row := range map[string]struct {
		scripts []script
		status  int
		kept    bool // its attempt was over when it was returned
	}{
		"the service's first":        {[]script{at(0, 500), at(0, 502), at(0, 503)}, 500, true},
		"the service's second":       {[]script{at(0, 503), at(0, 429), at(0, 504)}, 429, true},
		"the service's last":         {[]script{at(0, 503), at(0, 504), at(0, 408)}, 408, false},
		"the latest of the way":      {[]script{at(0, 504), at(0, 503), at(0, 502)}, 502, false},
		"the latest of the service":  {[]script{at(0, 500), at(0, 501), at(0, 503)}, 501, true},
		"the only one":               {[]script{down, at(0, 503), down}, 503, true},
		"the only one, at the end":   {[]script{down, down, at(0, 503)}, 503, false},
		"the service's, then errors": {[]script{at(0, 500), at(0, 503), down}, 500, true},
		"the latest, not the number": {[]script{at(100*ms, 500), at(10*ms, 501), {headers: 200 * ms, err: errRefused}}, 500, true},
		"the primary as the last":    {[]script{at(300*ms, 500), at(10*ms, 501), down}, 500, false},
		"the primary as a worse one": {[]script{at(300*ms, 503), at(10*ms, 501), down}, 501, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 3, 0)
				f := &fake{scripts: row.scripts}
				tr := transport(t, f, configured(t, l, 50*ms, func(c *hedgedlimit.Config) { c.MaxAttempts = 3 }))
				r, err := tr.RoundTrip(get(t.Context(), t))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if (l.InFlight() == 0) != row.kept {
					t.Errorf("in flight with the answer open: %d", l.InFlight())
				}
				if body := read(t, r); r.StatusCode != row.status || body != fmt.Sprint(row.status) || f.sent() != 3 {
					t.Errorf("%d %q after %d attempts, want %d", r.StatusCode, body, f.sent(), row.status)
				}
				synctest.Wait()
				probe(t, l)
				if f.opened != f.closes {
					t.Errorf("%d bodies opened, %d closed", f.opened, f.closes)
				}
			})
		})
	}
}

// An answer that nothing better can follow comes to the caller as it is, before its body
// has come, and so does one that is too long to keep while nothing else runs. It teaches
// the limit by its status, and counts as a failure for the budget.
func TestFailureWithoutSuccessorStreams(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	slow := script{status: 503, body: long, bodyTime: time.Second}
	for name, row := range map[string]struct {
		scripts []script
		method  string
		sent    int
		want    []permit.Outcome
		answers []hedgedlimit.Answer
	}{
		"the last": {
			[]script{{status: 503}, slow}, "GET", 2,
			[]permit.Outcome{permit.Overload, permit.Overload}, []hedgedlimit.Answer{hedgedlimit.AnswerNonFatal, hedgedlimit.AnswerNonFatal},
		},
		"the last, after an error": {
			[]script{{err: errRefused}, slow}, "GET", 2,
			[]permit.Outcome{permit.Ignored, permit.Overload}, []hedgedlimit.Answer{hedgedlimit.AnswerNonFatal, hedgedlimit.AnswerNonFatal},
		},
		"too long": {
			[]script{slow, {body: "never sent"}}, "GET", 1,
			[]permit.Outcome{permit.Overload}, []hedgedlimit.Answer{hedgedlimit.AnswerNonFatal},
		},
		"not to be repeated": {
			[]script{slow}, "POST", 1,
			[]permit.Outcome{permit.Overload}, []hedgedlimit.Answer{hedgedlimit.AnswerNonFatal},
		},
		"a good one": {
			[]script{{body: long, bodyTime: time.Second}}, "GET", 1,
			[]permit.Outcome{permit.Success}, []hedgedlimit.Answer{hedgedlimit.AnswerSuccess},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				f := &fake{scripts: row.scripts}
				budget := &listener{}
				var outcomes []permit.Outcome
				tr := transport(t, f, configured(t, l, time.Hour, func(c *hedgedlimit.Config) {
					c.Budget = budget
					c.OnAttempt = func(e hedgedlimit.AttemptEvent) { outcomes = append(outcomes, e.Outcome) }
				}))
				req := get(t.Context(), t)
				req.Method = row.method
				began := time.Now()
				r, err := tr.RoundTrip(req)
				if err != nil || time.Since(began) != 0 {
					t.Fatalf("error %v after %v", err, time.Since(began))
				}
				synctest.Wait()
				if l.InFlight() != 1 {
					t.Errorf("in flight while the body streams: %d", l.InFlight())
				}
				if body := read(t, r); body != long || time.Since(began) != time.Second {
					t.Errorf("%d bytes of 1 MiB after %v", len(body), time.Since(began))
				}
				synctest.Wait()
				probe(t, l)
				if f.sent() != row.sent || !slices.Equal(outcomes, row.want) || !slices.Equal(budget.heard, row.answers) {
					t.Errorf("%d sent, outcomes %v, the budget heard %v, want %d, %v, %v",
						f.sent(), outcomes, budget.heard, row.sent, row.want, row.answers)
				}
			})
		})
	}
}

// Of several failures that are too long to keep, and come in one instant, the caller gets
// one.
func TestLongFailuresAtOnceGiveAnAnswer(t *testing.T) {
	const attempts = 3
	l := fixed(t, attempts, 0)
	for range 300 {
		var there sync.WaitGroup
		there.Add(attempts)
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			there.Done()
			there.Wait()
			return &http.Response{StatusCode: 503, ContentLength: 1 << 20, Body: io.NopCloser(strings.NewReader("long"))}, nil
		})
		tr := transport(t, base, configured(t, l, 0, func(c *hedgedlimit.Config) { c.MaxAttempts = attempts }))
		r, err := tr.RoundTrip(get(t.Context(), t))
		if err != nil {
			t.Fatal(err)
		}
		read(t, r)
		settle(t, l)
	}
}

// What another attempt would only meet again is not tried again: unless it may be sent
// elsewhere.
func TestHopelessRequestIsSentOnce(t *testing.T) {
	elsewhere := httpmw.PickTarget(func(*http.Request, []*url.URL) *url.URL { return nil })
	for name, row := range map[string]struct {
		err    error
		option httpmw.Option
		sent   int
	}{
		"no such name":               {&net.OpError{Err: &net.DNSError{IsNotFound: true}}, nil, 1},
		"a name server that is down": {&net.OpError{Err: &net.DNSError{IsTemporary: true}}, nil, 2},
		"a certificate":              {&tls.CertificateVerificationError{Err: errOwn}, nil, 1},
		"no TLS":                     {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, nil, 1},
		"no such replica":            {&net.DNSError{IsNotFound: true}, elsewhere, 2},
		"refused":                    {errRefused, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := fixed(t, 2, 0)
			f := &fake{scripts: []script{{err: row.err}}}
			options := []httpmw.Option{configured(t, l, time.Hour, nil)}
			if row.option != nil {
				options = append(options, row.option)
			}
			if _, err := transport(t, f, options...).RoundTrip(get(t.Context(), t)); !errors.Is(err, row.err) || f.sent() != row.sent {
				t.Errorf("%v after %d attempts, want %d", err, f.sent(), row.sent)
			}
			settle(t, l)
		})
	}
}

// Request.Cancel ends the call: no attempt follows one that it has ended.
func TestRequestCancelEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 2, 0)
		sent := 0
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent++
			<-r.Cancel
			return nil, errRefused
		})
		r := get(t.Context(), t)
		cancel := make(chan struct{})
		r.Cancel = cancel
		time.AfterFunc(time.Second, func() { close(cancel) })
		_, err := transport(t, base, configured(t, l, time.Hour, nil)).RoundTrip(r)
		if err == nil || err.Error() != "net/http: request canceled" || sent != 1 {
			t.Errorf("%v after %d attempts", err, sent)
		}
		synctest.Wait()
		probe(t, l)
	})
}

// listener is a budget that notes what it hears, with no bound or with nothing.
type listener struct {
	empty bool
	mu    sync.Mutex
	heard []hedgedlimit.Answer
}

func (*listener) Deposit(time.Time)         {}
func (b *listener) Withdraw(time.Time) bool { return !b.empty }
func (*listener) Refund(time.Time)          {}
func (*listener) Balance(time.Time) float64 { return 0 }
func (*listener) Ended(time.Time, bool)     {}
func (b *listener) Answered(_ time.Time, a hedgedlimit.Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, a)
}

// Whoever would get an answer without us gets one, and a whole one; a good one if any
// attempt that was sent had one in time; and never a failure while another attempt runs
// that could still do better.
func TestAnswerIsReturnedWhereThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			attempts := rapid.IntRange(1, 4).Draw(t, "attempts")
			var scripts []script
			longest := time.Duration(0)
			for i := range attempts {
				s := script{
					headers:  time.Duration(rapid.IntRange(0, 6).Draw(t, fmt.Sprint(i, " headers"))) * ms,
					status:   rapid.SampledFrom([]int{500, 501, 502, 503, 504, 200}).Draw(t, fmt.Sprint(i, " status")),
					bodyTime: time.Duration(rapid.IntRange(0, 2).Draw(t, fmt.Sprint(i, " body"))) * ms,
				}
				s.body = fmt.Sprint(s.status)
				longest = max(longest, s.headers+s.bodyTime)
				scripts = append(scripts, s)
			}
			l := fixed(t, 4, 0)
			f := &fake{scripts: scripts}
			tr := transport(t, f, configured(t, l, 2*ms, func(c *hedgedlimit.Config) { c.MaxAttempts = attempts }))
			r, err := tr.RoundTrip(get(t.Context(), t))
			if err != nil {
				t.Fatalf("no answer, though each attempt had one: %v", err)
			}
			sent := scripts[:f.sent()]
			if body := read(t, r); body != fmt.Sprint(r.StatusCode) {
				t.Errorf("status %d came with the body of %s", r.StatusCode, body)
			}
			if r.StatusCode != 200 {
				own := false
				for _, s := range sent {
					if s.status == 200 {
						t.Errorf("%d was returned, though an attempt had a good answer", r.StatusCode)
					}
					own = own || s.status < 502
				}
				if len(sent) != attempts || own != (r.StatusCode < 502) {
					t.Errorf("%d was returned after %d of %d attempts", r.StatusCode, len(sent), attempts)
				}
			}
			time.Sleep(longest)
			synctest.Wait()
			probe(t, l)
			if f.opened != f.closes {
				t.Errorf("%d bodies opened, %d closed", f.opened, f.closes)
			}
		})
	})
}
