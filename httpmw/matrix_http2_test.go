//go:build go1.26

package httpmw_test

// bubbleProtocols are those that inBubbles runs a test over.
var bubbleProtocols = []string{"HTTP/1.1", "HTTP/2.0"}
