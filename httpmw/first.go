package httpmw

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

const (
	// firstRead is how much is read at most to learn that the first byte is there. A
	// body gives what it has, so a little more saves the caller nothing but calls.
	firstRead = 512
	// maxEmptyReads is how often a body may give neither a byte nor an error in a row,
	// as in package bufio.
	maxEmptyReads = 100
)

// awaitFirstByte waits until the first byte of the body is there, or its end, and puts
// what it has read back in front. It returns an error if the body failed before; its
// reader will be told the same.
func awaitFirstByte(r *http.Response, method string) error {
	switch {
	case bodiless(r, method):
		return nil
	case r.StatusCode == http.StatusSwitchingProtocols, r.StatusCode == http.StatusNoContent, r.StatusCode == http.StatusNotModified:
		return nil // There is no first byte to come, though there may be an end.
	}
	inner := r.Body
	returned := false
	defer func() {
		if !returned {
			_ = inner.Close() // Read has panicked, which says more
		}
	}()
	p := make([]byte, firstRead)
	n, err := 0, error(nil)
	for range maxEmptyReads {
		if n, err = inner.Read(p); n > 0 || err != nil {
			break
		}
	}
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	returned = true
	r.Body = &refilled{ReadCloser: inner, head: p[:n], err: err}
	if n > 0 || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// refilled is a body of which some has been read already: its Read gives first what
// was read, then the error that came after, and then goes on with the body. After
// Close, as before, what Read does is the business of the body. Like it, it may be
// closed while it is being read.
type refilled struct {
	io.ReadCloser
	closed atomic.Bool

	// Owned by the reader.

	head []byte
	err  error
}

func (b *refilled) Read(p []byte) (int, error) {
	switch {
	case b.closed.Load():
	case len(b.head) > 0:
		n := copy(p, b.head)
		b.head = b.head[n:]
		if len(b.head) == 0 {
			b.head = nil // for the collector
			return n, b.err
		}
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	return b.ReadCloser.Read(p)
}

func (b *refilled) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}
