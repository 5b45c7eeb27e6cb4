package sizing

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

const (
	// maxCauses are told apart, and the toldCauses commonest are put into a line.
	maxCauses, toldCauses = 16, 3

	unsaidCause = "unknown"
	otherCauses = "other causes"
)

// Cause is why calls failed, and how many of them.
type Cause struct {
	Cause string `json:"cause"`
	Calls int    `json:"calls"`
}

// causesOf counts the failures by their causes, the commonest first: of the causes after the first
// maxCauses only how many there were.
func causesOf(samples []Sample) []Cause {
	causes := []Cause{}
	at := map[string]int{}
	others := 0
	for _, s := range samples {
		if !s.Failed {
			continue
		}
		cause := cmp.Or(s.Cause, unsaidCause)
		i, ok := at[cause]
		switch {
		case ok:
			causes[i].Calls++
		case len(causes) < maxCauses:
			at[cause] = len(causes)
			causes = append(causes, Cause{cause, 1})
		default:
			others++
		}
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return b.Calls - a.Calls })
	if others > 0 {
		causes = append(causes, Cause{otherCauses, others})
	}
	return causes
}

// TellCauses tells the commonest in a line, such as "14 × 404 Not Found, 2 × timeout".
func TellCauses(causes []Cause) string {
	var parts []string
	others := 0
	for i, c := range causes {
		if i < toldCauses && c.Cause != otherCauses {
			parts = append(parts, fmt.Sprintf("%d × %s", c.Calls, c.Cause))
		} else {
			others += c.Calls
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d × %s", others, otherCauses))
	}
	return strings.Join(parts, ", ")
}

// inBrackets tells the causes after a count of failures, if any is known.
func inBrackets(causes []Cause) string {
	if len(causes) == 0 || len(causes) == 1 && causes[0].Cause == unsaidCause {
		return ""
	}
	return " (" + TellCauses(causes) + ")"
}

// knownCauses are parts of errors that say it all.
var knownCauses = []string{
	"connection refused", "connection reset by peer", "broken pipe", "no such host", "network is unreachable", "no route to host",
	"too many open files", "cannot assign requested address", "server gave HTTP response to HTTPS client", "unexpected EOF",
}

// knownCause is what an error says in a few words, if it is one of those that are common. It has
// no names or addresses in it.
func knownCause(text string) string {
	for _, known := range knownCauses {
		if strings.Contains(text, known) {
			return known
		}
	}
	if i := strings.Index(text, "tls: "); i >= 0 {
		return scrub(text[i:])
	}
	if i := strings.Index(text, "x509: "); i >= 0 {
		return scrub(text[i:])
	}
	switch {
	case strings.HasSuffix(text, "EOF"):
		return "EOF"
	case strings.Contains(text, "Client.Timeout") || strings.Contains(text, "deadline exceeded") || strings.Contains(text, "timeout"):
		return "timeout"
	}
	return ""
}

// textCause makes a cause of an error in words.
func textCause(text string) string {
	if known := knownCause(text); known != "" {
		return known
	}
	return scrub(text)
}

// httpCause is that of an answer, or of the error without one.
func httpCause(code int, text string) string {
	if code < 100 || code >= 200 && code < 300 {
		return textCause(text)
	}
	// What the other side says of it is its own.
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// grpcCause is the code. What the other side says of it is its own; what Unavailable says is mostly
// of the connection.
func grpcCause(err error) string {
	s := status.Convert(err)
	cause := s.Code().String()
	if s.Code() == codes.Unavailable {
		if known := knownCause(s.Message()); known != "" {
			cause += ": " + known
		}
	}
	return cause
}

var (
	// A method and its URL, which net/http puts before its errors.
	requested = regexp.MustCompile(`^[A-Za-z]+ "[^"]*": `)
	// What is quoted is somebody else's; where calls go to is no cause, and a port differs each
	// time.
	private = regexp.MustCompile(`"[^"]*"?|[a-z][a-z0-9+.-]*://\S+|\[[0-9a-fA-F:.%]+\](:\d+)?|\d{1,3}(\.\d{1,3}){3}(:\d+)?|lookup \S+|is valid for .*`)
)

// scrub makes a cause of any text: without names and addresses, in one line of a bounded length.
func scrub(text string) string {
	text = requested.ReplaceAllString(text, "")
	text = private.ReplaceAllStringFunc(text, func(found string) string {
		for _, word := range []string{"lookup", "is valid for"} {
			if strings.HasPrefix(found, word) {
				return word + " …"
			}
		}
		return "…"
	})
	return brief.Shorten(text, brief.Most)
}
