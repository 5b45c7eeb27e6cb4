package sizing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// An attack ends in the instant in which its context does, though the next call is due much later.
func TestHTTPEndsWhileNoCallIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		// The first call would be after 100 s.
		samples, err := HTTP("GET", "http://none.test/", nil, time.Second, nil)(ctx, 0.01, time.Hour)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || len(samples) > 0 || took != 10*time.Second {
			t.Errorf("%d samples, %v after %v", len(samples), err, took)
		}
		time.Sleep(100 * time.Second) // when vegeta wakes up, and ends
	})
}

// What the end of an attack cuts short is no failure of the dependency: calls that hang then are left
// out, and not waited for.
func TestGRPCLeavesOutWhatItsEndCutsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, err := grpc.NewClient("passthrough:///none.test", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		began := time.Now()
		samples, err := GRPC(conn, "a.B/C", nil, time.Hour)(ctx, 1, time.Hour)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || len(samples) > 0 || took != 10500*time.Millisecond {
			t.Errorf("%d samples, %v after %v", len(samples), err, took)
		}
	})
}

// However much a server sends, little of it is kept: a long body is read to its end and forgotten,
// and with headers without an end the call fails.
func TestHTTPKeepsLittleOfAnswers(t *testing.T) {
	const calls, long = 4, 16 << 20
	piece := make([]byte, 64<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/headers" {
			w.Header().Set("Long", strings.Repeat("x", 2*maxHeaders))
			return
		}
		for range long / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	attack := func(path string) []Sample {
		samples, err := HTTP("GET", server.URL+path, nil, time.Minute, nil)(t.Context(), 100, calls*10*time.Millisecond)
		if err != nil || len(samples) != calls {
			t.Fatalf("%s: %d samples, %v", path, len(samples), err)
		}
		return samples
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, s := range attack("/body") {
		if s.Failed {
			t.Errorf("a long body: %+v", s)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > long/4 {
		t.Errorf("%d calls with %d bytes each took %d bytes of memory", calls, long, grown)
	}
	for _, s := range attack("/headers") {
		if !s.Failed {
			t.Errorf("headers beyond %d bytes: %+v", maxHeaders, s)
		}
	}
}
