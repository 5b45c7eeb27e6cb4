package grpcmw

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// shownValue and shownPath bound what an error repeats of a document, in bytes: a
	// config may be hostile, and an error is made to be read.
	shownValue = 64
	shownPath  = 256
)

// A path is where in a service config something stands: by the names of the document,
// methodConfig[1].timeout, or by those of the Go fields, Methods[1].Timeout.
type path struct {
	text   string
	fields bool // Go's names
}

// fieldNames are the Go fields for the names of the document.
var fieldNames = map[string]string{
	"methodConfig":         "Methods",
	"name":                 "Names",
	"service":              "Service",
	"method":               "Method",
	"timeout":              "Timeout",
	"retryPolicy":          "Retry",
	"hedgingPolicy":        "Hedging",
	"maxAttempts":          "MaxAttempts",
	"hedgingDelay":         "Delay",
	"nonFatalStatusCodes":  "NonFatal",
	"initialBackoff":       "InitialBackoff",
	"maxBackoff":           "MaxBackoff",
	"backoffMultiplier":    "BackoffMultiplier",
	"retryableStatusCodes": "Retryable",
	"retryThrottling":      "Throttling",
	"maxTokens":            "MaxTokens",
	"tokenRatio":           "TokenRatio",
}

// field returns the path of a member of the object at p, by its name in the document.
// It costs no more than a path that is shown, however deep p is.
func (p path) field(name string) path {
	if len(p.text) > shownPath {
		return p
	}
	if p.fields {
		name = fieldNames[name]
	}
	if !plain(name) {
		p.text += "[" + quote(name) + "]"
		return p
	}
	if p.text != "" {
		p.text += "."
	}
	p.text += name
	return p
}

// plain reports whether name can stand in a path without quotes.
func plain(name string) bool {
	if name == "" || len(name) > shownValue {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// item returns the path of an element of the list at p, at the same cost.
func (p path) item(i int) path {
	if len(p.text) > shownPath {
		return p
	}
	p.text += "[" + strconv.Itoa(i) + "]"
	return p
}

// String returns the path, cut to a length that can be read. That of the whole config
// has no names.
func (p path) String() string {
	switch {
	case p.text != "":
		return cut(p.text, shownPath)
	case p.fields:
		return "ServiceConfigOptions"
	}
	return "document"
}

// errorf returns an error that begins with the path.
func (p path) errorf(format string, args ...any) error {
	return fmt.Errorf("grpcmw: service config: %v: %s", p, fmt.Sprintf(format, args...))
}

// quote returns s in quotes, cut to a length that can be read.
func quote(s string) string { return strconv.Quote(cut(s, shownValue)) }

// cut returns s, or the whole characters of its first most bytes and an ellipsis.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
