// Package memnet is a network within the process, for tests that run real clients and
// servers in a testing/synctest bubble: a goroutine that waits for one of its
// connections is durably blocked, as one that waits for a socket never is.
package memnet

import (
	"context"
	"net"
	"sync"
)

// A Listener is the server's side of the network, and dials the client's. It must be
// made by Listen, within the bubble that uses it. Any number of goroutines may use it
// at once.
type Listener struct {
	// Immutable.
	accept chan net.Conn // without a buffer: no connection waits where nobody closes it
	closed chan struct{}
	close  func()
}

// Listen returns a Listener that is open.
func Listen() *Listener {
	l := &Listener{accept: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// Accept waits for a dialler and returns its connection, which is that of net.Pipe: a
// Write waits for its reader, so no byte is under way when all goroutines are at rest.
// It returns net.ErrClosed once the Listener is closed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// DialContext is for http.Transport.DialContext; it goes to l whatever the address. It
// waits for Accept, and returns ctx.Err() if the context ends first and net.ErrClosed
// if l is closed: no connection is left behind then.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and DialContext; connections stay open. It returns nil, always.
func (l *Listener) Close() error {
	l.close()
	return nil
}

// Addr returns an address that says no more than what network it is of.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "memnet" }
func (addr) String() string  { return "memnet" }
