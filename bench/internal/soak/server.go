package soak

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/httpmw"
)

const (
	// meanService is what an answer takes a slot on average, at most ten times as long.
	meanService = 20 * time.Millisecond
	// maxQueue is how long a server lets a request wait for a slot before it refuses it.
	maxQueue = 50 * time.Millisecond
	// pieces and pieceGap make a slow body.
	pieces   = 5
	pieceGap = 10 * time.Millisecond
	// longBody is more than the buffers of a connection hold.
	longBody = 8 << 20
)

// kindHeader tells the server and the base what is to go wrong.
const kindHeader = "X-Soak-Kind"

// server answers as the kind of a request says, with a bounded number at once.
type server struct {
	slots chan struct{}
	long  []byte // the body of a long answer; made once, since it would be most of the heap
	http  http.Server
	url   string
	ended chan struct{}   // closed when Serve has returned
	limit *httpmw.Handler // before the slots; nil is none
}

// newServer starts a server of one protocol on a free port of loopback, behind a Handler
// of httpmw if it is to be limited.
func newServer(capacity int, protocols *http.Protocols, limited bool) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{slots: make(chan struct{}, capacity), long: make([]byte, longBody), url: "http://" + listener.Addr().String(), ended: make(chan struct{})}
	s.http = http.Server{Handler: s, Protocols: protocols}
	if limited {
		if s.limit, err = httpmw.NewHandler(s); err != nil {
			_ = listener.Close() // nobody has connected
			return nil, err
		}
		s.http.Handler = s.limit
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener) // that it was closed
	}()
	return s, nil
}

// close ends the server and all its connections.
func (s *server) close() {
	_ = s.http.Close() // of loopback connections, at the end
	<-s.ended
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	queue := time.NewTimer(maxQueue)
	defer queue.Stop()
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	case <-queue.C:
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-s.slots }()

	kind := kindOf(r.Header)
	if kind == early {
		_, _ = io.WriteString(w, "not read") // the client may be gone, here and below
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	service := time.Duration(min(rand.ExpFloat64(), 10) * float64(meanService))
	if pause(ctx, service) != nil {
		return
	}
	switch kind {
	case reset:
		if rand.IntN(2) == 0 {
			_, _ = io.WriteString(w, "the beginning of")
			_ = http.NewResponseController(w).Flush()
		}
		disconnect(w)
	case slowBody, dropped:
		for range pieces {
			_, _ = io.WriteString(w, "piece")
			_ = http.NewResponseController(w).Flush()
			if pause(ctx, pieceGap) != nil {
				return
			}
		}
	case closedEarly, droppedLong:
		_, _ = w.Write(s.long)
	default:
		_, _ = w.Write(make([]byte, 1024))
	}
}

// disconnect resets the connection of HTTP/1.1, and the stream of HTTP/2.
func disconnect(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // so that Close sends a reset
	}
	_ = conn.Close()
}

// pause waits, or returns the error of ctx if that ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kindOf reads the kind of a request. Without one it is plain.
func kindOf(h http.Header) kind {
	n, err := strconv.Atoi(h.Get(kindHeader))
	if err != nil {
		return plain
	}
	return kind(n)
}
