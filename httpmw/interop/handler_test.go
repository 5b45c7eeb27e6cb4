package interop_test

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httpmw"
)

// curl returns what curl -i prints.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("curl", append([]string{"-sS", "-i", "--noproxy", "*", "--max-time", "10"}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("curl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// What curl sees of a Handler at its limit, by itself and behind nginx: a 503, when to come
// again, and a constant body. What is marked as a hedge is refused while others are not.
func TestCurlSeesTheLimit(t *testing.T) {
	needs(t)
	inside, leave := make(chan struct{}), make(chan struct{})
	l := fixed(t, 2) // of which one is the reserve, which hedges leave to others
	handler, err := httpmw.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			inside <- struct{}{}
			<-leave
		}
		_, _ = io.WriteString(w, "served")
	}), httpmw.HandlerLimiter(l))
	if err != nil {
		t.Fatal(err)
	}
	direct := serve(t, handler)
	behind := startNginx(t, direct).address

	hold := func() (release func()) {
		t.Helper()
		ended := make(chan error)
		go func() { ended <- exec.Command("curl", "-sS", "--noproxy", "*", "http://"+direct+"/hold").Run() }()
		<-inside
		return func() {
			leave <- struct{}{}
			if err := <-ended; err != nil {
				t.Errorf("the request that held a permit: %v", err)
			}
		}
	}

	release := hold()
	for _, address := range []string{direct, behind} {
		if out := curl(t, "http://"+address+"/"); !strings.HasPrefix(out, "HTTP/1.1 200") || !strings.HasSuffix(out, "served") {
			t.Errorf("below the limit: %s", out)
		}
		if out := curl(t, "-H", httpmw.AttemptHeader+": 2", "http://"+address+"/"); !strings.HasPrefix(out, "HTTP/1.1 503") {
			t.Errorf("a hedge that would take the reserve: %s", out)
		}
	}
	releaseToo := hold()
	bodies := map[string]bool{}
	for _, row := range []struct {
		name, first string
		args        []string
		bodiless    bool
	}{
		{"GET", "HTTP/1.1 503", []string{"http://" + direct + "/"}, false},
		{"HEAD", "HTTP/1.1 503", []string{"-I", "http://" + direct + "/"}, true},
		{"a large POST", "HTTP/1.1 503", []string{"--data-binary", strings.Repeat("x", 100<<10), "http://" + direct + "/"}, false},
		{"HTTP/1.0", "HTTP/1.0 503", []string{"--http1.0", "http://" + direct + "/"}, false},
		{"an offer of h2c", "HTTP/1.1 503", []string{"--http2", "http://" + direct + "/"}, false},
		{"HTTP/2", "HTTP/2 503", []string{"--http2-prior-knowledge", "http://" + direct + "/"}, false},
		{"HEAD over HTTP/2", "HTTP/2 503", []string{"--http2-prior-knowledge", "-I", "http://" + direct + "/"}, true},
		{"GET through nginx", "HTTP/1.1 503", []string{"http://" + behind + "/"}, false},
		{"HEAD through nginx", "HTTP/1.1 503", []string{"-I", "http://" + behind + "/"}, true},
	} {
		head, body, _ := strings.Cut(curl(t, row.args...), "\r\n\r\n")
		if !strings.HasPrefix(head, row.first) {
			t.Errorf("%s: %s, want %s", row.name, head, row.first)
		}
		if !strings.Contains(strings.ToLower(head), "\r\nretry-after: 1") {
			t.Errorf("%s: no Retry-After: %s", row.name, head)
		}
		switch {
		case row.bodiless && body != "":
			t.Errorf("%s: body %q", row.name, body)
		case !row.bodiless:
			bodies[body] = true
		}
	}
	if len(bodies) != 1 {
		t.Errorf("the bodies differ: %v", bodies)
	}
	for body := range bodies {
		if body == "" || len(body) > 100 {
			t.Errorf("the body is %q", body)
		}
	}
	release()
	releaseToo()
	if out := curl(t, "http://"+direct+"/"); !strings.HasPrefix(out, "HTTP/1.1 200") {
		t.Errorf("after the crowd: %s", out)
	}
	if n := l.InFlight(); n != 0 {
		t.Errorf("%d permits are out at the end", n)
	}
}
