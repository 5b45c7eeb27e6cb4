package httpmw_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// A retry says that it is one, and a hedge does not, whatever the caller's own request says
// of itself; nothing is said unasked.
func TestRetrySaysSo(t *testing.T) {
	for name, row := range map[string]struct {
		first  script
		opts   []httpmw.Option
		second string
	}{
		"a retry":      {first: script{status: http.StatusServiceUnavailable}, opts: []httpmw.Option{httpmw.WithAttemptHeader()}, second: "retry"},
		"a hedge":      {first: script{headers: 50 * ms}, opts: []httpmw.Option{httpmw.WithAttemptHeader()}},
		"not asked to": {first: script{status: http.StatusServiceUnavailable}, second: "the caller's"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := fixed(t, 3, 0)
			f := &fake{scripts: []script{row.first, {headers: 1 * ms}}}
			tr := transport(t, f, append(row.opts, httpmw.WithHedger(hedged(t, l, 10*ms, hedgedlimit.Cancel())))...)
			req := get(t.Context(), t)
			req.Header.Set(httpmw.KindHeader, "the caller's")
			answer, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil {
				t.Error(err)
			}
			_ = answer.Body.Close()
			first := ""
			if row.opts == nil {
				first = "the caller's"
			}
			for i, want := range []string{first, row.second} {
				if got := f.request(i).Header.Get(httpmw.KindHeader); got != want {
					t.Errorf("%s: attempt %d says %q, want %q", name, i+1, got, want)
				}
			}
			if got := req.Header.Get(httpmw.KindHeader); got != "the caller's" {
				t.Errorf("%s: the caller's request says %q", name, got)
			}
			synctest.Wait()
			probe(t, l)
		})
	}
}
