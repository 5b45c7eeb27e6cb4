package downstream

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestMain lets the test binary be the child.
func TestMain(m *testing.M) {
	if IsChild() {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func testConfig() Config {
	return Config{
		Protocol: HTTP, Seed: 1, Replicas: 2, Slots: 2, HonoursCancel: true,
		Profile: Profile{Mean: time.Millisecond, Longest: time.Second},
	}
}

// startProcess starts a child that ends with the test.
func startProcess(ctx context.Context, t *testing.T, c Config) *Process {
	t.Helper()
	p, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProcess(t *testing.T) {
	for protocol, ask := range map[string]func(t *testing.T, address string, call uint64, attempt int){
		HTTP: askHTTP,
		GRPC: askGRPC,
	} {
		t.Run(protocol, func(t *testing.T) {
			c := testConfig()
			c.Protocol = protocol
			p := startProcess(t.Context(), t, c)
			if len(p.Addresses()) != 2 {
				t.Fatalf("Addresses() = %v, want two", p.Addresses())
			}
			for i, address := range p.Addresses() {
				if !strings.HasPrefix(address, "127.0.0.1:") {
					t.Errorf("replica %d listens on %s, want loopback", i, address)
				}
				ask(t, address, uint64(i), i+1)
			}
			before, err := p.Mark()
			if err != nil {
				t.Fatal(err)
			}
			report, err := p.Report()
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Visits) != 2 || report.Peak != 1 {
				t.Errorf("%d visits with a peak of %d, want 2 and 1", len(report.Visits), report.Peak)
			}
			for i, v := range report.Visits {
				if v.Call != uint64(i) || v.Attempt != i+1 || v.Enter <= 0 || v.Exit <= v.Enter {
					t.Errorf("visit %d = %+v", i, v)
				}
			}
			if u := report.Usage; u.CPU < before.CPU || u.Memory == 0 || u.MemorySource == "" {
				t.Errorf("usage before %+v, after %+v", before, u)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// askHTTP sends one attempt of a call over HTTP.
func askHTTP(t *testing.T, address string, call uint64, attempt int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(CallHeader, fmt.Sprint(call))
	r.Header.Set(AttemptHeader, fmt.Sprint(attempt))
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("call %d: %s, %v", call, response.Status, err)
	}
}

// askGRPC sends one attempt of a call over gRPC. The first one does not say its number.
func askGRPC(t *testing.T, address string, call uint64, attempt int) {
	t.Helper()
	channel, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = channel.Close() }() // nothing runs on it
	ctx := t.Context()
	if attempt > 1 {
		ctx = metadata.AppendToOutgoingContext(ctx, previousAttempts, fmt.Sprint(attempt-1))
	}
	if err := channel.Invoke(ctx, Method, wrapperspb.UInt64(call), new(emptypb.Empty)); err != nil {
		t.Errorf("call %d: %v", call, err)
	}
}

// The child ends by itself, not by being killed, when nobody holds its input any
// more. That is what a parent that crashes does.
func TestProcessEndsWithItsInput(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(p *Process, cancel context.CancelFunc)
	}{
		{"input closed", func(p *Process, _ context.CancelFunc) { _ = p.input.Close() }},
		{"context ended", func(_ *Process, cancel context.CancelFunc) { cancel() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := startProcess(ctx, t, testConfig())
			tt.end(p, cancel)
			if err := p.command.Wait(); err != nil {
				t.Errorf("the child: %v, want a clean exit", err)
			}
			if _, err := p.Mark(); err == nil {
				t.Error("Mark of a child that has ended returned no error")
			}
		})
	}
}

func TestStartBadConfig(t *testing.T) {
	c := testConfig()
	c.Slots = 0
	if _, err := Start(t.Context(), c); err == nil {
		t.Error("Start with no slots returned no error")
	}
}

func TestServeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		err            bool
	}{
		{name: "nothing"},
		{name: "command first", in: `{"command":"mark"}`, want: "must be a configuration"},
		{name: "bad configuration", in: `{"config":{}}`, want: "is neither http nor grpc"},
		{name: "no JSON", in: "mark", err: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The input stays open until the answer is there, as a parent's would.
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			out := &notifyingBuffer{written: make(chan struct{}, 1)}
			done := make(chan error, 1)
			go func() { done <- serve(r, out) }()
			if _, err := w.WriteString(tt.in); err != nil {
				t.Fatal(err)
			}
			if tt.want != "" {
				<-out.written
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; (err != nil) != tt.err {
				t.Errorf("serve = %v, want an error: %t", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("answer %q does not say %q", out, tt.want)
			}
		})
	}
}

// notifyingBuffer tells when something was written. It is read after serve has
// returned.
type notifyingBuffer struct {
	bytes.Buffer
	written chan struct{}
}

func (b *notifyingBuffer) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	b.written <- struct{}{}
	return n, err
}
