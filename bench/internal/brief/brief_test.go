package brief_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

// What is shown has no more characters than it may, no line ends, and no half characters.
func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("ä", brief.Most+1)
	for _, tt := range []struct{ got, want string }{
		{brief.Shorten("  a\n\tb\x00c ", 9), "a b c"},
		{brief.Shorten("äbc", 3), "äbc"},
		{brief.Shorten("äbc", 1), "ä…"},
		{brief.Quote("a\nb"), `"a\nb"`},
		{brief.Quote(long[2:]), `"` + long[2:] + `"`},
		{brief.Quote(long), `"` + long[2:] + `"…`},
		{brief.Count(0, "answer"), "0 answers"},
		{brief.Count(1, "answer"), "1 answer"},
		{brief.Count(2, "answer"), "2 answers"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
