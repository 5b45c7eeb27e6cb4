package httpmw_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

const (
	deafLimit = 8
	deafSlow  = 60 * ms // the longest service time
	deafDelay = 5 * ms  // of the hedges
)

// deaf is a server that works on when its client has left: each third first attempt is
// slow, and everything else takes no time worth a hedge.
type deaf struct {
	firsts, hedges atomic.Int64
	running, peak  atomic.Int64
	opened         atomic.Int64 // connections

	warming sync.WaitGroup // of POST requests, which wait for each other
}

func (d *deaf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := d.running.Add(1)
	for p := d.peak.Load(); n > p && !d.peak.CompareAndSwap(p, n); p = d.peak.Load() {
	}
	work := 2 * ms
	switch {
	case r.Method == http.MethodPost:
		d.warming.Done()
		d.warming.Wait()
	case r.Header.Get(httpmw.AttemptHeader) != "1":
		d.hedges.Add(1)
	case d.firsts.Add(1)%3 == 0:
		work = deafSlow
	}
	<-time.After(work) // whatever becomes of the request's context
	// The work ends here. Its end happens before the answer is written, and that
	// before the client reads it: a permit that is held until then covers all of it.
	d.running.Add(-1)
	_, _ = io.WriteString(w, "done")
}

// dialled counts the connections of a base, which is to keep all that the limit needs.
func (d *deaf) dialled(base *http.Transport) {
	base.MaxIdleConnsPerHost = deafLimit
	countDials(base, func() { d.opened.Add(1) })
}

// countDials has a base call count for each connection that it opens.
func countDials(base *http.Transport, count func()) {
	dial := base.DialContext
	if dial == nil { // package httptest sets one since Go 1.26
		dial = new(net.Dialer).DialContext
	}
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		count()
		return dial(ctx, network, address)
	}
}

// load sends calls from more callers than the limit lets in, each with pauses, so that
// at some times permits are free for hedges and at others all are out.
func (d *deaf) load(t *testing.T, tr *httpmw.Transport, url string, each int) {
	t.Helper()
	send := func(method string) {
		r, err := tr.RoundTrip(request(t, method, url, nil))
		if err != nil {
			t.Error(err)
			return
		}
		if got := read(t, r); got != "done" {
			t.Errorf("body %q", got)
		}
	}
	// One connection first, since the first of all tells that HTTP/2 needs no other;
	// then as many as the limit may need, so that none is dialled later but in the
	// place of one that was lost.
	for _, n := range []int{1, deafLimit} {
		d.warming.Add(n)
		var warm sync.WaitGroup
		for range n {
			warm.Go(func() { send(http.MethodPost) }) // no hedge
		}
		warm.Wait()
	}
	var callers sync.WaitGroup
	for i := range 12 {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		callers.Go(func() {
			for range each {
				<-time.After(time.Duration(random.IntN(int(30 * ms))))
				send(http.MethodGet)
			}
		})
	}
	callers.Wait()
}

// check tells what the server saw while as many as the limit were to run at once.
func (d *deaf) check(t *testing.T, hedged bool) {
	t.Helper()
	t.Logf("%d hedges, %d at once, %d connections", d.hedges.Load(), d.peak.Load(), d.opened.Load())
	if n := d.peak.Load(); n > deafLimit {
		t.Errorf("the server worked on %d requests at once, the limit is %d", n, deafLimit)
	}
	if n := d.hedges.Load(); n > 0 != hedged {
		t.Errorf("%d hedges were sent", n)
	}
}

// A server that ignores cancellation never works on more requests than the limit says,
// if losers are drained, or linger for longer than it takes. Under Drain that costs no
// connection that a client without hedges would not have opened too.
//
// Under Drain nothing depends on time, but for a bound that is far away. Under Linger
// the client is told of no end: without a learnt delay, as here, a permit is held for the
// whole bound, and a handler would have to start this much too late to be seen.
func TestDeafServerIsNotOverrunOnSockets(t *testing.T) {
	for _, row := range []struct {
		losers hedgedlimit.LoserPolicy
		each   int  // calls of a caller
		keeps  bool // the losers' connections
	}{
		{hedgedlimit.Drain(time.Minute), 7, true},
		{hedgedlimit.Linger(deafSlow + time.Second), 3, false},
	} {
		t.Run(row.losers.String(), func(t *testing.T) {
			var current atomic.Pointer[deaf]
			handler := func(w http.ResponseWriter, r *http.Request) { current.Load().ServeHTTP(w, r) }
			protocols(t, http.HandlerFunc(handler), func(t *testing.T, server *httptest.Server, base *http.Transport) {
				run := func(delay time.Duration) *deaf {
					d := new(deaf)
					current.Store(d)
					base := base.Clone()
					d.dialled(base)
					defer base.CloseIdleConnections()
					l := fixed(t, deafLimit, limiter.Unbounded)
					tr := transport(t, base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, delay, row.losers)))
					d.load(t, tr, server.URL, row.each)
					settle(t, l)
					d.check(t, delay == deafDelay)
					return d
				}
				got := run(deafDelay).opened.Load()
				if row.keeps {
					if plain := run(time.Hour).opened.Load(); 10*got > 11*plain {
						t.Errorf("%d connections were opened, and %d without hedges", got, plain)
					}
				}
			})
		})
	}
}

// The same to the nanosecond: in a bubble no handler starts late, and permits that
// linger for the longest service time are enough.
func TestDeafServerIsNotOverrunInABubble(t *testing.T) {
	for _, losers := range []hedgedlimit.LoserPolicy{hedgedlimit.Drain(deafSlow), hedgedlimit.Linger(deafSlow)} {
		t.Run(losers.String(), func(t *testing.T) {
			inBubbles(t, func(t *testing.T, n *network) {
				d := new(deaf)
				url := n.start(d.ServeHTTP)
				d.dialled(n.base)
				l := fixed(t, deafLimit, limiter.Unbounded)
				tr := transport(t, n.base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, deafDelay, losers)))
				d.load(t, tr, url, 20)
				time.Sleep(time.Second)
				synctest.Wait()
				probe(t, l)
				d.check(t, true)
			})
		})
	}
}
