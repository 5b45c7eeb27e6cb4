package sizing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A cause says what happened in a few words: neither where, since that differs from call to call
// and may be secret, nor what the other side wrote.
func TestCauses(t *testing.T) {
	rpc := func(code codes.Code, text string) string { return grpcCause(status.Error(code, text)) }
	for _, tt := range []struct{ got, want string }{
		{httpCause(404, "404 you, token=secret"), "404 Not Found"},
		{httpCause(599, "599 Odd"), "599"},
		{httpCause(0, `Get "http://me:secret@a.example:8/?key=secret": dial tcp 10.1.2.3:8: connect: connection refused`), "connection refused"},
		{httpCause(0, `Get "http://a/": read tcp 10.0.0.1:51234->10.0.0.2:80: read: connection reset by peer`), "connection reset by peer"},
		{httpCause(0, `Get "http://a/": dial tcp: lookup a.example on 10.0.0.2:53: no such host`), "no such host"},
		{httpCause(0, `Get "http://a/": dial tcp: lookup a.example on [::1]:53: server misbehaving`), "dial tcp: lookup … on …: server misbehaving"},
		{httpCause(0, `Get "http://a/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`), "timeout"},
		{httpCause(0, `Get "http://a/": net/http: HTTP/1.x transport connection broken: malformed HTTP response "secret"`), "net/http: HTTP/1.x transport connection broken: malformed HTTP response …"},
		{httpCause(200, "unexpected EOF"), "unexpected EOF"},
		{httpCause(0, `Get "http://a/": EOF`), "EOF"},
		{httpCause(0, `Get "https://a/": tls: failed to verify certificate: x509: certificate is valid for b.example, not a.example`), "tls: failed to verify certificate: x509: certificate is valid for …"},
		{httpCause(0, strings.Repeat("ä ", 100)), strings.Repeat("ä ", 40) + "…"},
		{httpCause(0, "two\nlines"), "two lines"},
		{rpc(codes.Unimplemented, "unknown service secret"), "Unimplemented"},
		{rpc(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 10.1.2.3:8: connect: connection refused"`), "Unavailable: connection refused"},
		{rpc(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`),
			"Unavailable: tls: failed to verify certificate: x509: certificate signed by unknown authority…"},
		{rpc(codes.Unavailable, "user secret is not served"), "Unavailable"},
		{grpcCause(errors.New("ouch")), "Unknown"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// The commonest causes come first, and no more are kept and told than there is room for; every
// failure counts.
func TestCausesAreBounded(t *testing.T) {
	var samples []Sample
	fails := func(n int, cause string) {
		for range n {
			samples = append(samples, Sample{Failed: true, Cause: cause})
		}
	}
	samples = append(samples, Sample{})
	fails(2, "b")
	fails(3, "a")
	fails(1, "")
	if got, want := causesOf(samples), []Cause{{"a", 3}, {"b", 2}, {unsaidCause, 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range 100 {
		fails(1, fmt.Sprint("one of many: ", i))
	}
	causes := causesOf(samples)
	if last := causes[len(causes)-1]; len(causes) != maxCauses+1 || last != (Cause{otherCauses, 100 + 3 - maxCauses}) {
		t.Errorf("%v", causes)
	}
	if got, want := TellCauses(causes), "3 × a, 2 × b, 1 × unknown, 100 × other causes"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
