package sizing

import (
	"context"
	"errors"
	"net"
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
