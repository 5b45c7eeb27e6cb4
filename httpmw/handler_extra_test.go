package httpmw_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A hedge or retry is let in only if a permit is free at once beyond the reserve. What
// marks one is a single number from 2 to 1000; whatever else the header says, the request
// is treated like one without it.
func TestMarkedRequestsLeaveTheReserve(t *testing.T) {
	algorithm, err := gradient.NewFixed(3)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm, Reserve: 1, MaxWaiting: limiter.Unbounded})
	if err != nil {
		t.Fatal(err)
	}
	h := limited(t, nothing, httpmw.HandlerLimiter(l), httpmw.MaxExtra(1))
	for marked, headers := range map[bool][][]string{
		true: {{"2"}, {"3"}, {"10"}, {"1000"}, {"02"}},
		false: {
			{}, {""}, {"1"}, {"0"}, {"01"}, {"1001"}, {"9999"}, {"10000000000000002"}, {"18446744073709551618"}, {"-2"}, {"+2"},
			{" 2"}, {"2 "}, {"2.0"}, {"2,3"}, {"0x2"}, {"٢"}, {"two"}, {"2\n"}, {"2", "2"}, {"1", "2"}, {strings.Repeat("2", 1<<16)},
		},
	} {
		for _, values := range headers {
			var pairs []string
			for _, value := range values {
				pairs = append(pairs, httpmw.AttemptHeader, value)
			}
			name := fmt.Sprintf("%.40q", values)
			ask := func() int { return statusOf(h, incoming(t.Context(), pairs...)) }
			if code := ask(); code != http.StatusOK {
				t.Errorf("%s: status %d with all permits free", name, code)
			}
			a, _ := l.TryAcquire(limiter.Bypass)
			b, _ := l.TryAcquire(limiter.Bypass)
			if code := ask(); (code == http.StatusServiceUnavailable) != marked {
				t.Errorf("%s: status %d with the reserve free", name, code)
			}
			a.Release(permit.Ignored)
			b.Release(permit.Ignored)
		}
	}
	if r := h.Stats().Refused; r != (httpmw.Refusals{ExtraFull: 5}) {
		t.Errorf("refused %+v", r)
	}
	probe(t, l)
}

// Of the requests of the last ten seconds one tenth may be hedges and retries, and three
// in any case. The next one is refused though a permit is free, and a request that is not
// marked never is.
func TestMarkedRequestsAreAShareOfAll(t *testing.T) {
	for name, row := range map[string]struct {
		opts       []httpmw.HandlerOption
		few, after int // marked requests let in at first, and with 90 others besides
	}{
		"default":      {few: 3, after: 10},
		"half":         {opts: []httpmw.HandlerOption{httpmw.MaxExtra(0.5)}, few: 3, after: 90},
		"next to none": {opts: []httpmw.HandlerOption{httpmw.MaxExtra(0.001)}, few: 3, after: 3},
		"none":         {opts: []httpmw.HandlerOption{httpmw.MaxExtra(0)}},
		"all, if any":  {opts: []httpmw.HandlerOption{httpmw.MaxExtra(1)}, few: 100, after: 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, option := under(t, 2, 0)
				h := limited(t, nothing, append(row.opts, option)...)
				held, _ := l.TryAcquire(limiter.Bypass) // half of it, so that the share is asked
				in := 0
				ask := func(attempt string) bool {
					return statusOf(h, incoming(t.Context(), httpmw.AttemptHeader, attempt)) == http.StatusOK
				}
				marked := func() {
					for range 100 {
						if ask("2") {
							in++
						}
					}
				}
				for range 2 {
					in = 0
					marked()
					if in != row.few {
						t.Errorf("%d of 100 marked requests were let in alone, want %d", in, row.few)
					}
					for range 90 {
						if !ask("1") {
							t.Error("a first attempt was refused")
						}
					}
					marked()
					if in != row.after {
						t.Errorf("%d of 200 marked requests were let in with 90 others, want %d", in, row.after)
					}
					time.Sleep(10 * time.Second) // all is forgotten
				}
				if got, want := h.Stats().Refused, (httpmw.Refusals{ExtraShare: uint64(400 - 2*row.after)}); got != want {
					t.Errorf("refused %+v, want %+v", got, want)
				}
				held.Release(permit.Ignored)
				probe(t, l)
			})
		})
	}
}

// A marked request that finds no permit leaves its share to the next, does not wait, and
// is answered like any other that is refused.
func TestMarkedRequestWithoutRoomUsesNoShare(t *testing.T) {
	l, option := under(t, 2, limiter.Unbounded)
	h := limited(t, nothing, option)
	half, _ := l.TryAcquire(limiter.Bypass) // so that the share is asked
	held, _ := l.TryAcquire(limiter.Bypass)
	for range 100 {
		if code := statusOf(h, incoming(t.Context(), httpmw.AttemptHeader, "2")); code != http.StatusServiceUnavailable {
			t.Errorf("status %d", code)
		}
	}
	held.Release(permit.Ignored)
	for range 3 {
		if code := statusOf(h, incoming(t.Context(), httpmw.AttemptHeader, "2")); code != http.StatusOK {
			t.Errorf("status %d with a permit free", code)
		}
	}
	if code := statusOf(h, incoming(t.Context(), httpmw.AttemptHeader, "2")); code != http.StatusServiceUnavailable {
		t.Errorf("status %d of the fourth", code)
	}
	if got, want := h.Stats().Refused, (httpmw.Refusals{ExtraFull: 100, ExtraShare: 1}); got != want {
		t.Errorf("refused %+v, want %+v", got, want)
	}
	half.Release(permit.Ignored)
	probe(t, l)
}

