package httpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/httpmw"
)

// visit is one request to a server, and what its handler does with it.
type visit struct {
	start, work, leave time.Duration // leave: when the client goes, from the start
	deaf               bool          // the handler does not look at the context
	attempt, timeout   int
	exempt             bool
	end                string // return, panic, exit or hijack
}

func drawVisit(t *rapid.T, label string) visit {
	millis := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label+name)) * time.Millisecond
	}
	return visit{
		start: millis(" start", 10), work: millis(" work", 10), leave: millis(" leave", 20),
		deaf:    rapid.Bool().Draw(t, label+" deaf"),
		attempt: rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, label+" attempt"),
		timeout: rapid.SampledFrom([]int{-1, -1, 0, 5, 15}).Draw(t, label+" timeout"),
		exempt:  rapid.IntRange(0, 9).Draw(t, label+" exempt") == 0,
		end:     rapid.SampledFrom([]string{"return", "return", "panic", "exit", "hijack"}).Draw(t, label+" end"),
	}
}

// hijackable is a ResponseWriter whose connection can be taken.
type hijackable struct {
	quiet
	hijacked bool
}

type visitKey struct{}

// books are what the handlers and the clients see, counted outside of what is tested.
type books struct {
	running, peak    atomic.Int64 // without exempt ones
	served, exempted atomic.Int64
	refused          atomic.Int64
}

func (b *books) handle(w http.ResponseWriter, r *http.Request) {
	v := r.Context().Value(visitKey{}).(visit)
	if v.exempt {
		b.exempted.Add(1)
	} else {
		b.served.Add(1)
		n := b.running.Add(1)
		defer b.running.Add(-1)
		for old := b.peak.Load(); old < n && !b.peak.CompareAndSwap(old, n); old = b.peak.Load() {
		}
	}
	_ = pause(r.Context(), v.work, v.deaf)
	switch v.end {
	case "panic":
		panic(v.end)
	case "exit":
		runtime.Goexit()
	case "hijack":
		w.(*hijackable).hijacked = true // it is ours by this; the rest is up to the server
	}
}

// In flight is the number of handlers that run, at every step and never above the limit,
// whatever clients and handlers do; nothing is left at the end, and every request is
// either served or refused, for one reason.
func TestHandlersThatRunAreInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			const limit = 3
			l := fixed(t, limit, rapid.SampledFrom([]int{0, 2, -1}).Draw(t, "waiting"))
			opts := []httpmw.HandlerOption{
				httpmw.HandlerLimiter(l), httpmw.DeadlineFromHeader(10 * ms),
				httpmw.MaxExtra(rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "extra")),
				httpmw.Exempt(func(r *http.Request) bool { return r.Context().Value(visitKey{}).(visit).exempt }),
			}
			if rapid.Bool().Draw(t, "reports") {
				opts = append(opts, httpmw.AcceptReports())
			}
			var b books
			h := limited(t, b.handle, opts...)
			var visits []visit
			for i := range rapid.IntRange(1, 12).Draw(t, "visits") {
				visits = append(visits, drawVisit(t, fmt.Sprint("visit ", i)))
			}
			closes := time.Duration(rapid.IntRange(0, 30).Draw(t, "closes")) * ms

			// Nothing is drawn and nothing fails from here on before all has ended: a
			// bubble cannot be left while goroutines sleep in it.
			var clients sync.WaitGroup
			for _, v := range visits {
				clients.Go(func() { b.visit(t, h, v) })
			}
			var closed atomic.Bool
			var atClose int64
			clients.Go(func() {
				time.Sleep(closes)
				if err := h.Close(context.Background()); err != nil {
					t.Errorf("Close: %v", err)
				}
				atClose = b.running.Load() + int64(l.InFlight())
				closed.Store(true)
			})
			var broken []string
			for range 50 {
				synctest.Wait()
				running := b.running.Load()
				if n := int64(l.InFlight()); n != running || n > limit || closed.Load() && n > 0 {
					broken = append(broken, fmt.Sprintf("in flight: %d, running: %d, limit: %d, closed: %v", n, running, limit, closed.Load()))
				}
				time.Sleep(ms)
			}
			clients.Wait()
			synctest.Wait()
			s := h.Stats()
			r := s.Refused
			refused := r.Full + r.ExtraFull + r.ExtraShare + r.Expired + r.Gone + r.Closed
			switch {
			case broken != nil:
				t.Fatal(broken)
			case b.peak.Load() > limit:
				t.Fatalf("%d ran at once, the limit is %d", b.peak.Load(), limit)
			case atClose != 0:
				t.Fatalf("%d ran or were in flight when Close had returned", atClose)
			case b.served.Load()+b.exempted.Load()+b.refused.Load() != int64(len(visits)):
				t.Fatalf("of %d requests %d were served, %d exempt and %d refused", len(visits), b.served.Load(), b.exempted.Load(), b.refused.Load())
			case refused != uint64(b.refused.Load()) || s.Exempt != uint64(b.exempted.Load()) || s.Inside != 0:
				t.Fatalf("%d were refused: %+v", b.refused.Load(), s)
			}
			probe(t, l)
		})
	})
}

// visit is the client's side. Its goroutine may end by Goexit.
func (b *books) visit(t *rapid.T, h http.Handler, v visit) {
	time.Sleep(v.start)
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), visitKey{}, v), v.leave)
	defer cancel()
	r := incoming(ctx)
	if v.attempt > 0 {
		r.Header.Set(httpmw.AttemptHeader, strconv.Itoa(v.attempt))
	}
	if v.timeout >= 0 {
		r.Header.Set(httpmw.TimeoutHeader, strconv.Itoa(v.timeout))
	}
	w := &hijackable{quiet: quiet{header: http.Header{}}}
	defer func() {
		if got := recover(); got != nil && got != v.end {
			t.Errorf("recovered %v", got)
		}
		switch {
		case w.status == http.StatusServiceUnavailable:
			b.refused.Add(1)
		case v.end == "hijack" && !w.hijacked:
			t.Errorf("%+v was neither refused nor served", v)
		}
	}()
	h.ServeHTTP(w, r)
}
