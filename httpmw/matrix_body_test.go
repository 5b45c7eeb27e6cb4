package httpmw_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
)

// bodySize is longer than all buffers between a handler and a caller: the window of an
// HTTP/2 stream is 4 MiB.
const bodySize = 8 << 20

// pour writes a body that is large and never repeats within a buffer, and returns its
// hash, or the error of a caller that has left.
func pour(w io.Writer) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	block := make([]byte, 64<<10)
	for i := range bodySize / len(block) {
		block[0], block[len(block)-1] = byte(i), byte(i)
		h.Write(block)
		if _, err := w.Write(block); err != nil {
			return sum, err
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// race makes a handler of which one attempt wins: it goes on to win when the other one
// has arrived, and the other one waits for its own end. Each end is reported.
type race struct {
	winner  string
	arrived chan struct{}
	ended   chan string
	win     http.HandlerFunc
}

func newRace(winner string, win http.HandlerFunc) *race {
	return &race{winner: winner, arrived: make(chan struct{}, 1), ended: make(chan string, 2), win: win}
}

func (r *race) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	attempt := request.Header.Get(httpmw.AttemptHeader)
	defer func() { r.ended <- attempt }()
	if attempt != r.winner {
		r.arrived <- struct{}{}
		<-request.Context().Done()
		return
	}
	<-r.arrived
	r.win(w, request)
}

// Field case B09, on sockets and after a race: however the caller ends a body that no
// buffer holds, its permit comes back once, and the handlers of both attempts end.
func TestLargeBodyEndsOnSockets(t *testing.T) {
	readSome := func(t *testing.T, r *http.Response) {
		t.Helper()
		if _, err := io.ReadFull(r.Body, make([]byte, 1000)); err != nil {
			t.Error(err)
		}
	}
	closing := func(t *testing.T, r *http.Response) {
		t.Helper()
		if err := r.Body.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	stall := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	all := func(w http.ResponseWriter, _ *http.Request) { _, _ = pour(w) }
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		end     func(t *testing.T, r *http.Response)
		lost    uint64
	}{
		"read to the end": {all, func(t *testing.T, r *http.Response) {
			h := sha256.New()
			if n, err := io.Copy(h, r.Body); n != bodySize || err != nil {
				t.Errorf("%d bytes and %v, want %d", n, err, bodySize)
			}
			if want, _ := pour(io.Discard); [sha256.Size]byte(h.Sum(nil)) != want {
				t.Error("the bytes are not those that were sent")
			}
		}, 0},
		"closed unread": {all, closing, 0},
		"closed early":  {all, func(t *testing.T, r *http.Response) { readSome(t, r); closing(t, r) }, 0},
		"closed twice":  {all, func(t *testing.T, r *http.Response) { readSome(t, r); closing(t, r); closing(t, r) }, 0},
		"closed while it is read": {stall, func(t *testing.T, r *http.Response) {
			began, read := make(chan struct{}), make(chan error)
			go func() {
				_, _ = io.ReadFull(r.Body, make([]byte, len("begun")))
				close(began)
				_, err := r.Body.Read(make([]byte, 1))
				read <- err
			}()
			<-began
			closing(t, r)
			if err := <-read; err == nil || err == io.EOF { //nolint:errorlint // a bare one is what would mislead
				t.Errorf("Read of a body that was closed returned %v", err)
			}
		}, 0},
		"read in part and dropped": {all, readSome, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, winner := range []string{"1", "2"} {
				t.Run("attempt "+winner+" wins", func(t *testing.T) {
					both := newRace(winner, row.handler)
					protocols(t, both, func(t *testing.T, server *httptest.Server, base *http.Transport) {
						defer server.CloseClientConnections() // ends the handler of a body that a failure left open
						l := fixed(t, 2, 0)
						tr := transport(t, base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 0, hedgedlimit.Cancel())))
						func() {
							r, err := tr.RoundTrip(request(t, http.MethodGet, server.URL, nil))
							if err != nil {
								t.Fatal(err)
							}
							if loser := <-both.ended; loser == winner {
								t.Fatal("the winner's handler has ended before the loser's")
							}
							if n := l.InFlight(); n < 1 {
								t.Errorf("in flight with the body open: %d", n)
							}
							row.end(t, r)
						}()
						eventually(t, "the permits are back", func() bool {
							if row.lost > 0 {
								runtime.GC()
							}
							return tr.Stats().LostBodies == row.lost && l.InFlight() == 0
						})
						<-both.ended
						if n := released(l); n != 2 {
							t.Errorf("%d releases, want 2", n)
						}
						probe(t, l)
					})
				})
			}
		})
	}
}

// Field case B37: a reader that takes minutes gets the whole body, whoever won and
// however long the server has to wait with its bytes in hand.
func TestSlowReaderGetsTheWholeBody(t *testing.T) {
	for _, winner := range []string{"1", "2"} {
		for _, losers := range []hedgedlimit.LoserPolicy{hedgedlimit.Cancel(), hedgedlimit.Drain(time.Second), hedgedlimit.Linger(time.Second)} {
			t.Run("attempt "+winner+" wins, "+losers.String(), func(t *testing.T) {
				inBubbles(t, func(t *testing.T, n *network) {
					var sent [sha256.Size]byte
					both := newRace(winner, func(w http.ResponseWriter, _ *http.Request) {
						var err error
						if sent, err = pour(w); err != nil {
							t.Errorf("after the headers: %v", err)
						}
					})
					url := n.start(both.ServeHTTP)
					l := fixed(t, 2, 0)
					tr := transport(t, n.base, httpmw.WithAttemptHeader(), httpmw.WithHedger(hedged(t, l, 10*ms, losers)))
					r, err := tr.RoundTrip(request(t, http.MethodGet, url, nil))
					if err != nil {
						t.Fatal(err)
					}
					h := sha256.New()
					for err == nil {
						time.Sleep(time.Second)
						_, err = io.CopyN(h, r.Body, 256<<10)
					}
					if err != io.EOF { //nolint:errorlint // bare is what readers test for
						t.Errorf("reading ended with %v", err)
					}
					for range 2 {
						<-both.ended
					}
					if got := [sha256.Size]byte(h.Sum(nil)); got != sent {
						t.Error("the bytes are not those that were sent")
					}
					synctest.Wait()
					probe(t, l)
				})
			})
		}
	}
}
