package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// runInfo is what every report begins with.
type runInfo struct {
	Started time.Time `json:"started"`
	// Command is how the program was called, without what is secret in URLs.
	Command string `json:"command"`
	// Commit is that of the source, followed by + if its code was changed since; empty if it
	// cannot be known.
	Commit string `json:"commit"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	// Machine is the name of the processor, empty if the system does not tell.
	Machine        string  `json:"machine"`
	CPUs           int     `json:"cpus"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	// Interrupted tells that what was asked for may be missing, in part or as a whole.
	Interrupted bool `json:"interrupted"`
}

func newRunInfo(now time.Time) runInfo {
	return runInfo{
		Started: now.UTC().Truncate(time.Second), Command: commandLine(os.Args[1:]), Commit: commit(),
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Machine: machine(), CPUs: runtime.NumCPU(),
	}
}

// about tells it in words: what, where and when.
func (r *runInfo) about() []string {
	return []string{
		"command: " + r.Command,
		fmt.Sprintf("machine: %s, %d CPUs, %s/%s", known(r.Machine), r.CPUs, r.OS, r.Arch),
		"Go version: " + r.Go,
		"commit: " + known(r.Commit),
		"date: " + r.Started.Format("2006-01-02 15:04:05 UTC"),
	}
}

func known(text string) string { return pick(text != "", text, "not known") }

// commandLine is what to type to get the same again, but for what is secret in URLs.
func commandLine(args []string) string {
	words := []string{"go run ./bench"}
	for _, a := range args {
		a = redactArgument(a)
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\$*?|&;<>()") {
			a = strconv.Quote(a)
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// machine returns the name of the processor where the kernel tells it.
func machine() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// gitWithin bounds how long git may take.
const gitWithin = 5 * time.Second

// commit asks the build, and where it was told nothing, as by go run, the repository that the
// program runs in.
func commit() string {
	revision, modified := "", false
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
	}
	if revision == "" {
		ctx, cancel := context.WithTimeout(context.Background(), gitWithin)
		defer cancel()
		out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
		if err != nil {
			return "" // no git, or no repository
		}
		revision = strings.TrimSpace(string(out))
		// Documents do not count: the program writes some itself.
		modified = exec.CommandContext(ctx, "git", "diff", "--quiet", "HEAD", "--", ":/*.go", ":/*.mod", ":/*.sum", ":/*.work").Run() != nil
	}
	return revision[:min(12, len(revision))] + pick(modified, "+", "")
}
