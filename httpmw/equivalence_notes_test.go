package httpmw_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// errOwn is an error of the test's own, whose identity must survive.
var errOwn = errors.New("an error of the caller's own")

// errorText is an error type to be found by errors.As.
type errorText string

func (e errorText) Error() string { return string(e) }

// StreamError has the shape of the error type of golang.org/x/net/http2 of that name,
// which the errors of net/http convert to.
type StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e StreamError) Error() string { return fmt.Sprintf("code %d", e.Code) }

// identities are what a caller asks of an error.
var identities = []struct {
	name string
	is   func(error) bool
}{
	{"context.Canceled", is(context.Canceled)},
	{"context.DeadlineExceeded", is(context.DeadlineExceeded)},
	{"net.ErrClosed", is(net.ErrClosed)},
	{"os.ErrDeadlineExceeded", is(os.ErrDeadlineExceeded)},
	{"fs.ErrNotExist", is(fs.ErrNotExist)},
	{"io.EOF", is(io.EOF)},
	{"io.ErrUnexpectedEOF", is(io.ErrUnexpectedEOF)},
	{"io.ErrClosedPipe", is(io.ErrClosedPipe)},
	{"http.ErrSchemeMismatch", is(http.ErrSchemeMismatch)},
	{"http.ErrBodyReadAfterClose", is(http.ErrBodyReadAfterClose)},
	{"http.ErrNotSupported", is(http.ErrNotSupported)},
	{"http.ErrUseLastResponse", is(http.ErrUseLastResponse)},
	{"ECONNREFUSED", is(syscall.ECONNREFUSED)},
	{"ECONNRESET", is(syscall.ECONNRESET)},
	{"errOwn", is(errOwn)},
	{"errorText", as[errorText]},
	{"*url.Error", as[*url.Error]},
	{"url.EscapeError", as[url.EscapeError]},
	{"*net.OpError", as[*net.OpError]},
	{"*net.DNSError", as[*net.DNSError]},
	{"*net.AddrError", as[*net.AddrError]},
	{"*os.SyscallError", as[*os.SyscallError]},
	{"x509.UnknownAuthorityError", as[x509.UnknownAuthorityError]},
	{"x509.HostnameError", as[x509.HostnameError]},
	{"x509.CertificateInvalidError", as[x509.CertificateInvalidError]},
	{"*tls.CertificateVerificationError", as[*tls.CertificateVerificationError]},
	{"tls.RecordHeaderError", as[tls.RecordHeaderError]},
	{"tls.AlertError", as[tls.AlertError]},
	{"Timeout()", func(err error) bool {
		var t interface{ Timeout() bool }
		return errors.As(err, &t) && t.Timeout()
	}},
	{"*url.Error with Timeout()", func(err error) bool {
		var t *url.Error
		return errors.As(err, &t) && t.Timeout()
	}},
	{"*url.Error with Temporary()", func(err error) bool {
		var t *url.Error
		return errors.As(err, &t) && t.Temporary()
	}},
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// describe tells the text and the identities of an error. Where several attempts have
// failed in the same words, the words are told once: it is the only text that may
// differ from that of the transport alone.
func describe(err error) string {
	if err == nil {
		return "no error"
	}
	var all []string
	for _, i := range identities {
		if i.is(err) {
			all = append(all, i.name)
		}
	}
	var reset StreamError
	if errors.As(err, &reset) {
		all = append(all, "StreamError of "+reset.Error())
	}
	text := err.Error()
	var attempts *hedgedlimit.AttemptsError
	if errors.As(err, &attempts) {
		var each []string
		for _, one := range attempts.Unwrap() {
			each = append(each, stream.ReplaceAllString(one.Error(), "stream"))
		}
		slices.Sort(each)
		text = strings.Replace(text, attempts.Error(), strings.Join(slices.Compact(each), " and "), 1)
	}
	return fmt.Sprintf("error %q, which is %v", text, all)
}

// identity is describe without the text, for errors whose words depend on which of
// several goroutines of net/http was the first to see the end.
func identity(err error) string {
	d := describe(err)
	if i := strings.LastIndex(d, "which is"); i >= 0 {
		return "error " + d[i:]
	}
	return d
}

// error describes what the caller got, in the words of the scene.
func (s *scene) error(err error) string {
	if s.wordless {
		return identity(err)
	}
	return describe(err)
}

// digest tells short content as it is, and long content by its length and checksum.
func digest(data []byte) string {
	if len(data) <= 64 {
		return fmt.Sprintf("%q", data)
	}
	return fmt.Sprintf("%d bytes (%08x)", len(data), crc32.ChecksumIEEE(data))
}

// request makes one that is to be valid.
func (s *scene) request(method, target string, body io.Reader) *http.Request {
	s.Helper()
	return request(s, method, target, body).WithContext(s.Context())
}

// do sends a request and notes down the whole answer.
func (s *scene) do(c *http.Client, r *http.Request) {
	s.Helper()
	s.body(s.head(c, r))
}

// get is do of a plain GET.
func (s *scene) get(c *http.Client, target string) {
	s.Helper()
	s.do(c, s.request(http.MethodGet, target, nil))
}

// head sends a request and notes down all of the answer but the body, which is the
// row's to read and close. It returns nil on an error, which is noted too.
func (s *scene) head(c *http.Client, r *http.Request) *http.Response {
	s.Helper()
	a, err := c.Do(r)
	if err != nil {
		s.note("%s; answer: %t", s.error(err), a != nil)
		return nil
	}
	header := a.Header.Clone()
	header.Del("Date")
	_, writer := a.Body.(io.Writer)
	s.note("status %d %q, %s (%d.%d), header %q, length %d, coding %q, close %t, uncompressed %t, trailer %q",
		a.StatusCode, a.Status, a.Proto, a.ProtoMajor, a.ProtoMinor, header, a.ContentLength, a.TransferEncoding,
		a.Close, a.Uncompressed, a.Trailer)
	s.note("body: none %t, writer %t", a.Body == http.NoBody, writer)
	if a.Request != nil { // Not every transport names it.
		s.note("request %s %s, after an answer %t", a.Request.Method, a.Request.URL, a.Request.Response != nil)
	}
	// When HTTP/2 sends a request again, as it may if a hedge ends a connection, the
	// answer belongs to a copy of the request.
	s.single("the request is the caller's: %t", a.Request == r)
	if a.TLS != nil {
		s.note("TLS %s, protocol %q, server %q, certificates %d",
			tls.VersionName(a.TLS.Version), a.TLS.NegotiatedProtocol, a.TLS.ServerName, len(a.TLS.PeerCertificates))
	}
	return a
}

// body reads the body to its end, closes it, and notes that down with the trailers.
func (s *scene) body(a *http.Response) {
	s.Helper()
	if a == nil {
		return
	}
	data, err := io.ReadAll(a.Body)
	s.note("body %s, %s, trailer %q", digest(data), s.error(err), a.Trailer)
	if closed := a.Body.Close(); !s.wordless {
		s.note("close: %s", describe(closed))
	}
}

// saw reads the body of a request in a handler, and notes down what arrived. It
// returns the body.
func (s *scene) saw(r *http.Request) []byte {
	data, err := io.ReadAll(r.Body)
	to, what := &s.seen, digest(data)
	if err != nil {
		to, what = &s.cut, "cut short"
	}
	s.write(to, "%s %s %s to %s, header %q, length %d, coding %q, trailer %q, body %s",
		[]any{r.Proto, r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength, r.TransferEncoding, r.Trailer, what})
	return data
}

// echo is a handler that answers with the body of the request.
func (s *scene) echo(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(s.saw(r)) }
