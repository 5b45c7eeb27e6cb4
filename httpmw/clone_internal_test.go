package httpmw

import (
	"context"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"testing"
)

// The copy of a request is the one that net/http makes, and shares no more with it.
//
// L13: a caller's request is not read after its call, and never written.
func TestCloneIsAsDeepAsThatOfNetHTTP(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 1)
	for name, change := range map[string]func(*http.Request){
		"plain":           func(*http.Request) {},
		"nil header":      func(r *http.Request) { r.Header = nil },
		"user":            func(r *http.Request) { r.URL.User = url.UserPassword("a", "b") },
		"trailers":        func(r *http.Request) { r.Trailer = http.Header{"A": nil, "B": {"c"}} },
		"encoding":        func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
		"form":            func(r *http.Request) { r.Form = url.Values{"a": {"b"}} },
		"posted form":     func(r *http.Request) { r.PostForm = url.Values{"a": {"b"}} },
		"multipart":       func(r *http.Request) { r.MultipartForm = &multipart.Form{Value: url.Values{"a": {"b"}}} },
		"of a server":     func(r *http.Request) { r.RequestURI = "/path"; r.SetPathValue("a", "b") },
		"of a server mux": func(r *http.Request) { r.Pattern = "/{a}"; r.SetPathValue("a", "b") },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/path?q#f", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["A"] = []string{"b", "c"}
		change(r)
		want, kept := r.Clone(ctx), r.Clone(r.Context())
		got := new(outgoing).clone(ctx, r)
		if !reflect.DeepEqual(got, want) || got.Context() != ctx {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		spoil(got)
		if !reflect.DeepEqual(r, kept) {
			t.Errorf("%s: a change of the copy has reached the original", name)
		}
	}
}

// spoil changes all that a request refers to.
func spoil(r *http.Request) {
	r.URL.Host, r.URL.Path = "spoilt", "spoilt"
	for _, values := range []map[string][]string{r.Header, r.Trailer, r.Form, r.PostForm} {
		spoilValues(values)
	}
	if r.MultipartForm != nil {
		spoilValues(r.MultipartForm.Value)
	}
	for i := range r.TransferEncoding {
		r.TransferEncoding[i] = "spoilt"
	}
	r.SetPathValue("a", "spoilt")
}

func spoilValues(values map[string][]string) {
	for _, v := range values {
		for i := range v {
			v[i] = "spoilt"
		}
	}
	if values != nil {
		values["Spoilt"] = nil
	}
}
