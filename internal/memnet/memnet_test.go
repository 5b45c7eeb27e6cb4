package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// An hour of a handler passes in no time, and nothing is left of server and client.
func TestServesHTTPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			_, _ = io.Copy(w, r.Body)
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		base := &http.Transport{DialContext: l.DialContext}
		start := time.Now()
		answer, err := (&http.Client{Transport: base}).Get("http://anywhere.test/")
		if err != nil || time.Since(start) != time.Hour {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Error(err)
		}
		_ = answer.Body.Close()
		base.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
}

// Whoever waits for the other side is woken by Close or by the context, and has no
// connection then.
func TestWaitingEnds(t *testing.T) {
	for name, row := range map[string]struct {
		wait func(context.Context, *memnet.Listener) (net.Conn, error)
		end  func(*memnet.Listener, context.CancelFunc)
		want error
	}{
		"Accept, closed":      {accept, func(l *memnet.Listener, _ context.CancelFunc) { _ = l.Close(); _ = l.Close() }, net.ErrClosed},
		"dialling, closed":    {dial, func(l *memnet.Listener, _ context.CancelFunc) { _ = l.Close() }, net.ErrClosed},
		"dialling, cancelled": {dial, func(_ *memnet.Listener, cancel context.CancelFunc) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					c, err := row.wait(ctx, l)
					if c != nil {
						t.Errorf("it has a connection, and error %v", err)
					}
					ended <- err
				}()
				synctest.Wait()
				select {
				case err := <-ended:
					t.Fatalf("it did not wait, and returned %v", err)
				default:
				}
				row.end(l, cancel)
				if err := <-ended; !errors.Is(err, row.want) {
					t.Errorf("it returned %v, want %v", err, row.want)
				}
			})
		})
	}
}

func accept(_ context.Context, l *memnet.Listener) (net.Conn, error) { return l.Accept() }

func dial(ctx context.Context, l *memnet.Listener) (net.Conn, error) {
	return l.DialContext(ctx, "tcp", "anywhere.test:80")
}
