//go:build !go1.26

package httpmw_test

// bubbleProtocols are those that inBubbles runs a test over. HTTP/2 of Go 1.25 keeps channels
// in a pool for the whole process, and those of one bubble must not be used in another. On
// sockets it is tested all the same.
var bubbleProtocols = []string{"HTTP/1.1"}
