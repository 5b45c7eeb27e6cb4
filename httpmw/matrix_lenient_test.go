//go:build !go1.26

package httpmw_test

import "net/http"

// strictness is as for Go 1.26, without what Go 1.25 cannot do.
var strictness = []func(*http.HTTP2Config){nil}
