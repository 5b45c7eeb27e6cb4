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
		Seed: 1, Replicas: 2, Slots: 2, HonoursCancel: true,
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
	p := startProcess(t.Context(), t, testConfig())
	if len(p.Addresses()) != 2 {
		t.Fatalf("Addresses() = %v, want two", p.Addresses())
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i, address := range p.Addresses() {
		if !strings.HasPrefix(address, "127.0.0.1:") {
			t.Errorf("replica %d listens on %s, want loopback", i, address)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(CallHeader, fmt.Sprint(i))
		r.Header.Set(AttemptHeader, fmt.Sprint(i+1))
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("replica %d: %s, %v", i, response.Status, err)
		}
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
		{name: "bad configuration", in: `{"config":{}}`, want: "Replicas 0 is below 1"},
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
