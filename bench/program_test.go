package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a command cannot begin with it says on stderr, by the flag and the value, and exits
// as documented, with nothing on stdout.
func TestCommandsThatCannotBegin(t *testing.T) {
	dir := t.TempDir()
	file, nowhere := filepath.Join(dir, "empty"), filepath.Join(dir, "no", "such")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want string // on stderr
	}{
		{"sim -h", exitOK, "usage: go run ./bench sim"},
		{"sim -seeds 0", exitUsage, "-seeds 0"},
		{"sim -json " + nowhere, exitUsage, "bench: -json "},
		{"sim -report " + file + "/dir", exitUsage, "bench: -report"},
		{"hedge -h", exitOK, "usage: go run ./bench hedge"},
		{"hedge -seeds 0", exitUsage, "-seeds 0"},
		{"hedge -json " + nowhere, exitUsage, "bench: -json "},
		{"hedge -report " + file + "/dir", exitUsage, "bench: -report"},
		{"storm -h", exitOK, "usage: go run ./bench storm"},
		{"storm -load 0", exitUsage, "-load 0"},
		{"storm -json " + nowhere, exitUsage, "bench: -json "},
		{"storm -plot " + nowhere + ".png", exitUsage, "bench: -plot: "},
		{"soak -h", exitOK, "usage: go run ./bench soak"},
		{"soak -time 1ms", exitUsage, "-time 1ms"},
		{"soak -json " + nowhere, exitUsage, "bench: -json "},
		{"size -h", exitOK, "usage: go run ./bench size"},
		{"size -cases -rate 0", exitUsage, "-rate 0"},
		{"size -cases -json " + nowhere, exitUsage, "bench: -json "},
		{"size -file " + nowhere, exitUsage, "bench: -file: open "},
		{"size -file " + file, exitFailed, "bench: " + file + ": there is nothing in it"},
		{"size -file " + dir, exitUsage, "it is a directory"},
		{"size -url http://127.0.0.1:1/ -rate 1 -max-rate 2", exitUsage, "-rate 1, -max-rate 2 and -duration 30s are about 23 calls, of which 100 at least must be answered"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), strings.Fields(tt.args), &stdout, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stderr.String(), tt.want) || stdout.Len() > 0 {
				t.Errorf("stderr %q, stdout %q, want %q on stderr", &stderr, &stdout, tt.want)
			}
		})
	}
}
