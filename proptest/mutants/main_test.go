package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A fault whose text is not in its file exactly once plants nothing, and one whose test is
// gone is not found. This says so in every run of the tests, not only when the faults are
// tried.
func TestEveryFaultIsUpToDate(t *testing.T) {
	names := map[string]bool{}
	for _, f := range allFaults() {
		if names[f.name] {
			t.Errorf("%q is there twice", f.name)
		}
		names[f.name] = true
		source, err := os.ReadFile(filepath.Join("..", "..", f.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(source), f.old); n != 1 {
			t.Errorf("%s: %q: its text is there %d times; once in %v", f.file, f.name, n, once(t, f))
		}
		if f.old == f.new {
			t.Errorf("%q changes nothing", f.name)
		}
		for _, test := range f.tests {
			if !slices.ContainsFunc(f.judges(), func(pkg string) bool { return hasTest(t, pkg, test) }) {
				t.Errorf("%q is to be found by %s, which is in none of %q", f.name, test, f.judges())
			}
		}
	}
}

// hasTest reports whether a test is in a package.
func hasTest(t *testing.T, pkg, name string) bool {
	paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// once returns the files beside that of f which have its text once.
func once(t *testing.T, f fault) (files []string) {
	paths, err := filepath.Glob(filepath.Join("..", "..", filepath.Dir(f.file), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err == nil && strings.Count(string(source), f.old) == 1 && !strings.HasSuffix(path, "_test.go") {
			files = append(files, filepath.Base(path))
		}
	}
	return slices.Clip(files)
}
