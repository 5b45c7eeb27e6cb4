package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// soon is far more than a stop takes, and far less than what it must not wait for.
const soon = 20 * time.Second

// runSoon runs the program, and fails the test if it goes on for long.
func runSoon(ctx context.Context, t *testing.T, args string, stdout, stderr io.Writer) int {
	t.Helper()
	code := make(chan int, 1)
	go func() { code <- run(ctx, strings.Fields(args), stdout, stderr) }()
	select {
	case c := <-code:
		return c
	case <-time.After(soon):
		t.Fatal("it does not stop")
		return 0
	}
}

// hanging are an HTTP and a gRPC server that answer the first calls, and then none: they tell of each
// that hangs, and of the first whose caller has left.
func hanging(t *testing.T, answers int64, hangs func()) (url, address string, left <-chan struct{}) {
	t.Helper()
	stop := make(chan struct{})
	gone := make(chan struct{}, 1)
	var n atomic.Int64
	hang := func(ctx context.Context) {
		if n.Add(1) <= answers {
			return
		}
		hangs()
		select {
		case <-ctx.Done():
			select {
			case gone <- struct{}{}:
			default:
			}
		case <-stop:
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hang(r.Context()) }))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	grpcServer := grpc.NewServer(grpc.ForceServerCodec(anyMessage{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		hang(stream.Context())
		return stream.SendMsg(&[]byte{})
	}))
	go func() { _ = grpcServer.Serve(listener) }() // ends with Stop
	t.Cleanup(func() {
		close(stop)
		server.Close()
		grpcServer.Stop()
	})
	return server.URL, listener.Addr().String(), gone
}

// Ctrl-C ends the load at once, though calls hang that may take ten minutes. What was finished is
// told, printed and written; of a step that was not over nothing is.
func TestSizeLoadStopsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name, flags string
		answers     int64 // calls that are, before all hang
		at          string
		steps       int
		told        string
	}{
		{"a call hangs", " -rate 400 -max-rate 800 -duration 1m", 0, "", 0, "bench: interrupted: nothing was finished\n"},
		{"after a step", " -rate 40 -max-rate 80 -duration 4s", 1000, "size: 10 calls/s", 1, "bench: interrupted: 1 step of the load, with "},
	} {
		for _, protocol := range []string{"HTTP", "gRPC"} {
			t.Run(tt.name+", "+protocol, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				url, address, left := hanging(t, tt.answers, cancel)
				target := " -url " + url
				if protocol == "gRPC" {
					target = " -grpc " + address + " -method a.B/C"
				}
				path := filepath.Join(t.TempDir(), "out.json")
				var stdout, told strings.Builder
				var stderr io.Writer = &told
				if tt.at != "" {
					stderr = io.MultiWriter(&told, &cancelAt{tt.at, cancel})
				}
				if code := runSoon(ctx, t, "size -timeout 10m -grace 0s -json "+path+tt.flags+target, &stdout, stderr); code != exitInterrupted {
					t.Errorf("exit code %d, want 130", code)
				}
				if !strings.Contains(told.String(), tt.told) {
					t.Errorf("%q is not told:\n%s", tt.told, &told)
				}
				r := readReport[sizeReport](t, path)
				if tt.steps == 0 {
					select {
					case <-left:
					case <-time.After(soon):
						t.Error("the call that hangs was not ended")
					}
					if r.Input != nil || stdout.Len() > 0 {
						t.Errorf("%+v; output:\n%s", r.Input, &stdout)
					}
					return
				}
				if r.Input == nil || len(r.Input.Steps) != tt.steps || r.Input.Answers == 0 || r.Input.Failed != 0 || r.Input.P50 != 0 {
					t.Fatalf("%+v", r.Input)
				}
				for _, want := range []string{"Dependency: " + protocol + ", ", "answered/s", "latency ms   not known"} {
					if !strings.Contains(stdout.String(), want) {
						t.Errorf("%q is not printed:\n%s", want, &stdout)
					}
				}
			})
		}
	}
}

// Why calls fail is told in the line of the step and in the error, and printed and written with the
// step.
func TestSizeTellsWhyCallsFail(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	address, _ := serveStock(t)
	for _, tt := range []struct{ target, cause string }{
		{"-url " + server.URL, "404 Not Found"},
		{"-url " + server.URL + "/away", "302 Found (redirects are not followed)"},
		{"-url http://127.0.0.1:1/", "connection refused"}, // nobody listens at port 1
		{"-grpc 127.0.0.1:1 -method a.B/C", "Unavailable: connection refused"},
		{"-grpc " + address + " -method a.B/C", "Unimplemented"},
	} {
		path := filepath.Join(t.TempDir(), "out.json")
		var stdout, stderr strings.Builder
		if code := run(t.Context(), strings.Fields("size "+tt.target+" -rate 80 -max-rate 80 -duration 3s -grace 0s -json "+path), &stdout, &stderr); code != exitFailed {
			t.Errorf("%s: exit code %d, want 1", tt.target, code)
		}
		r := readReport[sizeReport](t, path)
		if r.Input == nil || len(r.Input.Steps) != 1 || len(r.Input.Steps[0].Causes) != 1 || r.Input.Steps[0].Causes[0].Cause != tt.cause {
			t.Errorf("%s: %+v", tt.target, r.Input)
			continue
		}
		n := r.Input.Steps[0].Calls
		why := fmt.Sprintf("%d × %s", n, tt.cause)
		step := fmt.Sprintf("none of %d calls was answered: %s\n", n, why)
		failure := fmt.Sprintf("%d of %d calls (100 %%) failed at 20 a second already, a fourth of the present rate (%s)\n", n, n, why)
		if !strings.Contains(stderr.String(), step) || !strings.Contains(stderr.String(), failure) || !strings.Contains(stdout.String(), why) || strings.Contains(stderr.String(), "p50") {
			t.Errorf("%s: output:\n%s%s", tt.target, &stdout, &stderr)
		}
	}
}

// Neither what is printed nor what is written has the password of a URL in it, or the values of its
// query: the service gets them.
func TestSizeKeepsSecrets(t *testing.T) {
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		got.Store(password + " " + r.URL.RawQuery)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	args := strings.Fields("size -url http://me:secret1@" + server.Listener.Addr().String() + "/x?key=secret2 -rate 80 -max-rate 80 -duration 3s -grace 0s -json -")
	before := os.Args
	defer func() { os.Args = before }()
	os.Args = append([]string{"bench"}, args...)
	var output strings.Builder
	if code := run(t.Context(), args, &output, &output); code != exitFailed {
		t.Errorf("exit code %d, want 1", code)
	}
	if got.Load() != "secret1 key=secret2" {
		t.Errorf("the service got %v", got.Load())
	}
	if strings.Contains(output.String(), "secret") || strings.Count(output.String(), "me:xxxxx@") != 2 { // the warning and the command
		t.Errorf("output:\n%s", &output)
	}
}
