package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// module is a copy of this module, and of bench inside it, in a temporary folder.
type module struct {
	dir     string
	timeout time.Duration
	checks  int
	tests   string // a regular expression
	race    bool   // under the race detector
	jitter  bool   // goroutines step aside at every statement
}

// skipped are folders that are not part of either module, or whose tests are no judge
// of it.
var skipped = []string{".git", ".ci", "out", "testdata", "mutants"}

// copyModule copies the Go files of the module at root and of bench, and go.mod and go.sum.
func copyModule(root string, timeout time.Duration, checks int, tests string) (m *module, err error) {
	if _, err := os.Stat(filepath.Join(root, "hedgedlimit", "call.go")); err != nil {
		return nil, fmt.Errorf("run it from the root of the module: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	m = &module{dir: dir, timeout: timeout, checks: checks, tests: tests}
	defer func() {
		if err != nil {
			m.remove()
		}
	}()
	return m, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skipped, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if base := entry.Name(); filepath.Ext(base) != ".go" && base != "go.mod" && base != "go.sum" {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
}

func (m *module) remove() { _ = os.RemoveAll(m.dir) } // a temporary folder; nothing is to be done if it stays

// sound makes sure that the tests pass without a fault: else they would show nothing.
func (m *module) sound(ctx context.Context, faults []fault) error {
	named := map[string][]string{} // tests by package; nil if some fault names none
	for _, f := range faults {
		for _, pkg := range f.judges() {
			if tests, seen := named[pkg]; len(f.tests) == 0 || seen && tests == nil {
				named[pkg] = nil
			} else {
				named[pkg] = append(tests, f.tests...)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(os.Stderr, "without a fault: %s\n", pkg)
		slices.Sort(named[pkg])
		caught, err := m.test(ctx, pkg, slices.Compact(named[pkg]))
		if err != nil {
			return err
		}
		if caught != "" {
			return fmt.Errorf("without a fault, %s fails", caught)
		}
	}
	return nil
}

// judges are the packages whose tests are to find f.
func (f fault) judges() []string {
	if len(f.packages) > 0 {
		return f.packages
	}
	return []string{path.Dir(f.file)}
}

// attempts is how often a fault may survive the tests before it counts as not caught.
const attempts = 3

// try plants f, runs the tests and puts the file right again.
func (m *module) try(ctx context.Context, f fault) (r result) {
	start := time.Now()
	r.fault = f
	defer func() { r.took = time.Since(start) }()
	name := filepath.Join(m.dir, filepath.FromSlash(f.file))
	sound, err := os.ReadFile(name)
	if err != nil {
		r.err = err
		return r
	}
	if n := bytes.Count(sound, []byte(f.old)); n != 1 {
		r.err = fmt.Errorf("stale mutant: its text occurs %d times in %s", n, f.file)
		return r
	}
	faulty := bytes.Replace(sound, []byte(f.old), []byte(f.new), 1)
	if r.err = os.WriteFile(name, faulty, 0o644); r.err != nil {
		return r
	}
	// Some faults are races of a few instructions, and show only when goroutines meet
	// there: what survives is tried again.
	for range attempts {
		for _, pkg := range f.judges() {
			if r.caught, r.err = m.test(ctx, pkg, f.tests); r.caught != "" || r.err != nil {
				break
			}
		}
		if r.caught != "" || r.err != nil {
			break
		}
	}
	r.err = errors.Join(r.err, os.WriteFile(name, sound, 0o644))
	return r
}

// test runs the tests of a package of the copy: those named, or those that -tests matches
// if none is. It returns the first that failed, and an empty string if all passed. That
// they do not compile is an error.
//
// The test binary is run by itself, and not by go test, so that it can be killed.
func (m *module) test(ctx context.Context, pkg string, tests []string) (failed string, err error) {
	dir := filepath.Join(m.dir, filepath.FromSlash(pkg))
	binary := filepath.Join(m.dir, "mutant.test")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if m.jitter {
		restore, jitterErr := jitter(dir)
		defer func() { err = errors.Join(err, restore()) }()
		if jitterErr != nil {
			return "", jitterErr
		}
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", binary, ".")
	if m.race {
		build.Args = slices.Insert(build.Args, 2, "-race")
	}
	build.Dir = dir // in its own module
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not compile: %w\n%s", pkg, err, out)
	}
	pattern, timeout := m.tests, m.timeout
	if len(tests) > 0 {
		pattern = "^(" + strings.Join(tests, "|") + ")$"
		timeout *= time.Duration(len(tests))
	}
	test := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.run", pattern, "-test.timeout", timeout.String())
	test.Dir = dir
	test.Env = append(os.Environ(), "HOLDFAST_STRESS=100ms",
		fmt.Sprintf("RAPID_CHECKS=%d", m.checks), "RAPID_SHRINKTIME=1s", "RAPID_NOFAILFILE=true")
	out, err := test.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return "", err
	}
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	return firstFailure(string(out)), nil
}

// firstFailure finds in the output of a test binary the test that failed first, or
// the one that ran when the process died.
func firstFailure(output string) string {
	running := "the process"
	for line := range strings.Lines(output) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			return strings.Fields(name)[0]
		}
		if name, ok := strings.CutPrefix(line, "=== RUN "); ok {
			running, _, _ = strings.Cut(strings.TrimSpace(name), "/")
		}
		if strings.HasPrefix(line, "panic: test timed out") {
			return running + " (hangs)"
		}
	}
	return running + " (crashes)"
}
