package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

func fixed(t testing.TB, limit int, config limiter.Config) *limiter.Limiter {
	t.Helper()
	algorithm, err := gradient.NewFixed(limit)
	if err != nil {
		t.Fatal(err)
	}
	return limitedBy(t, algorithm, config)
}

func limitedBy(t testing.TB, algorithm gradient.Algorithm, config limiter.Config) *limiter.Limiter {
	t.Helper()
	config.Algorithm = algorithm
	l, err := limiter.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// probe ends a test: nothing is in flight, and exactly Limit permits are to be had.
func probe(t testing.TB, l *limiter.Limiter) {
	t.Helper()
	s := l.Stats().Ledger
	if s.InFlight != 0 || s.Waiting != 0 || s.Overhang != 0 {
		t.Fatalf("not at rest: %+v", s)
	}
	var got []limiter.Permit
	for {
		p, ok := l.TryAcquire(limiter.Primary)
		if !ok {
			break
		}
		got = append(got, p)
	}
	if len(got) != l.Limit() {
		t.Errorf("%d permits are to be had, the limit is %d", len(got), l.Limit())
	}
	for _, p := range got {
		p.Release(permit.Ignored)
	}
}

func TestBadConfigNamesFieldAndValue(t *testing.T) {
	for _, c := range []struct {
		config limiter.Config
		field  string
		value  string
	}{
		{limiter.Config{MaxWaiting: -2}, "MaxWaiting", "-2"},
		{limiter.Config{MaxWait: -time.Second}, "MaxWait", "-1s"},
		{limiter.Config{MaxWait: time.Second}, "MaxWait", "1s"},
		{limiter.Config{Reserve: -2}, "Reserve", "-2"},
	} {
		l, err := limiter.New(c.config)
		if err == nil || l != nil || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), c.value) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

func TestZeroConfigWorks(t *testing.T) {
	l, err := limiter.New(limiter.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	if err := l.Do(t.Context(), func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("Do: %v, ran %v", err, ran)
	}
	probe(t, l)
}

func TestDoReturnsTheErrorUnchanged(t *testing.T) {
	l := fixed(t, 1, limiter.Config{})
	want := errors.New("no")
	if err := l.Do(t.Context(), func(context.Context) error { return want }); err != want { //nolint:errorlint // unchanged is the claim
		t.Errorf("Do returned %v", err)
	}
	if err := l.Do(t.Context(), nil); err == nil {
		t.Error("Do with a nil function returned no error")
	}
	probe(t, l)
}

// Field case B65: however the function ends, the permit comes back, and a panic
// reaches the caller unchanged.
func TestDoSurvivesPanicAndGoexit(t *testing.T) {
	l := fixed(t, 1, limiter.Config{})
	failure := errors.New("failure")
	for range 100 {
		for _, value := range []any{"text", failure, http.ErrAbortHandler} {
			func() {
				defer func() {
					if v := recover(); v != value {
						t.Errorf("recovered %v, want %v", v, value)
					}
				}()
				_ = l.Do(t.Context(), func(context.Context) error { panic(value) })
			}()
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = l.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		})
		wg.Wait()
	}
	if n := l.Stats().Ledger.Released[permit.Success]; n != 0 {
		t.Errorf("%d panics counted as a success", n)
	}
	probe(t, l)
}

func TestPanicInClassifyKeepsAccountsBalanced(t *testing.T) {
	l := fixed(t, 1, limiter.Config{Classify: func(error) permit.Outcome { panic("classify") }})
	func() {
		defer func() {
			if v := recover(); v != "classify" {
				t.Errorf("recovered %v", v)
			}
		}()
		_ = l.Do(t.Context(), func(context.Context) error { return nil })
	}()
	probe(t, l)
}

// Field case B60: each cause of a refusal can be told from the others.
func TestRefusalsCanBeToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := func(l *limiter.Limiter) func() {
			p, ok := l.TryAcquire(limiter.Primary)
			if !ok {
				t.Fatal("no permit")
			}
			return func() { p.Release(permit.Success) }
		}
		try := func(name string, l *limiter.Limiter, ctx context.Context, want error, count func(limiter.Rejections) uint64) {
			t.Helper()
			_, err := l.Acquire(ctx, limiter.Primary)
			if err != want { //nolint:errorlint // the bare sentinel is the claim
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			if n := count(l.Stats().Rejected); n != 1 {
				t.Errorf("%s: counted %d times: %+v", name, n, l.Stats().Rejected)
			}
		}
		full := fixed(t, 1, limiter.Config{})
		defer hold(full)()
		try("no waiting", full, t.Context(), limiter.ErrLimitExceeded, func(r limiter.Rejections) uint64 { return r.Limit })

		queue := fixed(t, 1, limiter.Config{MaxWaiting: 1})
		done := hold(queue)
		go func() {
			p, err := queue.Acquire(t.Context(), limiter.Primary)
			if err != nil {
				t.Error(err)
			}
			p.Release(permit.Success)
		}()
		synctest.Wait()
		try("queue full", queue, t.Context(), limiter.ErrLimitExceeded, func(r limiter.Rejections) uint64 { return r.QueueFull })
		done()

		slow := fixed(t, 1, limiter.Config{MaxWaiting: limiter.Unbounded, MaxWait: time.Second})
		defer hold(slow)()
		start := time.Now()
		try("waited too long", slow, t.Context(), limiter.ErrLimitExceeded, func(r limiter.Rejections) uint64 { return r.MaxWait })
		if d := time.Since(start); d != time.Second {
			t.Errorf("MaxWait of 1s took %v", d)
		}

		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		free := fixed(t, 1, limiter.Config{})
		try("caller gone", free, canceled, context.Canceled, func(r limiter.Rejections) uint64 { return r.Canceled })

		late, cancelLate := context.WithTimeout(t.Context(), time.Second)
		defer cancelLate()
		patient := fixed(t, 1, limiter.Config{MaxWaiting: 5, MaxWait: time.Minute})
		defer hold(patient)()
		try("deadline while waiting", patient, late, context.DeadlineExceeded, func(r limiter.Rejections) uint64 { return r.Canceled })

		closed := fixed(t, 1, limiter.Config{})
		if err := closed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		try("closed", closed, t.Context(), limiter.ErrClosed, func(r limiter.Rejections) uint64 { return r.Closed })
		if errors.Is(limiter.ErrLimitExceeded, context.Canceled) || errors.Is(limiter.ErrLimitExceeded, context.DeadlineExceeded) {
			t.Error("a refusal looks like the end of a context")
		}
	})
}

