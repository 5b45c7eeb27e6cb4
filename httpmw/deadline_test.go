package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/permit"
)

// Each attempt has its share of the time that is left when it is sent, and the server is
// told; the caller's deadline stays what it is.
func TestAttemptsHaveAShareOfTheTime(t *testing.T) {
	for name, row := range map[string]struct {
		fraction float64
		timeout  time.Duration // of the caller; 0 is none
		want     []string      // deadline from the call's beginning, and header, of each attempt
	}{
		"half":         {0.5, time.Second, []string{"500ms 500", "550ms 450"}},
		"whole":        {1, time.Second, []string{"1s 1000", "1s 900"}},
		"a little":     {0.001, time.Second, []string{"1ms 1", "100.9ms 1"}},
		"fractions":    {0.5, 1001 * ms, []string{"500.5ms 500", "550.5ms 450"}},
		"off":          {0, time.Second, []string{"1s ", "1s "}},
		"no deadline":  {0.5, 0, []string{"none ", "none "}},
		"a wide range": {1, 200 * 365 * 24 * time.Hour, []string{"1752000h0m0s 6307200000000", "1752000h0m0s 6307199999900"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				began := time.Now()
				var mu sync.Mutex
				var got []string
				var attempts []context.Context
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					left := "none"
					if deadline, ok := r.Context().Deadline(); ok {
						left = deadline.Sub(began).String()
					}
					mu.Lock()
					got = append(got, left+" "+r.Header.Get(httpmw.TimeoutHeader))
					attempts = append(attempts, r.Context())
					mu.Unlock()
					time.Sleep(150 * ms)
					return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
				})
				tr := transport(t, base, httpmw.DeadlineFraction(row.fraction), configured(t, l, 100*ms, nil))
				ctx, cancel := context.WithCancel(t.Context())
				if row.timeout > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), row.timeout)
				}
				defer cancel()
				req := get(ctx, t)
				req.Header = nil
				if _, err := tr.RoundTrip(req); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(got, row.want) || req.Header != nil {
					t.Errorf("%q, want %q; the caller's headers are %v", got, row.want, req.Header)
				}
				for i, ctx := range attempts {
					if ctx.Err() == nil {
						t.Errorf("the context of attempt %d lives on", i+1)
					}
				}
				probe(t, l)
			})
		})
	}
}

// An attempt whose share is over has failed with the error of a deadline, whatever the
// base calls it, and has expired for the limit. So has a body that is not there in time.
func TestShareOfTheTimeThatIsOver(t *testing.T) {
	for name, row := range map[string]struct {
		from  httpmw.AnswerPoint
		base  slowStart
		after time.Duration
		body  bool // the answer comes, and its body does not
	}{
		"no headers":    {httpmw.Headers, slowStart{headers: time.Hour}, 500 * ms, false},
		"no first byte": {httpmw.FirstByte, slowStart{status: 200, first: time.Hour}, 500 * ms, false},
		"no body":       {httpmw.Headers, slowStart{status: 200, first: time.Hour}, 500 * ms, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(t, 2, 0)
				var outcomes []permit.Outcome
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					answer, err := row.base.RoundTrip(r)
					if err != nil {
						err = fmt.Errorf("connection was closed") // the base has its own words
					}
					return answer, err
				})
				tr := transport(t, base, httpmw.DeadlineFraction(0.5), httpmw.DelayFrom(row.from),
					configured(t, l, time.Hour, func(c *hedgedlimit.Config) {
						c.MaxAttempts = 2
						c.Budget = &listener{empty: true}
						c.OnAttempt = func(e hedgedlimit.AttemptEvent) { outcomes = append(outcomes, e.Outcome) }
					}))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				r, err := tr.RoundTrip(get(ctx, t))
				want := []permit.Outcome{permit.Expired}
				if row.body {
					if err != nil {
						t.Fatal(err)
					}
					_, err = io.ReadAll(r.Body)
					want[0] = permit.Success // as the headers said
				}
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != row.after || ctx.Err() != nil {
					t.Errorf("error %v after %v, the caller's context: %v", err, time.Since(began), ctx.Err())
				}
				synctest.Wait()
				if !slices.Equal(outcomes, want) {
					t.Errorf("outcomes %v, want %v", outcomes, want)
				}
				probe(t, l)
			})
		})
	}
}
