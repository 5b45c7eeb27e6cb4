package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// little makes a sizing quick.
const little = " -calls 1000 -seeds 1"

// A table as it is, with what is printed and written.
func TestSizeTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	var stdout, stderr strings.Builder
	args := append(strings.Fields("size -rate 700 -workers 40 -json "+path+little), "-table", "p50=10ms p99=100ms p99.9=150ms")
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	r := readReport[sizeReport](t, path)
	if r.Interrupted || r.Input.Workers != 40 || r.Input.Rate != 700 || r.Input.P99 < 99 || r.Input.P99 > 101 || !r.Recommendation.Complete() || r.ElapsedSeconds <= 0 {
		t.Fatalf("%+v", r)
	}
	if r.GoText == "" || r.ServiceConfigText == "" || len(r.ServiceConfigEvidence) == 0 {
		t.Error("there is no text to paste")
	}
	for _, want := range []string{
		"Dependency: table", "beyond p99.9 the slope", "capacity ", "Limit: ", "Without hedging, behind that limit", "Hedging, behind the same",
		"p95, budget 10 %", "gRPC policy, ", "As recommended", "not known whether they come together", r.GoText, r.ServiceConfigText,
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &stdout)
		}
	}
	for _, stage := range []string{"limit", "waiting", "hedging", "recommendation"} {
		if !strings.Contains(stderr.String(), "size: "+stage+": ") {
			t.Errorf("no progress of %s: %q", stage, &stderr)
		}
	}
}

// A file with an order, and calls that may not be carried out twice.
func TestSizeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "latencies")
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, "%d\n", 10+i%13+100*(i%19/18))
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if code := run(t.Context(), strings.Fields("size -method POST -workers 10 -rate 60 -file "+path+little), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	for _, want := range []string{"400 answers, 0 failures", "slow calls   by chance, as far as ", "Hedging will not help", "a call may not be carried out twice", "MaxAttempts: 1"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &stdout)
		}
	}
}

// The names of the fields are what others read.
func TestSizeSchema(t *testing.T) {
	var stdout bytes.Buffer
	args := append(strings.Fields("size -rate 700 -workers 40 -json -"+little), "-table", "p50=10ms p99=100ms")
	if code := run(t.Context(), args, &stdout, io.Discard); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	var report map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	object := func(x any, path ...string) map[string]any {
		for _, name := range path {
			x = x.(map[string]any)[name]
			if list, ok := x.([]any); ok {
				x = list[0]
			}
		}
		return x.(map[string]any)
	}
	for _, tt := range []struct {
		path []string
		want string
	}{
		{nil, "arch cases command commit cpus elapsed_seconds go go_text input interrupted machine os recommendation service_config_evidence service_config_text started"},
		{[]string{"input"}, "answers capacity correlation doubt failed idempotent kind mean_ms notes p50_ms p90_ms p95_ms p99_9_ms p99_ms rate steps tail timeout_seconds workers"},
		{[]string{"input", "correlation"}, "autocorrelation correlated error known slow slow_ms together"},
		{[]string{"recommendation"}, "as_recommended hedging limit service_config unhedged waiting"},
		{[]string{"recommendation", "limit"}, "found in_flight limit rows"},
		{[]string{"recommendation", "limit", "rows"}, "answered_per_second equal_p99_ms extra_percent failed_percent good_percent held_percent high_p99_ms limit low_p99_ms p50_ms p99_ms"},
		{[]string{"recommendation", "waiting"}, "max_wait_ms max_waiting refused wait waited"},
		{[]string{"recommendation", "hedging"}, "chosen grpc none reasons recommended rows too_few"},
		{[]string{"recommendation", "hedging", "rows"}, "as_pasted correlated delay_ms dropped fixed gain_percent gap gates grpc harmless heavier no_room present quantile ratio worst_gain_percent"},
		{[]string{"recommendation", "unhedged", "present"}, "answered_per_second equal_p99_ms extra_percent failed_percent held_percent high_p99_ms low_p99_ms p50_ms p99_ms"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(object(report, tt.path...))), " "); got != tt.want {
			t.Errorf("%v has %s\nwant %s", tt.path, got, tt.want)
		}
	}
}

// quickLoad are the flags of a load that takes two seconds.
const quickLoad = " -rate 400 -max-rate 800 -duration 2s -grace 0s"

