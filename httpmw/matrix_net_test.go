package httpmw_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// network is a server of net/http and a base for it, over TLS in memory. Both may be
// changed until start.
type network struct {
	server   *http.Server
	listener *memnet.Listener
	base     *http.Transport
	served   chan error
}

// inBubbles runs a test over HTTP/1.1 and, where that can be, over HTTP/2, each in a bubble of
// virtual time, which cannot be left before the last goroutine of server, client and attempts. The
// test calls start.
func inBubbles(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	for _, protocol := range bubbleProtocols {
		t.Run(protocol, func(t *testing.T) { inBubble(t, protocol, test) })
	}
}

// inBubble does so over one of the two.
func inBubble(t *testing.T, protocol string, test func(t *testing.T, n *network)) {
	t.Helper()
	certificate() // makes sockets, which have no place in a bubble
	synctest.Test(t, func(t *testing.T) {
		n := &network{
			server:   &http.Server{Protocols: new(http.Protocols), TLSConfig: certificate().server.Clone()},
			listener: memnet.Listen(),
			base:     &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: certificate().client.Clone()},
			served:   make(chan error, 1),
		}
		n.server.Protocols.SetHTTP1(protocol == "HTTP/1.1")
		n.server.Protocols.SetHTTP2(protocol == "HTTP/2.0")
		*n.base.Protocols = *n.server.Protocols
		n.base.DialContext = n.listener.DialContext
		test(t, n)
		n.base.CloseIdleConnections()
		_ = n.server.Close()
		if err := <-n.served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
}

// start lets the server serve, and returns its URL.
func (n *network) start(handler http.HandlerFunc) string {
	n.server.Handler = handler
	go func() { n.served <- n.server.ServeTLS(n.listener, "", "") }()
	return "https://example.com/" // which is whom the certificate is for
}

// certificate is that of package httptest, for servers and for clients.
var certificate = sync.OnceValue(func() (both struct{ server, client *tls.Config }) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	both.server = &tls.Config{Certificates: s.TLS.Certificates}
	both.client = s.Client().Transport.(*http.Transport).TLSClientConfig
	return both
})
