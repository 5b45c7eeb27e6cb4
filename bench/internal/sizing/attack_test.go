package sizing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
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