// A URL is called as it was said, no more often than allowed, and after a warning.
func TestSizeURL(t *testing.T) {
	var calls atomic.Int64
	var mu sync.Mutex
	seen := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen[r.Method+" "+r.URL.Path+" "+string(body)]++
	}))
	defer server.Close()
	data := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(data, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ flags, want string }{
		{"", "GET /stock "},
		{" -method PUT -data " + data, "PUT /stock hello"},
	} {
		calls.Store(0)
		clear(seen)
		var stdout, stderr strings.Builder
		code := run(t.Context(), strings.Fields("size -url "+server.URL+"/stock"+tt.flags+quickLoad+little), &stdout, &stderr)
		if code != exitOK {
			t.Fatalf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
		}
		if n := calls.Load(); len(seen) != 1 || seen[tt.want] != int(n) || n == 0 || n > 1600 {
			t.Errorf("%d calls: %v", n, seen)
		}
		warning := strings.Index(stderr.String(), "WARNING: this sends real load to "+strings.Fields(tt.want)[0]+" "+server.URL)
		if step := strings.Index(stderr.String(), "size: 100 calls/s"); warning < 0 || step < warning || !strings.Contains(stderr.String(), "up to 800 calls a second, for up to 2s") {
			t.Errorf("the warning or the progress is missing:\n%s", &stderr)
		}
	}
}

// Of a dependency that fails calls at any rate, the share and the first error are told: where it is
// a few of them by a note, and otherwise that it cannot be sized.
func TestSizeOfOneThatFails(t *testing.T) {
	for _, tt := range []struct {
		one    int64 // in so many fails
		code   int
		stdout string
		stderr string
	}{
		{20, exitOK, " × 503 Service Unavailable) and are left out: ", ""},
		{2, exitFailed, "", " %) failed at 100 a second already, a fourth of the present rate ("},
	} {
		var calls atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1)%tt.one == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		var stdout, stderr strings.Builder
		code := run(t.Context(), strings.Fields("size -url "+server.URL+quickLoad+little), &stdout, &stderr)
		server.Close()
		if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("one in %d: exit code %d, want %d, %q and %q; output:\n%s%s", tt.one, code, tt.code, tt.stdout, tt.stderr, &stdout, &stderr)
		}
	}
}

// anyMessage takes and gives bytes as they are.
type anyMessage struct{}

func (anyMessage) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (anyMessage) Unmarshal(data []byte, v any) error { *v.(*[]byte) = slices.Clone(data); return nil }
func (anyMessage) Name() string                       { return "proto" }

// serveStock serves shop.Stock/GetStock, which gives its message back, until the test is over, and
// counts the calls of anything else and with another message than "\n\x01a".
func serveStock(t *testing.T, options ...grpc.ServerOption) (address string, wrong *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wrong = new(atomic.Int64)
	server := grpc.NewServer(append(options, grpc.ForceServerCodec(anyMessage{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		if method, _ := grpc.MethodFromServerStream(stream); method != "/shop.Stock/GetStock" || string(message) != "\n\x01a" {
			wrong.Add(1)
			return status.Error(codes.Unimplemented, "")
		}
		return stream.SendMsg(&message)
	}))...)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return listener.Addr().String(), wrong
}

// A gRPC method is called with the message of -data, and is hedged only if that is allowed; the
// service config names it.
func TestSizeGRPC(t *testing.T) {
	address, wrong := serveStock(t)
	data := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(data, []byte("\n\x01a"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	flags := "size -grpc " + address + " -method shop.Stock/GetStock -data " + data + quickLoad + little
	if code := run(t.Context(), strings.Fields(flags), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	if wrong.Load() > 0 {
		t.Errorf("%d calls were of something else", wrong.Load())
	}
	for _, want := range []string{"Dependency: gRPC, ", ", 0 failures", "a call may not be carried out twice", `"service": "shop.Stock"`, `"method": "GetStock"`} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &stdout)
		}
	}
}

// Ctrl-C leaves what was finished: nothing in the grace before the load, the latency in the middle
// of the simulations.
func TestSizeInterrupted(t *testing.T) {
	table := append(strings.Fields("size -rate 700 -workers 40"), "-table", "p50=10ms p99=100ms")
	for _, tt := range []struct {
		name, at string
		args     []string
		check    func(*sizeReport) bool
	}{
		{"grace", "WARNING", strings.Fields("size -url http://127.0.0.1:1/ -rate 9 -max-rate 9 -grace 1h"), func(r *sizeReport) bool { return r.Input == nil }},
		{"limit", "size: limit", table, func(r *sizeReport) bool { return r.Input.Workers == 40 && r.Recommendation.Limit == nil }},
		{"hedging", "size: hedging", append(table, strings.Fields(little)...), func(r *sizeReport) bool {
			return r.Recommendation.Waiting != nil && r.Recommendation.Hedging == nil && r.GoText == ""
		}},
		{"cases", "size: case 1", []string{"size", "-cases"}, func(r *sizeReport) bool { return r.Cases != nil && len(r.Cases) == 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			path := filepath.Join(t.TempDir(), "out.json")
			if code := run(ctx, append(tt.args, "-json", path), io.Discard, &cancelAt{tt.at, cancel}); code != exitInterrupted {
				t.Errorf("exit code %d, want 130", code)
			}
			if r := readReport[sizeReport](t, path); !r.Interrupted || !tt.check(&r) {
				t.Errorf("%+v", r)
			}
		})
	}
}
