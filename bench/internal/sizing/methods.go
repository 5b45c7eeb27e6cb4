package sizing

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

// Safe tells whether calls by a method of HTTP may be carried out twice: those that httpmw hedges by
// itself.
func Safe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// Methods are those of the calls of a recording, as far as it tells.
type Methods struct {
	// Safe, Unsafe and Unsaid are how many calls had such a method, another one, and none.
	Safe, Unsafe, Unsaid int
	// Other is the first one that is not safe.
	Other string
}

// add adds a call with a method of HTTP, which is empty if it is not said.
func (m *Methods) add(method string) {
	switch {
	case method == "":
		m.Unsaid++
	case Safe(method):
		m.Safe++
	default:
		m.addOther(method)
	}
}

// addOther adds a call with a method of which nobody knows whether it may be carried out twice.
func (m *Methods) addOther(method string) {
	if m.Unsafe == 0 {
		m.Other = brief.Shorten(method, brief.Most)
	}
	m.Unsafe++
}

// Idempotent tells whether a call may be carried out twice, and why not or why it is only
// taken to be so: then doubt is not empty.
func (m *Methods) Idempotent() (idempotent bool, doubt string) {
	switch {
	case m.Unsafe > 0:
		return false, fmt.Sprintf("%s is not known to be idempotent, and %d of %s are not safe; -idempotent tells that it is", m.Other, m.Unsafe, brief.Count(m.Safe+m.Unsafe+m.Unsaid, "call"))
	case m.Unsaid > 0 || m.Safe == 0:
		return true, "whether a call may be carried out twice was not said: -idempotent says that it may, -idempotent=false that it may not"
	}
	return true, ""
}
