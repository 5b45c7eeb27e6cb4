package main

import (
	"strings"
	"testing"
	"time"
)

// The command is one that a shell takes as it was given.
func TestCommandLine(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "go run ./bench"},
		{"storm|-row|limit + budget|-plot|a.svg", `go run ./bench storm -row "limit + budget" -plot a.svg`},
		{"-json|", `go run ./bench -json ""`},
		{"-x|a$b", `go run ./bench -x "a$b"`},
	} {
		var args []string
		if tt.args != "" {
			args = strings.Split(tt.args, "|")
		}
		if got := commandLine(args); got != tt.want {
			t.Errorf("%q is %s, want %s", tt.args, got, tt.want)
		}
	}
}

// What cannot be known is said to be so.
func TestAboutNamesAll(t *testing.T) {
	r := newRunInfo(time.Unix(0, 0))
	r.Machine, r.Commit = "", ""
	want := []string{"command: go run ./bench", "machine: not known, ", "Go version: go1.", "commit: not known", "date: 1970-01-01 00:00:00 UTC"}
	about := r.about()
	for i, w := range want {
		if len(about) != len(want) || !strings.HasPrefix(about[i], w) {
			t.Fatalf("%q, want %q", about, want)
		}
	}
}
