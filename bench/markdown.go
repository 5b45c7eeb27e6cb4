package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// markdownFlag is that of the programs whose tables are published.
type markdownFlag struct{ markdownPath string }

func (m *markdownFlag) register(f *flag.FlagSet) {
	f.StringVar(&m.markdownPath, "markdown", "", "also write the tables into this Markdown `file`, in place of those of the same command")
}

// prepareMarkdown makes sure that the file can be written: now, and not after minutes of work.
// What is in it stays.
func (m *markdownFlag) prepareMarkdown() error {
	if m.markdownPath == "" {
		return nil
	}
	f, err := os.OpenFile(m.markdownPath, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("bench: -markdown: %w", err)
	}
	return f.Close()
}

// capture returns what the tables are to be written to, and a function that puts all of it into
// the file.
func (m *markdownFlag) capture(tables io.Writer, info *runInfo) (io.Writer, func() error) {
	if m.markdownPath == "" {
		return tables, func() error { return nil }
	}
	var b bytes.Buffer
	return io.MultiWriter(tables, &b), func() error {
		if err := m.write(info, b.String()); err != nil {
			return fmt.Errorf("-markdown: %w", err)
		}
		return nil
	}
}

// elsewhere finds the flags that say where else the results go: they make no other tables.
var elsewhere = regexp.MustCompile(` --?(markdown|json|report)[ =]("[^"]*"|\S+)`)

func (m *markdownFlag) write(info *runInfo, tables string) error {
	old, err := os.ReadFile(m.markdownPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	command := elsewhere.ReplaceAllString(info.Command, "")
	return os.WriteFile(m.markdownPath, []byte(replaceSection(string(old), command, info.section(command, tables))), 0o644)
}

// section is what a document has of a run: its command as the heading, where and when it ran,
// and its tables as they were printed.
func (r *runInfo) section(command, tables string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## `%s`\n\n", command)
	if r.Interrupted {
		b.WriteString("Interrupted: not all of it was run.\n\n")
	}
	for _, line := range r.about()[1:] {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.Trim(tables, "\n"))
	return b.String()
}

// replaceSection puts a section in place of the one with the same command as its heading, or at
// the end. A section ends where the next one begins.
func replaceSection(document, command, section string) string {
	heading := "## `" + command + "`\n"
	before, rest, found := strings.Cut("\n"+document, "\n"+heading)
	if !found {
		return strings.TrimPrefix(strings.TrimRight(document, "\n")+"\n\n", "\n\n") + section
	}
	after := ""
	if i := strings.Index(rest, "\n## "); i >= 0 {
		after = rest[i:]
	}
	return strings.TrimPrefix(before+"\n", "\n") + section + after
}
