package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReplaceSection(t *testing.T) {
	const a, b = "## `a`\n\nold a\n", "## `a -b`\n\nold b\n"
	for _, tt := range []struct{ name, document, command, section, want string }{
		{"into nothing", "", "a", "## `a`\n\nnew\n", "## `a`\n\nnew\n"},
		{"at the end", "# Title\n\nText.\n", "a", "## `a`\n\nnew\n", "# Title\n\nText.\n\n## `a`\n\nnew\n"},
		{"the first", "# Title\n\n" + a + "\n" + b, "a", "## `a`\n\nnew\n", "# Title\n\n## `a`\n\nnew\n\n" + b},
		{"the last", "# Title\n\n" + a + "\n" + b, "a -b", "## `a -b`\n\nnew\n", "# Title\n\n" + a + "\n## `a -b`\n\nnew\n"},
		{"after one that begins alike", b + "\n" + a, "a", "## `a`\n\nnew\n", b + "\n## `a`\n\nnew\n"},
		{"the only one", a, "a", "## `a`\n\nnew\n", "## `a`\n\nnew\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := replaceSection(tt.document, tt.command, tt.section)
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if again := replaceSection(got, tt.command, tt.section); again != got {
				t.Errorf("a second time it is\n%s", again)
			}
		})
	}
}

// A document has what was printed, with the machine, Go, the commit and the date, under the
// command without the flags that say where it goes.
func TestMarkdownHasWhatWasPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	m := markdownFlag{markdownPath: path}
	if err := m.prepareMarkdown(); err != nil {
		t.Fatal(err)
	}
	info := newRunInfo(time.Unix(0, 0))
	info.Command, info.Machine, info.Commit, info.Interrupted = "go run ./bench peers -markdown "+path+" -count 3 -json=a.json -report \"b c\"", "A processor", "0123", true
	var printed strings.Builder
	tables, publish := m.capture(&printed, &info)
	_, _ = io.WriteString(tables, "\n  a table\n")
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## `go run ./bench peers -count 3`\n", "A processor", "Go version: ", "commit: 0123", "date: 1970-01-01", "Interrupted", "```\n  a table\n```\n"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %q in\n%s", want, data)
		}
	}
	if printed.String() != "\n  a table\n" {
		t.Errorf("printed %q", &printed)
	}
	if err := (&markdownFlag{markdownPath: filepath.Join(path, "no")}).prepareMarkdown(); err == nil {
		t.Error("a file below a file")
	}
}
