package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// drawScript makes one attempt's behaviour. Times are whole milliseconds, so that
// things often happen in the same instant.
func drawScript(t *rapid.T, label string) script {
	millis := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label+name)) * time.Millisecond
	}
	s := script{
		headers: millis(" headers", 6),
		deaf:    rapid.Bool().Draw(t, label+" deaf"),
		status:  rapid.SampledFrom([]int{200, 200, 200, 404, 503, 500, 429}).Draw(t, label+" status"),
		unread:  rapid.Bool().Draw(t, label+" unread"),
	}
	switch rapid.IntRange(0, 9).Draw(t, label+" end") {
	case 0:
		s.err = errRefused
	case 1:
		s.null = true
	case 2: // no body
	default:
		s.body = "body"
		s.bodyTime = millis(" body", 6)
		s.closeTime = millis(" close", 3)
		if rapid.Bool().Draw(t, label+" cut") {
			s.bodyErr = io.ErrUnexpectedEOF
		}
	}
	return s
}

// In flight is the number of attempts whose work has not ended, at every step,
// counted inside the transport, whatever attempts and callers do.
func TestInFlightIsWhatRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			const limit = 3
			l := fixed(t, limit, rapid.SampledFrom([]int{0, 2, -1}).Draw(t, "waiting"))
			losers := rapid.SampledFrom([]hedgedlimit.LoserPolicy{
				hedgedlimit.Cancel(), hedgedlimit.Drain(2 * time.Millisecond),
			}).Draw(t, "losers")
			h, err := hedgedlimit.New(hedgedlimit.Config{
				Gates: hedgedlimit.NoGates, Limiter: l, MaxAttempts: rapid.IntRange(1, 3).Draw(t, "attempts"), Losers: losers,
				Delay: hedgedlimit.Fixed(2 * time.Millisecond), Budget: hedgedlimit.Unlimited,
			})
			if err != nil {
				t.Fatal(err)
			}
			f := &fake{}
			for i := range rapid.IntRange(1, 8).Draw(t, "scripts") {
				f.scripts = append(f.scripts, drawScript(t, fmt.Sprint("attempt ", i)))
			}
			tr := transport(t, f, httpmw.WithHedger(h), httpmw.DrainBytes(rapid.Int64Range(0, 5).Draw(t, "drain")),
				httpmw.DelayFrom(rapid.SampledFrom([]httpmw.AnswerPoint{httpmw.Headers, httpmw.FirstByte}).Draw(t, "from")),
				httpmw.DeadlineFraction(rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "fraction")))

			var plans []plan
			for i := range rapid.IntRange(1, 4).Draw(t, "calls") {
				plans = append(plans, drawPlan(t, fmt.Sprint("call ", i)))
			}

			// Nothing is drawn and nothing fails from here on before all has ended: a
			// bubble cannot be left while goroutines sleep in it.
			var calls sync.WaitGroup
			bodies := &handles{}
			var broken []string
			for _, p := range plans {
				calls.Go(func() {
					if err := p.run(tr, bodies); err != nil {
						t.Errorf("%+v: %v", p, err)
					}
				})
			}
			for range 60 {
				synctest.Wait()
				running := f.get(&f.running)
				if n := l.InFlight(); n != running || n > limit {
					broken = append(broken, fmt.Sprintf("in flight: %d, running: %d, limit: %d", n, running, limit))
				}
				time.Sleep(time.Millisecond)
			}
			calls.Wait()
			synctest.Wait()
			if broken != nil {
				t.Fatal(broken)
			}
			probe(t, l)
			bodies.check(t)
			if f.opened > f.closes {
				t.Fatalf("%d response bodies were opened and %d closed", f.opened, f.closes)
			}
		})
	})
}

// plan is what one caller does.
type plan struct {
	start, cancel, linger time.Duration
	toEnd, withBody       bool
	method                string
}

func drawPlan(t *rapid.T, label string) plan {
	millis := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label+name)) * time.Millisecond
	}
	return plan{
		start: millis(" start", 6), cancel: millis(" cancel", 12), linger: millis(" linger", 3),
		toEnd: rapid.Bool().Draw(t, label+" to end"), withBody: rapid.Bool().Draw(t, label+" with body"),
		method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, label+" method"),
	}
}

func (p plan) run(tr http.RoundTripper, bodies *handles) error {
	time.Sleep(p.start)
	ctx, stop := context.WithTimeout(context.Background(), p.cancel)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, p.method, "http://host.test/", nil)
	if err != nil {
		return err
	}
	if p.withBody {
		req.GetBody = bodies.open
		req.Body, _ = bodies.open()
	}
	answer, err := tr.RoundTrip(req)
	if (answer == nil) == (err == nil) {
		return fmt.Errorf("RoundTrip returned %v and %v", answer, err)
	}
	if err != nil {
		return nil // as the scripts will have it
	}
	time.Sleep(p.linger)
	if p.toEnd {
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	_ = answer.Body.Close()
	return nil
}

// handles are request bodies that count how often they are closed.
type handles struct {
	mu     sync.Mutex
	closed []int
}

func (h *handles) open() (io.ReadCloser, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = append(h.closed, 0)
	return &handle{h, len(h.closed) - 1}, nil
}

func (h *handles) check(t interface{ Errorf(string, ...any) }) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, n := range h.closed {
		if n != 1 {
			t.Errorf("request body %d was closed %d times, want once", i, n)
		}
	}
}

type handle struct {
	handles *handles
	number  int
}

func (h *handle) Read([]byte) (int, error) { return 0, io.EOF }

func (h *handle) Close() error {
	h.handles.mu.Lock()
	defer h.handles.mu.Unlock()
	h.handles.closed[h.number]++
	return nil
}
