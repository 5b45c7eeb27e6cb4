package limiter_test

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

//go:noinline
func acquireAndForget(l *limiter.Limiter) { _, _ = l.TryAcquire(limiter.Primary) }

// collect runs the collector until done says so.
func collect(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("after many collections: not %s", what)
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// L2: an attempt whose permit was lost is reported with the place where it began, and
// stays in flight.
func TestLostPermitIsReported(t *testing.T) {
	found := make(chan permit.Leak, 1)
	l := fixed(t, 2, limiter.Config{StackEvery: 1, OnLeak: func(leak permit.Leak) { found <- leak }})
	acquireAndForget(l)
	collect(t, "reported", func() bool { return len(found) == 1 })
	if leak := <-found; leak.Permits != 1 || leak.Reclaimed || !strings.Contains(leak.Stack, "acquireAndForget") {
		t.Errorf("reported as %+v", leak)
	}
	if s := l.Stats().Ledger; s.InFlight != 1 || s.Leaked != 1 || s.Oldest <= 0 {
		t.Errorf("%+v", s)
	}
}

// A place that is given back is in flight no more, for the ledger and for the windows
// that the algorithm sees.
func TestLostPermitThatIsGivenBackIsForgotten(t *testing.T) {
	found := make(chan permit.Leak, 3)
	s := &scripted{first: gradient.Decision{Limit: 3, MinLength: time.Nanosecond, MinSamples: 1}}
	l := limitedBy(t, s, limiter.Config{ReclaimLeaks: true, OnLeak: func(leak permit.Leak) { found <- leak }})
	for range 3 {
		acquireAndForget(l)
	}
	collect(t, "given back", func() bool { return len(found) == 3 })
	for range 2 { // the first closes the window in which they were lost
		p, ok := l.TryAcquire(limiter.Primary)
		if !ok {
			t.Fatal("refused")
		}
		p.Release(permit.Success)
	}
	if n := len(s.windows); n < 2 {
		t.Fatalf("%d windows were closed", n)
	}
	if w := s.windows[len(s.windows)-1]; w.MaxInFlight != 1 || w.InFlight > 1 {
		t.Errorf("the last window has %v in flight, %d at most", w.InFlight, w.MaxInFlight)
	}
	probe(t, l)
}

// L10: a hook that panics is reported like any other, and one that is not set leaves a
// line in the log.
func TestLeakIsNeverSilent(t *testing.T) {
	panics := make(chan any, 1)
	l := fixed(t, 1, limiter.Config{
		OnLeak:  func(permit.Leak) { panic("out of the hook") },
		OnPanic: func(v any, _ []byte) { panics <- v },
	})
	acquireAndForget(l)
	collect(t, "reported", func() bool { return len(panics) == 1 })
	if v := <-panics; v != "out of the hook" {
		t.Errorf("OnPanic got %v", v)
	}
	runtime.KeepAlive(l)

	log := make(lines, 10)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	l = fixed(t, 1, limiter.Config{Name: "of the dependency"})
	acquireAndForget(l)
	collect(t, "logged", func() bool { return len(log) > 0 })
	if line := <-log; !strings.Contains(line, "of the dependency") {
		t.Errorf("logged: %s", line)
	}
	runtime.KeepAlive(l)
}

// lines are what a logger has written, one each. The logger writes one at a time.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }
