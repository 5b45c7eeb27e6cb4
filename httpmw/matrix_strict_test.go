//go:build go1.26

package httpmw_test

import "net/http"

// strictness is what may be done to the configuration of an HTTP/2 client: nothing, or
// to let it wait for a stream rather than dial, for which net/http has a field since
// Go 1.26.
var strictness = []func(*http.HTTP2Config){
	nil,
	func(c *http.HTTP2Config) { c.StrictMaxConcurrentRequests = true },
}
