package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

func TestSoakExitCodes(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	defer cancel()
	timer := time.AfterFunc(200*time.Millisecond, cancel)
	defer timer.Stop()
	for _, row := range []struct {
		args string
		ctx  context.Context
		code int
		says string
	}{
		{"-time 0s", t.Context(), exitUsage, ""},
		{"-time 1ms", t.Context(), exitUsage, ""},
		{"-capacity 0", t.Context(), exitUsage, ""},
		{"-capacity 1000000", t.Context(), exitUsage, ""},
		{"more", t.Context(), exitUsage, ""},
		{"-unknown", t.Context(), exitUsage, ""},
		{"-h", t.Context(), exitOK, ""},
		{"-time 1h -capacity 2", interrupted, exitFailed, "INTERRUPTED after 0s of 1h0m0s\nnothing has stayed behind"},
	} {
		var out strings.Builder
		if code := run(row.ctx, append([]string{"soak"}, strings.Fields(row.args)...), &out, io.Discard); code != row.code || !strings.Contains(out.String(), row.says) {
			t.Errorf("soak %s: exit code %d, want %d, and %q in\n%s", row.args, code, row.code, row.says, out.String())
		}
	}
}
