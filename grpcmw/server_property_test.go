package grpcmw_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// visit is one call to a server, and what its handler does with it.
type visit struct {
	method             string
	start, work, leave time.Duration // leave: when the client goes, from the start
	cancels            bool          // by cancellation, and not by its deadline
	deaf               bool          // the handler does not look at the context
	previous           int
	end                string // return, status, panic or exit
}

func drawVisit(t *rapid.T, label string) visit {
	millis := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label+name)) * ms
	}
	return visit{
		method: rapid.SampledFrom(allKinds).Draw(t, label+" method"),
		start:  millis(" start", 10), work: millis(" work", 10), leave: millis(" leave", 20),
		cancels:  rapid.Bool().Draw(t, label+" cancels"),
		deaf:     rapid.Bool().Draw(t, label+" deaf"),
		previous: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, label+" previous"),
		end:      rapid.SampledFrom([]string{"return", "return", "status", "panic", "exit"}).Draw(t, label+" end"),
	}
}

// handle is what the handler of a visit does.
func (v visit) handle(ctx context.Context) error {
	pause(ctx, v.work, v.deaf)
	switch v.end {
	case "status":
		return status.Error(codes.Unavailable, "")
	case "panic":
		panic(v.end)
	case "exit":
		runtime.Goexit()
	}
	return nil
}

// call is the client's side of a visit, the n-th.
func (v visit) call(s *shop, n int) {
	time.Sleep(v.start)
	ctx, cancel := context.WithTimeout(context.Background(), v.leave)
	defer cancel()
	if v.cancels {
		ctx, cancel = context.WithCancel(context.Background())
		defer cancel()
		time.AfterFunc(v.leave, cancel)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "visit", strconv.Itoa(n))
	if v.previous > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, attempts, strconv.Itoa(v.previous))
	}
	_ = s.call(ctx, v.method) // the books tell how it went
}

// books are what stands outside and inside of a Server, counted without it.
type books struct {
	spared                       string // the method that is exempt
	came, served, spare, running atomic.Int64
	peak                         atomic.Int64
}

func (b *books) outside(context.Context, string) (after func()) {
	b.came.Add(1)
	return func() {}
}

func (b *books) inside(_ context.Context, method string) (after func()) {
	if method == b.spared {
		b.spare.Add(1)
		return func() {}
	}
	b.served.Add(1)
	n := b.running.Add(1)
	for old := b.peak.Load(); old < n && !b.peak.CompareAndSwap(old, n); old = b.peak.Load() {
	}
	return func() { b.running.Add(-1) }
}

// check compares the books with what the Server says at the end.
func (b *books) check(t rapid.TB, s grpcmw.ServerStats, limit int64) {
	t.Helper()
	r := s.Refused
	refused := r.Full + r.ExtraFull + r.ExtraShare + r.Expired + r.Gone + r.Closed
	switch {
	case b.peak.Load() > limit:
		t.Errorf("%d ran at once, the limit is %d", b.peak.Load(), limit)
	case b.came.Load() != b.served.Load()+b.spare.Load()+int64(refused):
		t.Errorf("%d calls came, %d were served, %d exempt, and refused %+v", b.came.Load(), b.served.Load(), b.spare.Load(), r)
	case s.Exempt != uint64(b.spare.Load()) || s.Inside != 0:
		t.Errorf("%d were exempt at rest: %+v", b.spare.Load(), s)
	case s.Limiter.Ledger.Granted < uint64(b.served.Load()): // who left in the instant of a grant is not served
		t.Errorf("%d were served: %+v", b.served.Load(), s)
	}
}

// In flight is the number of handlers that run, at every step and never above the limit,
// whatever clients and handlers do; nothing is left at the end, and every call that came
// was either served or refused, for one reason.
func TestServerHandlersThatRunAreInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			const limit = 3
			l := fixedLimiter(t, limit, rapid.SampledFrom([]int{0, 2, -1}).Draw(t, "waiting"))
			b := books{spared: rapid.SampledFrom([]string{"", "", get, list}).Draw(t, "exempt")}
			var visits []visit
			for i := range rapid.IntRange(1, 12).Draw(t, "visits") {
				visits = append(visits, drawVisit(t, fmt.Sprint("visit ", i)))
			}
			options := []any{
				grpcmw.MaxExtra(rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "extra")),
				grpcmw.Exempt(func(method string) bool { return method == b.spared }),
				around(b.outside), inside(around(b.inside)),
			}
			if rapid.Bool().Draw(t, "reports") {
				options = append(options, grpcmw.AcceptReports())
			}
			closes := time.Duration(rapid.IntRange(0, 30).Draw(t, "closes")) * ms
			s := open(t, l, func(ctx context.Context, _ string) error {
				n, err := strconv.Atoi(metadata.ValueFromIncomingContext(ctx, "visit")[0])
				if err != nil {
					return err
				}
				return visits[n].handle(ctx)
			}, options...)
			s.serve(s.backend.listener)

			// Nothing is drawn and nothing fails from here on before all has ended: a
			// bubble cannot be left while goroutines sleep in it.
			var clients sync.WaitGroup
			for n, v := range visits {
				clients.Go(func() { v.call(s, n) })
			}
			var closed atomic.Bool
			var atClose int64
			clients.Go(func() {
				time.Sleep(closes)
				if err := s.server.Close(context.Background()); err != nil {
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
			s.close()
			if broken != nil || atClose != 0 {
				t.Errorf("%v; %d ran or were in flight when Close had returned", broken, atClose)
			}
			b.check(t, s.server.Stats(), limit)
		})
	})
}
