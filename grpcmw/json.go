package grpcmw

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const (
	// maxDocument and maxDepth bound a service config. DNS carries 64 KiB at most, and the
	// deepest load balancing policies in use nest about twenty levels.
	maxDocument = 1 << 20
	maxDepth    = 64
)

// A value is a JSON value with its text, so that what is not ours to read can be passed
// on as it was written.
type value struct {
	kind    byte     // one of { [ " 0 t n: object, list, string, number, true or false, null
	raw     string   // as written
	text    string   // of a string, unescaped; of a number, as written
	members []member // of an object, in order
	items   []value  // of a list
}

type member struct {
	name, raw string // raw has the quotes and escapes
	value     value
}

// parseJSON reads a document. It bounds the size and the nesting, and refuses text
// that is not UTF-8 and objects that have a name twice: of two members with one name,
// implementations obey the first, the last, or a mixture.
func parseJSON(document string) (value, error) {
	var root path
	switch {
	case len(document) > maxDocument:
		return value{}, root.errorf("has %d bytes, which is more than %d", len(document), maxDocument)
	case !utf8.ValidString(document):
		return value{}, root.errorf("is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(document), &whole); err != nil {
		if syntax, ok := err.(*json.SyntaxError); ok { // always, with a RawMessage
			return value{}, root.errorf("at byte %d: %v", syntax.Offset, err)
		}
		return value{}, root.errorf("%v", err)
	}
	r := reader{text: document, tokens: json.NewDecoder(strings.NewReader(document))}
	r.tokens.UseNumber()
	return r.value(root, 0)
}

// A reader takes a document that is known to be valid apart.
type reader struct {
	text   string
	tokens *json.Decoder
}

// next returns the next token and where it begins.
func (r *reader) next() (token json.Token, start int64, err error) {
	start = r.tokens.InputOffset()
	for start < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[start]) >= 0 {
		start++
	}
	token, err = r.tokens.Token()
	return token, start, err
}

// value reads the value at a path, which stands in depth objects and lists.
func (r *reader) value(at path, depth int) (v value, err error) {
	token, start, err := r.next()
	if err != nil {
		return value{}, at.errorf("%v", err)
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return value{}, at.errorf("is nested more than %d deep", maxDepth)
		}
		v.kind = byte(token)
		if token == '{' {
			v.members, err = r.members(at, depth)
		} else {
			v.items, err = r.items(at, depth)
		}
		if err != nil {
			return value{}, err
		}
		if _, _, err := r.next(); err != nil { // the closing bracket
			return value{}, at.errorf("%v", err)
		}
	case string:
		v.kind, v.text = '"', token
	case json.Number:
		v.kind, v.text = '0', token.String()
	case bool:
		v.kind = 't'
	case nil:
		v.kind = 'n'
	}
	v.raw = r.text[start:r.tokens.InputOffset()]
	return v, nil
}

func (r *reader) members(at path, depth int) (list []member, err error) {
	seen := map[string]bool{}
	for r.tokens.More() {
		token, start, err := r.next()
		if err != nil {
			return nil, at.errorf("%v", err)
		}
		m := member{name: token.(string), raw: r.text[start:r.tokens.InputOffset()]}
		if seen[m.name] {
			return nil, at.field(m.name).errorf("is there twice")
		}
		seen[m.name] = true
		if m.value, err = r.value(at.field(m.name), depth+1); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func (r *reader) items(at path, depth int) (list []value, err error) {
	for r.tokens.More() {
		item, err := r.value(at.item(len(list)), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

// shown returns v for an error.
func (v value) shown() string {
	switch v.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return quote(v.text)
	}
	return cut(v.raw, shownValue)
}

// object returns the members of v that are named, without those that are null, which
// is how a document may say that it leaves something out. Others are ignored, but for
// those that differ from a name only in case: grpc-go would obey them, and others not.
func (v value) object(at path, names ...string) (map[string]value, error) {
	if v.kind != '{' {
		return nil, at.errorf("%s is not an object", v.shown())
	}
	found := make(map[string]value, len(names))
	for _, m := range v.members {
		for _, name := range names {
			switch {
			case m.name == name && m.value.kind != 'n':
				found[name] = m.value
			case m.name != name && strings.EqualFold(m.name, name):
				return nil, at.field(m.name).errorf("is spelled %s", name)
			}
		}
	}
	return found, nil
}

// list returns the elements of v.
func (v value) list(at path) ([]value, error) {
	if v.kind != '[' {
		return nil, at.errorf("%s is not a list", v.shown())
	}
	return v.items, nil
}

// string returns the text of v.
func (v value) string(at path) (string, error) {
	if v.kind != '"' {
		return "", at.errorf("%s is not a string", v.shown())
	}
	return v.text, nil
}
