// Package interop has tests of httpmw beside programs that were not written here: nginx,
// curl and the WebSocket implementation of Python. They run with
//
//	httpmw/interop/nginx.sh
//
// which installs those where they are missing.
package interop
