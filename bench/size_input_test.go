package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// latencies are as many as are needed, one a line.
func latencies() string {
	var lines strings.Builder
	for i := range 200 {
		fmt.Fprintf(&lines, "%d\n", 10+i%13)
	}
	return lines.String()
}

// withInput makes a file the standard input until the test is over.
func withInput(t *testing.T, file *os.File) {
	t.Helper()
	before := os.Stdin
	os.Stdin = file
	t.Cleanup(func() {
		os.Stdin = before
		_ = file.Close() // it was only read
	})
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A file that is read is not written to, whatever it is called and whichever flag it is of: it stays
// as it is.
func TestSizeDoesNotOverwriteItsInput(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "latencies"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, []byte(latencies()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	withInput(t, openFile(t, path))
	const load = " -rate 80 -max-rate 80 -duration 3s -grace 0s"
	for _, flags := range []string{
		"-file " + path + " -json " + path,
		"-file " + dir + "/./latencies -json " + link,
		"-file - -json " + link,
		"-url http://127.0.0.1:1 -data " + path + " -json " + link + load,
		"-url https://127.0.0.1:1 -ca " + path + " -json " + link + load,
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), strings.Fields("size "+flags), &stdout, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "-json is the same file") {
			t.Errorf("%s: exit code %d; output:\n%s%s", flags, code, &stdout, &stderr)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != latencies() {
			t.Fatalf("%s: the file is another one, %v", flags, err)
		}
	}
	// Nor does -json make the file that is then read.
	missing := filepath.Join(dir, "missing")
	var stdout, stderr strings.Builder
	if code := run(t.Context(), strings.Fields("size -file "+missing+" -json "+missing), &stdout, &stderr); code != exitUsage {
		t.Errorf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the file was made")
	}
}

// The file - is the standard input. What nobody writes does not keep Ctrl-C from ending it.
func TestSizeReadsStandardInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "latencies")
	if err := os.WriteFile(path, []byte(latencies()), 0o600); err != nil {
		t.Fatal(err)
	}
	withInput(t, openFile(t, path))
	var stdout, stderr strings.Builder
	if code := run(t.Context(), strings.Fields("size -file - -workers 10"+little), &stdout, &stderr); code != exitOK || !strings.Contains(stdout.String(), "200 answers, 0 failures") {
		t.Errorf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	withInput(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := runSoon(ctx, t, "size -file -", &stdout, &stderr); code != exitInterrupted || !strings.Contains(stderr.String(), "interrupted: nothing was finished") {
		t.Errorf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Where nothing says whether a call may be carried out twice, the text to paste says so, and its
// hedgingPolicy is for nobody until a service is named; -method names it.
func TestSizeOfUnknownMethods(t *testing.T) {
	const unsaid = "whether a call may be carried out twice was not said: -idempotent"
	for _, tt := range []struct {
		flags   string
		want    []string
		without string
	}{
		{"", []string{unsaid, `"service": "name.your.Service"`, "Only for calls that may be carried out twice", "name.your.Service stands for the service to hedge"}, "[\n        {}"},
		{" -idempotent -method shop.Stock/GetStock", []string{`"service": "shop.Stock"`, `"method": "GetStock"`}, unsaid},
		{" -method POST", []string{"a call may not be carried out twice: POST is not known to be idempotent"}, "hedgingPolicy\""},
	} {
		var stdout, stderr strings.Builder
		// As in TestSizeTable: hedging helps.
		args := append(strings.Fields("size -rate 700 -workers 40"+little+tt.flags), "-table", "p50=10ms p99=100ms p99.9=150ms")
		if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
			t.Fatalf("exit code %d; output:\n%s%s", code, &stdout, &stderr)
		}
		flat := strings.Join(strings.Fields(strings.ReplaceAll(stdout.String(), "//", "")), " ")
		for _, want := range tt.want {
			if !strings.Contains(flat, want) {
				t.Errorf("%q is not printed:\n%s", want, &stdout)
			}
		}
		if strings.Contains(stdout.String(), tt.without) {
			t.Errorf("%q is printed:\n%s", tt.without, &stdout)
		}
	}
}
