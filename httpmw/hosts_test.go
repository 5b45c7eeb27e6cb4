package httpmw_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// Each host has its own limit; the map of hosts is bounded, and a busy host stays.
//
// Field case B62: nothing that grows with paths, methods or hosts.
func TestHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var built []string
		f := &fake{scripts: []script{{body: "body"}}}
		tr := transport(t, f, httpmw.MaxHosts(3), httpmw.WithConfig(func(host string, c *hedgedlimit.Config) error {
			built = append(built, host)
			c.Limiter = fixed(t, 1, 0)
			if host == "bad.test" {
				return errRefused
			}
			return nil
		}))
		send := func(host string) (*http.Response, error) {
			r := get(t.Context(), t)
			r.URL.Host = host
			return tr.RoundTrip(r)
		}
		open := make(map[string]*http.Response)
		for _, host := range []string{"a.test", "B.test:80", "c.test"} {
			r, err := send(host)
			if err != nil {
				t.Fatal(err)
			}
			open[host] = r
		}
		if _, err := send("b.TEST:80"); err != limiter.ErrLimitExceeded { //nolint:errorlint // bare is what is asked
			t.Errorf("a second request to a host with a limit of 1: %v", err)
		}
		// All are busy: newcomers share a limit.
		r, err := send("d.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := send("e.test"); err != limiter.ErrLimitExceeded { //nolint:errorlint // as above
			t.Errorf("a second request beyond the hosts: %v", err)
		}
		read(t, r)
		synctest.Wait()
		s := tr.Stats()
		if s.Overflowed != 2 || s.Overflow.Hedging.Calls != 2 || len(s.Hosts) != 3 || s.Hosts[0].Host != "b.test:80" || s.DroppedHosts != 0 {
			t.Errorf("with all busy: %+v", s)
		}
		// The only idle one goes, though it was used last.
		read(t, open["B.test:80"])
		synctest.Wait()
		if _, err := send("bad.test"); err != errRefused { //nolint:errorlint // as above
			t.Errorf("a host without configuration: %v", err)
		}
		r, err = send("d.test")
		if err != nil {
			t.Fatal(err)
		}
		read(t, r)
		s = tr.Stats()
		var names []string
		for _, h := range s.Hosts {
			names = append(names, h.Host)
		}
		if want := []string{"d.test", "c.test", "a.test"}; !slices.Equal(names, want) || s.DroppedHosts != 1 {
			t.Errorf("kept %v, dropped %d, want %v and 1", names, s.DroppedHosts, want)
		}
		read(t, open["a.test"])
		read(t, open["c.test"])
		for i := range 1000 {
			r, err := send(fmt.Sprintf("host-%d.test", i))
			if err != nil {
				t.Fatal(err)
			}
			read(t, r)
			synctest.Wait()
		}
		if s := tr.Stats(); len(s.Hosts) != 3 || s.DroppedHosts != 1001 {
			t.Errorf("after 1000 hosts: %d kept, %d dropped", len(s.Hosts), s.DroppedHosts)
		}
		if want := []string{"", "a.test", "b.test:80", "c.test", "bad.test", "d.test"}; !slices.Equal(built[:6], want) {
			t.Errorf("configured %q, want %q", built[:6], want)
		}
	})
}

// A newcomer looks at a few hosts only, but an idle one among many busy ones is found,
// wherever it is.
func TestIdleHostIsFoundAmongBusyOnes(t *testing.T) {
	const hosts = 100
	for _, idle := range []int{0, 1, 50, hosts - 1} {
		synctest.Test(t, func(t *testing.T) {
			tr := transport(t, &fake{scripts: []script{{body: "body"}}}, httpmw.MaxHosts(hosts))
			send := func(host string) *http.Response {
				r := get(t.Context(), t)
				r.URL.Host = host
				answer, err := tr.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			var open []*http.Response
			for i := range hosts {
				open = append(open, send(fmt.Sprint(i, ".test")))
			}
			_ = open[idle].Body.Close()
			newcomers := 0
			for tr.Stats().DroppedHosts == 0 && newcomers < hosts {
				newcomers++
				read(t, send(fmt.Sprint("new", newcomers, ".test")))
				synctest.Wait()
			}
			if newcomers > hosts/8+1 {
				t.Errorf("host %d was found by newcomer %d", idle, newcomers)
			}
			for _, h := range tr.Stats().Hosts {
				if h.Host == fmt.Sprint(idle, ".test") {
					t.Error("another one was dropped")
				}
			}
			for _, r := range open {
				_ = r.Body.Close()
			}
		})
	}
}

// The counts of a host add up when it is at rest.
//
// Field case B62.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts := []script{
			{headers: 20 * ms, body: "slow"}, {body: "hedge"}, {err: errRefused}, {status: 503, body: "no"}, {body: "retry"},
			{headers: 30 * ms, body: "slow"}, {headers: 5 * ms, status: 503}, {null: true}, {status: 404},
		}
		var sent atomic.Int64
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			n := int(sent.Add(1)-1) % len(scripts) // each attempt the next script, over and over
			return (&fake{scripts: scripts[n : n+1]}).RoundTrip(r)
		})
		l := fixed(t, 2, 0)
		tr := transport(t, base, httpmw.WithHedger(hedged(t, l, 10*ms, hedgedlimit.Cancel())))
		answered := uint64(0)
		for range 10_000 {
			r, err := tr.RoundTrip(get(t.Context(), t))
			if err == nil {
				read(t, r)
				answered++
			}
		}
		synctest.Wait()
		probe(t, l)
		s := tr.Stats().Hosts[0].Hedging
		var ended, won uint64
		for k := range s.Started {
			won += s.Won[k]
			if s.Won[k] > s.Started[k] {
				t.Errorf("%v: %d won of %d", limiter.Kind(k), s.Won[k], s.Started[k])
			}
			for _, n := range s.Ended[k] {
				ended += n
			}
		}
		if s.Calls != 10_000 || won != answered || s.Succeeded != answered || ended != uint64(sent.Load()) {
			t.Errorf("%d calls, %d won, %d succeeded, %d ended; want 10000, %d, %d, %d", s.Calls, won, s.Succeeded, ended, answered, answered, sent.Load())
		}
		if skipped := s.Skipped[0] + s.Skipped[1] + s.Skipped[2]; s.Due != s.Started[limiter.Hedge]+s.Started[limiter.Retry]+skipped {
			t.Errorf("%d due, %v started, %d skipped", s.Due, s.Started, skipped)
		}
	})
}
