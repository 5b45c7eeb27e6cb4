package httpmw

import (
	"context"
	"net/http"
	"net/url"
	"slices"
)

// outgoing is room for the request of one attempt.
type outgoing struct {
	request http.Request
	url     url.URL
}

// clone returns a copy of r with another context, as deep as http.Request.Clone makes it: an
// attempt may still read its request when the caller has changed his, and may be given a
// base that changes it. It is in o, which saves an allocation or two, and must be called once.
func (o *outgoing) clone(ctx context.Context, r *http.Request) *http.Request {
	if incoming(r) {
		return r.Clone(ctx)
	}
	out := &o.request
	*out = *r.WithContext(ctx)
	o.url = *r.URL // its User is immutable
	out.URL = &o.url
	out.Header = r.Header.Clone()
	out.Trailer = r.Trailer.Clone()
	out.TransferEncoding = slices.Clone(r.TransferEncoding)
	return out
}

// incoming reports whether a request has what only a server fills in: forms, and the path
// values, which only Clone can copy.
func incoming(r *http.Request) bool {
	return r.RequestURI != "" || r.Pattern != "" || r.Form != nil || r.PostForm != nil || r.MultipartForm != nil
}
