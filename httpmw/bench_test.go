package httpmw_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// null answers at once. What a benchmark measures is then the wrapper alone.
type null struct{ body bool }

func (n null) RoundTrip(*http.Request) (*http.Response, error) {
	r := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	if n.body {
		r.Body = io.NopCloser(strings.NewReader("body"))
	}
	return r, nil
}

func BenchmarkRoundTrip(b *testing.B) {
	bare := func(b *testing.B, base http.RoundTripper) http.RoundTripper { return base }
	wrapped := func(b *testing.B, base http.RoundTripper) http.RoundTripper {
		h := hedged(b, fixed(b, 1000, 0), time.Hour, hedgedlimit.Cancel())
		return transport(b, base, httpmw.WithHedger(h))
	}
	perHost := func(b *testing.B, base http.RoundTripper) http.RoundTripper {
		return transport(b, base)
	}
	for name, wrap := range map[string]func(*testing.B, http.RoundTripper) http.RoundTripper{
		"bare": bare, "one hedger": wrapped, "defaults": perHost,
	} {
		for _, withBody := range []bool{false, true} {
			label := name + ", no body"
			if withBody {
				label = name + ", body"
			}
			b.Run(label, func(b *testing.B) {
				tr := wrap(b, null{withBody})
				req := get(b.Context(), b)
				b.ReportAllocs()
				for b.Loop() {
					r, err := tr.RoundTrip(req)
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
				}
			})
		}
	}
}

func BenchmarkServeHTTP(b *testing.B) {
	refusing := fixed(b, 1, 0)
	held, _ := refusing.TryAcquire(limiter.Bypass)
	defer held.Release(permit.Ignored)
	for name, row := range map[string]struct {
		opts    []httpmw.HandlerOption
		headers []string
	}{
		"served":                {},
		"served, with reports":  {opts: []httpmw.HandlerOption{httpmw.AcceptReports()}},
		"served, with deadline": {opts: []httpmw.HandlerOption{httpmw.DeadlineFromHeader(time.Hour)}, headers: []string{httpmw.TimeoutHeader, "1000"}},
		"served, a hedge":       {opts: []httpmw.HandlerOption{httpmw.MaxExtra(1)}, headers: []string{httpmw.AttemptHeader, "2"}},
		"refused":               {opts: []httpmw.HandlerOption{httpmw.HandlerLimiter(refusing)}},
		"refused, a hedge":      {opts: []httpmw.HandlerOption{httpmw.HandlerLimiter(refusing)}, headers: []string{httpmw.AttemptHeader, "2"}},
		"exempt":                {opts: []httpmw.HandlerOption{httpmw.Exempt(func(*http.Request) bool { return true })}},
	} {
		b.Run(name, func(b *testing.B) {
			h := limited(b, nothing, row.opts...)
			r, w := incoming(b.Context(), row.headers...), &quiet{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}
