package main

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

// maxFlagError is how many characters of an error of package flag are shown.
const maxFlagError = 200

// badValue is the error of package flag about a value.
var badValue = regexp.MustCompile(`^(?s)invalid (?:boolean )?value (".*") for (?:flag )?-([^ :]+): (.*)$`)

// flagError is an error of package flag as it is shown: bounded, without secrets, and with what
// is wanted.
func flagError(f *flag.FlagSet, err error) string {
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return brief.Shorten(err.Error(), maxFlagError)
	}
	value, name, reason := m[1], m[2], m[3]
	if unquoted, err := strconv.Unquote(value); err == nil {
		value = unquoted
	}
	if name == "url" {
		value = redactURL(value)
	}
	if hint := wanted(f.Lookup(name)); reason == "parse error" && hint != "" {
		reason = hint
	}
	return fmt.Sprintf("invalid value %s for flag -%s: %s", brief.Quote(value), name, reason)
}

// wanted says what a flag takes, if that is known.
func wanted(f *flag.Flag) string {
	if f == nil {
		return ""
	}
	getter, ok := f.Value.(flag.Getter)
	if !ok {
		return ""
	}
	switch getter.Get().(type) {
	case time.Duration:
		return "want a duration such as 10s"
	case float64:
		return "want a number such as 0.5"
	case int:
		return "want a whole number"
	case uint64:
		return "want a whole number that is not negative"
	case bool:
		return "want true or false"
	}
	return ""
}

// errTwice is the error of a flag that may be given once.
var errTwice = errors.New("it was given before, and only one counts")

// onceFlag is a text that may be given once. The zero value is an empty one that was not given.
type onceFlag struct {
	text  string
	given bool
}

// String is called on the zero value too, by package flag.
func (o *onceFlag) String() string { return o.text }

func (o *onceFlag) Set(text string) error {
	if o.given {
		return errTwice
	}
	o.text, o.given = text, true
	return nil
}
