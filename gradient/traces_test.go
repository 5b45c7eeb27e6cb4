package gradient_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/gradient"
)

var update = flag.Bool("update", false, "write the traces in testdata/traces anew")

// short is a scenario of which no phase takes long, for a trace that can be read.
func (s scenario) short() []phase {
	var phases []phase
	for _, p := range s.phases {
		if !s.whole {
			p.length = min(p.length, 20)
		}
		phases = append(phases, p)
	}
	return phases
}

// trace writes decisions as lines of time, limit and reason. Left out are those that only
// repeat the last line, or dither around it: a step up or down that ends within a sixth
// of the limit there, or within two.
func trace(results []result) string {
	var b strings.Builder
	for i, r := range results {
		fmt.Fprintf(&b, "\n# phase %d: %.1f %% good, %.2f %% rejected, p50 %.1f ms, p99 %.1f ms\n", i+1, 100*r.good, 100*r.rejected, r.p50, r.p99)
		var last decided
		for k, d := range r.trace {
			near := max(d.limit-last.limit, last.limit-d.limit) <= max(2, last.limit/6)
			if k > 0 && near && (d.reason == last.reason || isStep(d.reason) && isStep(last.reason)) {
				continue
			}
			fmt.Fprintf(&b, "%7.2f %4d  %s\n", d.at, d.limit, d.reason)
			last = d
		}
		fmt.Fprintf(&b, "%7.2f %4d  (at the end)\n", r.trace[len(r.trace)-1].at, r.last())
	}
	return b.String()
}

func isStep(r gradient.Reason) bool {
	return r == gradient.ReasonGrow || r == gradient.ReasonQueue || r == gradient.ReasonHold
}

// The scenarios in a short form, decision by decision. A change of the algorithm shows
// here, and is to be read before it is accepted with -update: every line should follow
// from the story on top.
func TestTraces(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round other bits, and a simulation makes a difference of that")
	}
	dir := filepath.Join("testdata", "traces")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !*update {
		t.Skip("no traces here: a program that plants faults copies none, since any of them would show in a trace")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			got := fmt.Sprintf("# %s: %s\n# Columns: second of the phase, limit, reason.\n", s.name, s.story) +
				trace(simulate(t, newGradient(t), 1, s.short()...))
			name := filepath.Join(dir, s.name+".txt")
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(string(text), "\r\n", "\n")
			if got == want {
				return
			}
			a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
			for i := 0; i < min(len(a), len(b)); i++ {
				if a[i] != b[i] {
					t.Fatalf("line %d is %q, want %q", i+1, a[i], b[i])
				}
			}
			t.Fatalf("%d lines, want %d", len(a), len(b))
		})
	}
}