// A marked request takes the last permit if KindHeader says in one word that it is a
// retry. Without the mark of AttemptHeader it says nothing.
func TestRetryTakesTheReserve(t *testing.T) {
	algorithm, err := gradient.NewFixed(2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Algorithm: algorithm, Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := limited(t, nothing, httpmw.HandlerLimiter(l), httpmw.MaxExtra(1))
	held, _ := l.TryAcquire(limiter.Bypass)
	for _, row := range []struct {
		attempt string
		kinds   []string
		want    int
	}{
		{"2", []string{"retry"}, http.StatusOK},
		{"2", nil, http.StatusServiceUnavailable},
		{"2", []string{"hedge"}, http.StatusServiceUnavailable},
		{"2", []string{"Retry"}, http.StatusServiceUnavailable},
		{"2", []string{"retry "}, http.StatusServiceUnavailable},
		{"2", []string{"retry", "retry"}, http.StatusServiceUnavailable},
		{"1", []string{"hedge"}, http.StatusOK},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := incoming(t.Context(), httpmw.AttemptHeader, row.attempt)
			r.Method, r.Header[httpmw.KindHeader] = method, row.kinds
			if code := statusOf(h, r); code != row.want {
				t.Errorf("%s, %+v: status %d", method, row, code)
			}
		}
	}
	held.Release(permit.Ignored)
	probe(t, l)
}

// A request's deadline is what its header says, in so many milliseconds, and at most what
// the option says. A header that is no number sets none, and none is read without the
// option. It never puts off a deadline that the server has set.
func TestDeadlineFromHeader(t *testing.T) {
	const none = time.Duration(-1)
	for _, row := range []struct {
		values []string
		want   time.Duration
	}{
		{nil, none}, {[]string{"1"}, ms}, {[]string{"007"}, 7 * ms}, {[]string{"9999"}, 9999 * ms}, {[]string{"10000"}, 10 * time.Second},
		{[]string{"10001"}, 10 * time.Second}, {[]string{"999999999999"}, 10 * time.Second}, {[]string{"9999999999999"}, none},
		{[]string{""}, none}, {[]string{"-1"}, none}, {[]string{"+1"}, none}, {[]string{"1.5"}, none}, {[]string{"1s"}, none},
		{[]string{"1", "1"}, none}, {[]string{"0x1"}, none}, {[]string{" 1"}, none},
	} {
		for _, read := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				l, option := under(t, 1, 0)
				opts := []httpmw.HandlerOption{option}
				if read {
					opts = append(opts, httpmw.DeadlineFromHeader(10*time.Second))
				}
				got := none
				h := limited(t, func(_ http.ResponseWriter, r *http.Request) {
					if deadline, ok := r.Context().Deadline(); ok {
						got = time.Until(deadline)
					}
				}, opts...)
				r := incoming(t.Context())
				r.Header[httpmw.TimeoutHeader] = row.values
				if code := statusOf(h, r); code != http.StatusOK {
					t.Errorf("%q: status %d", row.values, code)
				}
				want := row.want
				if !read {
					want = none
				}
				if got != want {
					t.Errorf("%q: deadline after %v, want %v", row.values, got, want)
				}
				if r.Context().Err() != nil {
					t.Errorf("%q: the server's own context has ended", row.values)
				}
				got = none
				ctx, cancel := second(t.Context())
				defer cancel()
				r = r.WithContext(ctx)
				statusOf(h, r)
				if want == none || want > time.Second {
					want = time.Second
				}
				if got != want {
					t.Errorf("%q: deadline after %v under the server's of 1 s, want %v", row.values, got, want)
				}
				probe(t, l)
			})
		}
	}
}

// A request that would have to wait beyond the deadline of its header is refused at once.
func TestQueueKnowsTheDeadlineOfTheHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		algorithm, err := gradient.New(gradient.Config{Initial: 1, Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(limiter.Config{Algorithm: algorithm, MaxWaiting: 1})
		if err != nil {
			t.Fatal(err)
		}
		h := limited(t, func(http.ResponseWriter, *http.Request) { time.Sleep(100 * ms) },
			httpmw.HandlerLimiter(l), httpmw.DeadlineFromHeader(time.Minute))
		for range 100 { // of which a window tells
			statusOf(h, incoming(t.Context()))
		}
		go statusOf(h, incoming(t.Context()))
		synctest.Wait()
		for allowed, want := range map[string]int{"150": http.StatusServiceUnavailable, "250": http.StatusOK} {
			start := time.Now()
			code := statusOf(h, incoming(t.Context(), httpmw.TimeoutHeader, allowed))
			if took := time.Since(start); code != want || code != http.StatusOK && took != 0 {
				t.Errorf("%s ms: status %d after %v, want %d", allowed, code, took, want)
			}
			if want == http.StatusOK { // it has waited for the one ahead
				go statusOf(h, incoming(t.Context()))
				synctest.Wait()
			}
		}
		time.Sleep(time.Second)
		if got, want := l.Stats().Rejected, (limiter.Rejections{Deadline: 1}); !reflect.DeepEqual(got, want) {
			t.Errorf("rejected %+v, want %+v", got, want)
		}
	})
}
