package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// A server whose certificate nobody vouches for is not called: what is wrong with it is told by the
// first error. With -ca it is trusted.
func TestSizeTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // each refused handshake
	server.StartTLS()
	defer server.Close()
	address, _ := serveStock(t, grpc.Creds(credentials.NewServerTLSFromCert(&server.TLS.Certificates[0])))
	dir := t.TempDir()
	ca, data := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "message")
	for path, content := range map[string][]byte{
		ca:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		data: []byte("\n\x01a"),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, flags := range []string{"-url " + server.URL, "-grpc " + address + " -tls -method shop.Stock/GetStock -data " + data} {
		for _, tt := range []struct {
			trust          string
			code           int
			stdout, stderr string
		}{
			{"", exitFailed, "", "(100 %) failed at 100 a second already, a fourth of the present rate ("},
			{"", exitFailed, "", "tls: failed to verify certificate: "},
			{" -ca " + ca, exitOK, ", 0 failures", ""},
		} {
			var stdout, stderr strings.Builder
			code := run(t.Context(), strings.Fields("size "+flags+tt.trust+quickLoad+little), &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("%s%s: exit code %d, want %d, %q and %q; output:\n%s%s", flags, tt.trust, code, tt.code, tt.stdout, tt.stderr, &stdout, &stderr)
			}
		}
	}
}