func TestHedgeLeavesTheReserveAndNeverWaits(t *testing.T) {
	for _, c := range []struct{ limit, reserve, hedges int }{
		{1, 0, 0},   // the default is at least 1
		{5, 0, 4},   // a tenth of 5 is less than 1
		{30, 0, 27}, // a tenth
		{5, 3, 2},
		{5, limiter.NoReserve, 5},
	} {
		l := fixed(t, c.limit, limiter.Config{Reserve: c.reserve, MaxWaiting: limiter.Unbounded})
		n := 0
		for {
			if _, err := l.Acquire(t.Context(), limiter.Hedge); err != nil {
				if err != limiter.ErrLimitExceeded { //nolint:errorlint // the bare sentinel
					t.Errorf("a hedge got %v", err)
				}
				break
			}
			n++
		}
		if n != c.hedges {
			t.Errorf("limit %d, reserve %d: %d hedges, want %d", c.limit, c.reserve, n, c.hedges)
		}
		if !l.LastPressure().IsZero() {
			t.Error("a hedge that was skipped counts as pressure")
		}
	}
}

func TestPressureIsARefusedOrWaitingPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, limiter.Config{MaxWaiting: 1})
		p, _ := l.TryAcquire(limiter.Primary)
		time.Sleep(time.Second)
		if _, ok := l.TryAcquire(limiter.Primary); ok || time.Since(l.LastPressure()) != 0 {
			t.Errorf("refused: last pressure %v ago", time.Since(l.LastPressure()))
		}
		time.AfterFunc(time.Second, func() { p.Release(permit.Success) })
		q, err := l.Acquire(t.Context(), limiter.Primary)
		if err != nil || time.Since(l.LastPressure()) != 0 {
			t.Errorf("waited: %v, last pressure %v ago", err, time.Since(l.LastPressure()))
		}
		q.Release(permit.Success)
		probe(t, l)
	})
}

func TestDefaultClassify(t *testing.T) {
	for err, want := range map[error]permit.Outcome{
		nil:                                     permit.Success,
		errors.New("else"):                      permit.Ignored,
		context.Canceled:                        permit.Canceled,
		context.DeadlineExceeded:                permit.Expired,
		overloaded{}:                            permit.Overload,
		fmt.Errorf("wrapped: %w", overloaded{}): permit.Overload,
		fmt.Errorf("wrapped: %w", context.DeadlineExceeded): permit.Expired,
	} {
		if got := limiter.DefaultClassify(err); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
}

type overloaded struct{}

func (overloaded) Error() string           { return "too much" }
func (overloaded) Outcome() permit.Outcome { return permit.Overload }
