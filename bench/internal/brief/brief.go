// Package brief makes what somebody else wrote fit into a message: in one line, and of a bounded
// length.
package brief

import (
	"fmt"
	"strings"
	"unicode"
)

// Most is how many characters of a text are repeated.
const Most = 80

// Shorten returns at most the first n characters of a text, in one line, with … if some are left
// out.
func Shorten(text string, n int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	text, more := first(text, n)
	if more {
		text += "…"
	}
	return text
}

// Quote quotes the first Most characters of a text, with … after the quotation if some are left
// out.
func Quote(text string) string {
	text, more := first(text, Most)
	if more {
		return fmt.Sprintf("%q…", text)
	}
	return fmt.Sprintf("%q", text)
}

// first returns the first n characters, and whether there are more.
func first(text string, n int) (string, bool) {
	count := 0
	for i := range text {
		if count++; count > n {
			return text[:i], true
		}
	}
	return text, false
}

// Count tells how many there are of something whose plural ends in s.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
